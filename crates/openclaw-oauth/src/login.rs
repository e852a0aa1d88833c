//! Logins as a user sees them: who is asked, for what, and how logins and logouts end.

use std::fmt;

use futures_util::future::BoxFuture;
use openclaw_secrets::SecretString;
use url::Url;

use crate::issuer::UnconfirmedIssuer;

/// A user who can be asked to log in.
pub trait LoginPrompt: Send + Sync + fmt::Debug {
    /// Shows the URL of a login to the user. Dropped when the login ends otherwise.
    fn show(&self, login: LoginRequest) -> BoxFuture<'_, PromptResponse>;

    /// Asks whether an authorization server may be used. It may not, if the prompt does not ask.
    fn confirm<'a>(&'a self, _unconfirmed: &'a UnconfirmedIssuer) -> BoxFuture<'a, bool> {
        Box::pin(async { false })
    }
}

/// A login that a user is asked for.
#[derive(Debug, Clone)]
pub struct LoginRequest {
    /// The name of the server.
    pub server: String,
    /// The URL to open in a browser.
    pub url: Url,
    /// The authorization server. Untrusted.
    pub issuer: String,
    /// The scopes that are requested. Untrusted.
    pub scopes: Vec<String>,
}

/// What a user does about a login.
#[derive(Debug, Clone)]
pub enum PromptResponse {
    /// The URL was shown; the browser will call back.
    Shown,
    /// The user pasted the code, or the URL that the browser was redirected to.
    Pasted(SecretString),
    /// The user does not want to log in.
    Declined,
}

/// What a logout did.
#[derive(Debug, Clone)]
pub enum Logout {
    /// There was no grant.
    NotLoggedIn,
    /// The grant was revoked and forgotten.
    Revoked,
    /// The grant was forgotten; it could not be revoked, for this reason.
    Forgotten(String),
}
