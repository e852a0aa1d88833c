//! Tests of OAuth: a browser without a screen, and a server that misbehaves on command. Real
//! authorization servers are among the [`Peers`](crate::Peers).

mod browser;
pub mod form;
mod html;
mod script;
mod server;
pub mod wire;

pub use browser::Browser;
pub use script::{Endpoint, Fake, OAuthScript, Parameter};
pub use server::{OAuthRequest, OAuthTestServer, Tokens};
