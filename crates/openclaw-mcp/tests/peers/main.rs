//! The engine against servers that other people wrote, of both SDKs and over all transports: they are
//! connected to, listed, called, cancelled, killed and had back (N5).

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod http;
mod questions;
mod stdio;
mod support;
