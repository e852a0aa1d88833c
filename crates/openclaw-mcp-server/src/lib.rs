//! The MCP servers of OpenClaw. `rmcp`'s server types do not leave this crate.
//!
//! - [`demo`]: a small server for trying out clients.
//! - [`serve`]: the server for other programs, a client of the gateway's `Surface`. Its tool
//!   `order_openclaw` (`order/`) sends a message to an agent; `media/` reads its attachments, and
//!   `sessions` has the tools around it.
//! - [`hub`]: the MCP servers of an agent as one server.
//!
//! `front/` reads and answers the messages of their clients; `input/` is what clients are asked for.

mod batch;
pub mod demo;
mod era;
mod front;
pub mod hub;
mod input;
mod media;
mod order;
mod schema;
mod server;
mod sessions;

pub use media::{PdfReader, extract_pdf};
pub use order::McpServerOptions;
pub use server::{McpServerError, serve, serve_stdio};
