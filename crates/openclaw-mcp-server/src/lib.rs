//! The MCP servers of OpenClaw. `rmcp`'s server types do not leave this crate.
//!
//! - [`demo`]: a small server for trying out clients.
//! - [`serve`]: the server for other programs, a client of the gateway's `Surface`. Its tool
//!   `order_openclaw` (`order/`) sends a message to an agent; `media/` reads its attachments, and
//!   `sessions` has the tools around it.
//! - [`hub`]: the MCP servers of an agent as one server.

mod batch;
pub mod demo;
mod era;
pub mod hub;
mod media;
mod order;
mod schema;
mod server;
mod sessions;
mod transport;

pub use media::{PdfReader, extract_pdf};
pub use server::{McpServerError, McpServerOptions, serve, serve_stdio};
