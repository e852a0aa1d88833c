//! OAuth 2.1 for MCP servers: a 401 becomes a stored, refreshed token (O1–O8).
//!
//! - [`challenge`], [`metadata`], [`client`], [`authorize`], [`token`], [`dpop`], [`jwt`]: the
//!   protocol, one step each, without state.
//! - [`server_hints`]: what servers said that later requests must respect.
//! - [`grant`]: what a login leaves behind. [`store`]: where grants are kept.
//! - [`authorizer`]: the requests to one server, with refreshes. [`login`]: logins and logouts.
//! - [`issuer`]: which authorization servers get credentials and codes.
//! - [`callback`]: the local end of a browser's redirect. [`browser`]: opens the browser.

pub mod authorize;
pub mod authorizer;
pub mod browser;
pub mod callback;
pub mod challenge;
pub mod client;
mod confirmation;
pub mod dpop;
pub mod error;
pub mod grant;
pub mod http;
pub mod issuer;
pub mod jwt;
pub mod login;
pub mod metadata;
mod quote;
pub mod refresh;
mod registration;
pub mod secret;
pub mod server_hints;
pub mod settings;
pub mod store;
pub mod token;
mod token_response;

#[cfg(test)]
mod test_server;
