//! The MCP servers of OpenClaw. `rmcp`'s server types do not leave this crate.

pub mod demo;
