//! What a login leaves behind: tokens, and what is needed to renew and revoke them.

use std::collections::BTreeSet;

use openclaw_secrets::SecretString;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::client::ClientIdentity;
use crate::dpop::DpopKey;

/// How long before its expiry an access token is renewed, in seconds.
const MARGIN: i64 = 60;
/// For shorter lifetimes, in seconds, the margin is a tenth of the lifetime: otherwise such a token
/// would be renewed at every call.
const SHORT_LIFETIME: i64 = 2 * MARGIN;

/// How long an access token is new, in seconds: one that is rejected then has not expired.
const NEW: i64 = 30;

/// The identity of a grant: a grant is never used for another server or URL.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GrantKey {
    /// The name of the MCP server in the configuration.
    pub server: String,
    /// Its URL, without user, password, query and fragment.
    pub url: Url,
}

impl GrantKey {
    /// Returns the key for a server at a URL. User, password, query and fragment are removed: they
    /// may hold secrets, and are not part of a server's identity.
    pub fn new(server: impl Into<String>, url: &Url) -> Self {
        let mut url = url.clone();
        // These fail for URLs that cannot have a user.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        url.set_fragment(None);
        Self { server: server.into(), url }
    }
}

/// A user's or a machine's permission to use one MCP server.
///
/// It is serialized for [stores](crate::store) only, with all its secrets. `Debug` shows none. A new
/// field is optional or has a default: grants of older versions are still read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Grant {
    /// The authorization server that issued it. Nothing of it is sent to another one.
    pub issuer: String,
    /// Where tokens are renewed.
    pub token_endpoint: Url,
    /// Where tokens are revoked.
    pub revocation_endpoint: Option<Url>,
    /// The RFC 8707 resource that the tokens are for.
    pub resource: String,
    /// The client to which it was issued.
    pub client: ClientIdentity,
    /// The scopes, as granted, or as requested if the server did not say.
    pub scopes: BTreeSet<String>,
    /// The access token.
    #[serde(with = "crate::secret")]
    pub access_token: SecretString,
    /// Whether the token is bound to a key ([`dpop`](Self::dpop)) or a bearer token.
    pub dpop: Option<DpopKey>,
    /// Whether the MCP server has rejected new tokens that were bound to a key: further ones are not
    /// bound.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bearer_only: bool,
    /// When the access token was received, in Unix seconds.
    pub issued_at: i64,
    /// When the access token expires, in Unix seconds. `None` if the server did not say.
    pub expires_at: Option<i64>,
    /// The refresh token.
    #[serde(with = "crate::secret::option", default)]
    pub refresh_token: Option<SecretString>,
    /// When the login took place, in Unix seconds.
    pub logged_in_at: i64,
}

impl Grant {
    /// Returns everything in it that must not be shown.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretString> {
        let own = std::iter::once(&self.access_token).chain(&self.refresh_token);
        own.chain(&self.client.secret).chain(&self.client.private_key)
    }

    /// Whether the access token is due for a refresh at `now`, in Unix seconds: 60 s before it
    /// expires, or a tenth of its lifetime if that is under 2 min. A token without expiry is used
    /// until the server responds with a 401.
    #[must_use]
    pub fn needs_refresh(&self, now: i64) -> bool {
        self.expires_at.is_some_and(|at| now >= at.saturating_sub(self.margin(at)))
    }

    /// Whether the access token is expired. Until then it may be used if a refresh fails.
    #[must_use]
    pub fn is_expired(&self, now: i64) -> bool {
        self.expires_at.is_some_and(|at| now >= at)
    }

    /// Whether the access token has just been issued.
    pub(crate) fn is_new(&self, now: i64) -> bool {
        (0..NEW).contains(&now.saturating_sub(self.issued_at))
    }

    fn margin(&self, expires_at: i64) -> i64 {
        match expires_at.saturating_sub(self.issued_at) {
            SHORT_LIFETIME.. => MARGIN,
            short => (short / 10).max(0),
        }
    }
}

#[cfg(test)]
#[path = "grant_tests.rs"]
pub(crate) mod tests;
