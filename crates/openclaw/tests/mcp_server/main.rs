//! `openclaw mcp-server` as an MCP client sees it.

#![cfg(target_os = "linux")]
#![allow(clippy::needless_pass_by_value, reason = "values are made where they are passed")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "these are tests")]

mod asking;
mod bad_input;
mod client;
mod clients;
#[path = "../common/mod.rs"]
mod common;
mod endings;
mod install;
mod media;
mod model;
mod orders;
mod sessions;
mod tasks;
