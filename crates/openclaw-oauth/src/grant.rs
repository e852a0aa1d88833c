//! What a login leaves behind: tokens, and what is needed to renew and revoke them.

use std::collections::BTreeSet;

use openclaw_secrets::SecretString;
use url::Url;

use crate::client::ClientIdentity;
use crate::dpop::DpopKey;

/// The identity of a grant: a grant is never used for another server or URL.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GrantKey {
    /// The name of the MCP server in the configuration.
    pub server: String,
    /// Its URL, without user, password, query and fragment.
    pub url: Url,
}

/// A user's or a machine's permission to use one MCP server.
#[derive(Debug, Clone)]
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
    pub access_token: SecretString,
    /// Whether the token is bound to a key ([`dpop`](Self::dpop)) or a bearer token.
    pub dpop: Option<DpopKey>,
    /// When the access token expires, in Unix seconds. `None` if the server did not say.
    pub expires_at: Option<i64>,
    /// The refresh token.
    pub refresh_token: Option<SecretString>,
    /// When the login took place, in Unix seconds.
    pub logged_in_at: i64,
}
