//! Logins, refreshes and logouts against an authorization server that misbehaves on command, with
//! the file store and with several processes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

mod bad_input;
mod binding;
mod callback;
mod child;
mod clock;
mod crash;
mod isolation;
mod issuers;
mod login;
mod logs;
mod machines;
mod refresh;
mod step_up;
mod support;
