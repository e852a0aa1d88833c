//! Remote servers, which misbehave on command.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod calls;
mod floods;
mod network;
mod opening;
mod sessions;
mod support;
mod tls;
mod trouble;
