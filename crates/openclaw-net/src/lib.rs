//! Public network addresses, and HTTP clients that only reach them (T8).
//!
//! - [`address`]: which addresses are public, and which others are allowed.
//! - `resolver`, `client`, `host` (feature `http`): a client for URLs that a page, a server or a
//!   model names.

pub mod address;
#[cfg(feature = "http")]
pub mod client;
#[cfg(feature = "http")]
pub mod host;
#[cfg(feature = "http")]
pub mod resolver;
