//! OAuth 2.1 for MCP servers: a 401 becomes a stored, refreshed token (O1–O8).
//!
//! - [`challenge`], [`metadata`], [`client`], [`authorize`], [`token`], [`dpop`], [`jwt`]: the
//!   protocol, one step each, without state.
//! - [`grant`]: what a login leaves behind. [`store`]: where grants are kept.
//! - [`callback`]: the local end of a browser's redirect.

pub mod authorize;
pub mod callback;
pub mod challenge;
pub mod client;
pub mod dpop;
pub mod error;
pub mod grant;
pub mod http;
pub mod jwt;
pub mod metadata;
pub mod settings;
pub mod store;
pub mod token;
