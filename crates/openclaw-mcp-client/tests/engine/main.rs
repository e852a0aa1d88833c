//! The parts of the engine against real servers that misbehave on command.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

#[path = "../common/mod.rs"]
mod common;
mod ends;
mod floods;
mod listing;
mod local;
mod support;
mod wire;
