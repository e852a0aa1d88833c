//! Remote servers, which misbehave on command.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod calls;
#[path = "../common/mod.rs"]
mod common;
mod floods;
mod network;
mod opening;
mod sessions;
mod support;
mod tls;
mod trouble;
