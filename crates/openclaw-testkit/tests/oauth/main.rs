//! The authorization servers: real ones, and the one that misbehaves on command.
#![expect(clippy::unwrap_used, reason = "the helpers of tests may fail as tests do")]

mod client;
mod fastmcp;
mod oidc;
mod scripted;
