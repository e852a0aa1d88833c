//! Why an authorization failed.

use url::Url;

use crate::issuer::UnconfirmedIssuer;
use crate::settings::DpopUse;

/// Why an authorization failed.
///
/// Texts of other parties are untrusted: they are sanitized to one line where an error is created.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AuthError {
    /// An endpoint cannot be reached, or its response cannot be read. Trying again may help.
    #[error("cannot reach {url} for {what}: {cause}")]
    Unreachable {
        /// What it was needed for, such as "the token request".
        what: &'static str,
        /// Its URL, without query.
        url: String,
        /// The cause.
        cause: String,
    },
    /// A document or response is invalid.
    #[error("invalid response from {url} for {what}: {cause}")]
    Invalid {
        /// What it was needed for, such as "authorization server metadata".
        what: &'static str,
        /// Its URL, without query.
        url: String,
        /// The cause.
        cause: String,
    },
    /// A URL that a server named must not be contacted.
    #[error("refused to contact {url} for {what}: {cause}")]
    Refused {
        /// What it was needed for.
        what: &'static str,
        /// The URL, without query.
        url: String,
        /// The cause, such as "not https" or "a private address".
        cause: &'static str,
    },
    /// The authorization server does not support what OAuth 2.1 requires.
    #[error("the authorization server {issuer} {cause}")]
    Unsupported {
        /// The authorization server.
        issuer: String,
        /// The cause, such as "does not support PKCE with S256".
        cause: String,
    },
    /// The client cannot be registered there.
    #[error("this program is not registered at {issuer}: {cause}")]
    NotRegistered {
        /// The authorization server.
        issuer: String,
        /// The cause.
        cause: String,
    },
    /// The user has not confirmed the authorization server that the MCP server names. Neither
    /// credentials nor the user were sent to it.
    #[error("{0}")]
    Unconfirmed(Box<UnconfirmedIssuer>),
    /// The authorization server rejected a request, with an OAuth error code.
    #[error("{what} was rejected: {code}{}", .description.as_ref().map(|it| format!(" ({it})")).unwrap_or_default())]
    Rejected {
        /// What was rejected, such as "the login" or "the token request".
        what: &'static str,
        /// The error code, such as `invalid_grant`.
        code: String,
        /// The server's description.
        description: Option<String>,
    },
    /// Tokens must be bound to a key, or must not, other than `auth.dpop` says.
    #[error("{cause} (`auth.dpop`)")]
    Binding {
        /// What was rejected, and why.
        cause: String,
        /// The value of the setting that may help.
        remedy: DpopUse,
    },
    /// The answer to an authorization request does not belong to it.
    #[error("the response to the login does not match the request: {0}")]
    Mismatch(String),
    /// A login is necessary, and no user is there.
    #[error("login required")]
    LoginRequired,
    /// The response is not about tokens: the server denies access for another reason.
    #[error("access denied")]
    NotAboutTokens,
    /// More scopes are necessary than were granted.
    #[error("missing permission: {}", .scopes.join(" "))]
    InsufficientScope {
        /// The scopes that the server asks for.
        scopes: Vec<String>,
    },
    /// A setting is invalid.
    #[error("cannot use `{setting}`: {cause}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// The cause.
        cause: String,
    },
    /// A stored grant cannot be read or written.
    #[error("{0}")]
    Store(String),
    /// The operating system has no randomness, or a key cannot sign.
    #[error("cryptography failed: {0}")]
    Crypto(&'static str),
    /// The user, or another login, ended it.
    #[error("the login was cancelled: {cause}")]
    Cancelled {
        /// The cause, such as "declined".
        cause: &'static str,
    },
}

impl AuthError {
    /// Returns a URL for display: without user, password, query and fragment.
    pub fn shown(url: &Url) -> String {
        let mut url = url.clone();
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        url.set_fragment(None);
        url.into()
    }

    /// Returns what to do about [`Binding`](Self::Binding).
    pub fn binding_hint(server: &str, remedy: DpopUse) -> String {
        let login = format!("run `openclaw mcp login {server}`");
        match remedy {
            // The code may have expired instead.
            DpopUse::Always => format!(
                "{login} again; if that fails too, set `auth.dpop` to `always` in the entry of the server"
            ),
            DpopUse::Auto => {
                format!("set `auth.dpop` to `auto` in the entry of the server, then {login}")
            }
            DpopUse::Never => {
                format!("set `auth.dpop` to `never` in the entry of the server, then {login}")
            }
        }
    }

    /// Whether trying again later may help: the other side was not reached.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }
}
