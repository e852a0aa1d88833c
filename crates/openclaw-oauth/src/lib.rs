//! OAuth 2.1 for MCP servers: a 401 becomes a stored, refreshed token (O1–O8).
//!
//! - [`challenge`], [`metadata`], [`registration`], [`authorize`], [`token`], [`dpop`], [`jwt`]: the
//!   protocol, one step each, without state.
//! - [`server_hints`]: what servers said that later requests must respect.
//! - [`client`]: who we are to an authorization server. [`issuer`]: what users confirm of one, and
//!   `confirmation`: when they must.
//! - [`grant`]: what a login leaves behind. [`store`]: where grants are kept.
//! - [`login`]: logins as a user sees them. [`refresh`]: what a refresh makes of a grant.
//! - [`authorizer`]: the requests to one server, with refreshes, logins and logouts. It stands above
//!   all others.
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
pub mod registration;
pub mod secret;
pub mod server_hints;
pub mod settings;
pub mod store;
pub mod token;
mod token_response;

#[cfg(test)]
mod test_server;
