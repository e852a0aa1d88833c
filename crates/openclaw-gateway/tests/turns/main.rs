//! The gateway as callers see it, in the same process and on a socket.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod approvals;
mod audit;
mod bad_input;
mod chatting;
mod choosing;
mod commands;
#[path = "../common/mod.rs"]
mod common;
mod crowd;
mod elicitation;
mod folders;
mod history;
mod lending;
mod node_clients;
mod reloading;
mod rules;
mod sampling;
mod schema;
mod starting;
mod stopping;
mod streaming;
mod support;
mod tokens;
