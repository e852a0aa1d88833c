//! MCP servers through the gateway: the methods, the command `/mcp`, and the tool `mcp_manage`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod calls;
mod commands;
#[path = "../common/mod.rs"]
mod common;
mod connections;
mod context;
mod hub;
mod lists;
mod metrics;
mod support;
