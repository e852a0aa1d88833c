//! A fleet of servers, from the configuration to the outcome of a call: with real processes, none
//! of which is left behind.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod bad_input;
mod calls;
#[path = "../common/mod.rs"]
mod common;
mod input;
mod lifecycle;
mod oauth;
mod reload;
mod remote;
mod secrets;
mod skills;
mod subscriptions;
mod support;
mod tasks;
mod toolset;
