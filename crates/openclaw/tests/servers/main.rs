//! Commands that talk to servers, as processes: exit codes, stdin, files, approvals, cleanup.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod answers;
mod calls;
mod canaries;
mod chat;
#[path = "../common/mod.rs"]
mod common;
mod doctor;
mod endings;
mod first_run;
mod live;
mod logging;
mod logins;
mod prompt;
mod sampling;
mod state_files;
mod support;
mod terminal;
mod top;
mod with_gateway;
mod workspace;
