//! `openclaw acp` as an editor sees it. Every frame is checked against the published schema.

#![cfg(target_os = "linux")]
#![allow(clippy::needless_pass_by_value, reason = "values are made where they are passed")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "these are tests")]

mod bad_input;
mod clients;
#[path = "../common/mod.rs"]
mod common;
mod editor;
mod editor_tools;
mod endings;
mod flow;
mod logins;
mod options;
mod permissions;
mod prompts;
mod real_servers;
mod replay;
mod servers;
mod sessions;
mod with_gateway;
