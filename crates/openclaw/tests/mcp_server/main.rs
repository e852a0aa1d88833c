//! `openclaw mcp-server` as an MCP client sees it.

#![cfg(target_os = "linux")]
#![allow(
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    reason = "these are tests"
)]

mod asking;
mod bad_input;
mod client;
mod clients;
mod endings;
#[path = "../common/folder.rs"]
mod folder;
mod install;
mod media;
mod model;
mod orders;
mod sessions;
mod tasks;
