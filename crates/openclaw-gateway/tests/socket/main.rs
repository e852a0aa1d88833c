//! The server as clients see it, well-behaved ones and others.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod abuse;
mod bounds;
mod client;
mod flood;
mod handshake;
mod http;
mod support;
