//! The gateway as its callers know it: in the same process, and at the other end of a socket.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod chatting;
mod support;
