//! One connection to one MCP server, without a fleet.
//!
//! From the top down: a [`connection`] runs over the pipes of a [`process`] or over HTTP, using the
//! framing in [`wire`]. What the server asks for is answered by the [`host`], what it lists is parsed by
//! [`listing`]. Its stderr goes to its [`log`]; a [`limiter`] bounds calls per minute.

pub mod connection;
pub mod host;
pub mod limiter;
pub mod listing;
pub mod log;
pub mod process;
pub mod wire;
