//! Authorization servers as users confirm them, and doubts about them.

use std::collections::BTreeSet;
use std::fmt;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::quote::quoted;

/// An authorization server that a user has confirmed, or logged in at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfirmedIssuer {
    /// Its identity.
    pub issuer: String,
    /// The client id of the last login there, or one that it may use although another authorization
    /// server does. `None` in files of older versions, and before the first login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The origins of its endpoints, besides its own.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub origins: BTreeSet<String>,
}

impl ConfirmedIssuer {
    /// Confirms an authorization server, and endpoints at its own origin only.
    pub fn new(issuer: &str) -> Self {
        Self { issuer: issuer.to_owned(), client_id: None, origins: BTreeSet::new() }
    }
}

/// An authorization server that the user has not confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnconfirmedIssuer {
    /// Its identity, as the MCP server names it. Untrusted.
    pub issuer: String,
    /// Why the user must confirm it.
    pub doubt: IssuerDoubt,
    /// What is confirmed if the user agrees.
    pub(crate) proposed: ConfirmedIssuer,
}

/// Why an authorization server must be confirmed. The texts are clean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssuerDoubt {
    /// It would be the first that gets the credentials of the configuration.
    First,
    /// The credentials belong to this one.
    Changed(String),
    /// The user has confirmed this one, which the server does not name.
    NotNamed(String),
    /// Its endpoint is at this other origin, and responses to logins do not say whose they are.
    Elsewhere {
        /// What the endpoint does.
        endpoint: &'static str,
        /// Its origin.
        origin: String,
    },
    /// It uses the client id of this one, and responses to logins do not say whose they are.
    SharedClient(String),
}

impl fmt::Display for UnconfirmedIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let issuer = quoted(&self.issuer);
        match &self.doubt {
            IssuerDoubt::First => write!(
                f,
                "the credentials in `auth` would be sent to the authorization server {issuer}, which \
                 the server names and which is not confirmed"
            ),
            IssuerDoubt::Changed(before) => write!(
                f,
                "the server names the authorization server {issuer} now, but the credentials in `auth` \
                 belong to {before}"
            ),
            IssuerDoubt::NotNamed(wanted) => {
                write!(f, "the server names the authorization server {issuer}, not {wanted}")
            }
            IssuerDoubt::Elsewhere { endpoint, origin } => write!(
                f,
                "the authorization server {issuer} {endpoint} at {origin}, and does not say in its \
                 responses whose they are: it could pass on the login of another one"
            ),
            IssuerDoubt::SharedClient(other) => write!(
                f,
                "the authorization server {issuer} uses the client id of {other}, and does not say in \
                 its responses whose they are: it could pass on the login of the other one"
            ),
        }
    }
}

/// Returns how to confirm an authorization server for an MCP server.
pub fn confirmation_hint(server: &str, issuer: &str) -> String {
    // It comes from the server, and will be pasted into a shell.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/%@+,=".contains(c);
    let issuer = if issuer.chars().all(is_plain) { issuer } else { "URL" };
    format!(
        "if you trust it, run `openclaw mcp login {server} --issuer {issuer}`, or set \
         `auth.authorizationServerUrl` in the entry of the server"
    )
}

/// Returns the redirect URI for one authorization server: a response that another one has sent arrives
/// at another URI (RFC 9700, section 4.4.2.2).
pub(crate) fn redirect_uri(callback: &str, issuer: &str) -> String {
    format!("{callback}/{}", HEXLOWER.encode(&Sha256::digest(issuer)[..16]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUER: &str = "https://as.example/tenant";

    #[test]
    fn the_hint_is_safe_to_paste_into_a_shell() {
        let hint = confirmation_hint("box", "https://as.example:8443/a_b%20c");
        assert!(hint.contains("`openclaw mcp login box --issuer https://as.example:8443/a_b%20c`"));
        for odd in ["https://as.example/$(id)", "https://as.example/;id", "https://as.example/`id`"]
        {
            let hint = confirmation_hint("box", odd);
            assert!(hint.contains("--issuer URL`") && !hint.contains("id"), "{hint}");
        }
    }

    #[test]
    fn every_issuer_has_its_own_redirect_uri() {
        let uri = |issuer| redirect_uri("http://127.0.0.1:4711/callback", issuer);
        assert_eq!(uri(ISSUER), uri(ISSUER));
        assert_ne!(uri(ISSUER), uri("https://as.example/tenant/"));
        let (path, hash) =
            uri(ISSUER).rsplit_once('/').map(|(a, b)| (a.to_owned(), b.len())).unwrap();
        assert_eq!((path.as_str(), hash), ("http://127.0.0.1:4711/callback", 32));
    }
}
