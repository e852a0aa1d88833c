//! The server as clients see it, good ones and bad ones.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod abuse;
mod bounds;
mod client;
mod handshake;
mod http;
mod support;
