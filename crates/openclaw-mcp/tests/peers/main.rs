//! The engine against third-party servers, of both SDKs and over all transports: they are
//! connected, listed, called, cancelled, killed and restarted (N5).

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

#[path = "../common/mod.rs"]
mod common;
mod http;
mod oauth;
mod questions;
mod stdio;
mod support;
