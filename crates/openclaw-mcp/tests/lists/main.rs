//! Malformed lists, and lists that change at the wrong moment.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod bounds;
mod changes;
#[path = "../common/mod.rs"]
mod common;
mod memory;
mod odd;
mod support;
