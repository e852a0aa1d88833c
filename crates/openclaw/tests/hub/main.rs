//! `openclaw mcp-server --hub` and the gateway's `/mcp`, as MCP clients see them (S6).

#![cfg(target_os = "linux")]
#![allow(clippy::needless_pass_by_value, reason = "values are made where they are passed")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "these are tests")]

mod apps;
mod asks;
mod bad_input;
mod batches;
mod clean;
mod clients;
#[path = "../common/mod.rs"]
mod common;
mod eras;
mod floods;
mod http;
mod http_messages;
mod names;
mod place;
mod principals;
mod results;
mod skills;
mod states;
mod with_gateway;
