//! Who makes requests, and what they may do.

use std::fmt;
use std::sync::Arc;

use crate::Scope;

/// Who makes requests. It is made where a client is let in, and goes with everything that its requests
/// cause: sessions and questions belong to it, and approvals are checked against it. Two are equal if
/// they have authenticated with the same credential.
///
/// ```
/// use openclaw_protocol::{AccessToken, Principal, Scope};
///
/// let phone = Principal::from(AccessToken::new("phone", "5e1f", ["operator.write"]));
/// assert!(phone.has(Scope::Write) && phone.has(Scope::Read) && !phone.has(Scope::Approvals));
/// assert_ne!(phone, AccessToken::new("phone", "77aa", ["operator.write"]).into());
/// assert!(Principal::Operator.has(Scope::Approvals));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Principal {
    /// The operator: with the gateway's own token on its machine, or as the user who started this
    /// program.
    Operator,
    /// The operator on another machine, who does not administrate.
    RemoteOperator,
    /// Whoever has this access token.
    Token(Arc<AccessToken>),
}

/// An access token with limited scopes, without the token itself.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct AccessToken {
    name: String,
    sha256: String,
    scopes: Vec<String>,
}

impl Principal {
    /// Whether it may do what needs this scope.
    #[must_use]
    pub fn has(&self, scope: Scope) -> bool {
        match self {
            Self::Operator => true,
            Self::RemoteOperator => scope != Scope::Admin,
            Self::Token(token) => scope.is_in(&token.scopes),
        }
    }

    /// Returns its access token, which may be revoked.
    #[must_use]
    pub fn token(&self) -> Option<&AccessToken> {
        match self {
            Self::Operator | Self::RemoteOperator => None,
            Self::Token(token) => Some(token),
        }
    }
}

impl From<AccessToken> for Principal {
    fn from(token: AccessToken) -> Self {
        Self::Token(Arc::new(token))
    }
}

/// As in logs and messages.
impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operator => f.write_str("the operator"),
            Self::RemoteOperator => f.write_str("the operator on another machine"),
            Self::Token(token) => write!(f, "token {}", token.name),
        }
    }
}

impl AccessToken {
    /// Creates the description of a token from its name, its SHA-256 hash, and its scopes.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        sha256: impl Into<String>,
        scopes: impl IntoIterator<Item: Into<String>>,
    ) -> Self {
        let scopes = scopes.into_iter().map(Into::into).collect();
        Self { name: name.into(), sha256: sha256.into(), scopes }
    }

    /// The name that the operator has given to it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its hash, by which it is found.
    #[must_use]
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The scopes that its clients may have.
    #[must_use]
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessToken").field("name", &self.name).finish_non_exhaustive()
    }
}
