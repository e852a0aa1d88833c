//! What OpenClaw offers to MCP clients. `rmcp`'s server types do not leave this crate.

pub mod demo;
