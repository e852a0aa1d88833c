//! Which authorization servers get credentials and codes.
//!
//! An MCP server names its authorization server, so a hostile one can name any. The user confirms, or
//! configures, the one that gets the credentials of the configuration; it stays the only one, also
//! after a logout. A login with a browser is its own confirmation, unless the authorization server
//! could pass on the login of another one (mix-up: RFC 9700, section 4.4).

use std::fmt;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use url::Url;

use crate::authorizer::Authorizer;
use crate::client::ClientIdentity;
use crate::error::AuthError;
use crate::http::quoted;
use crate::metadata::AuthorizationServer;
use crate::settings::{AuthSettings, GrantType};
use crate::store::GrantList;

/// An authorization server that the user has not confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnconfirmedIssuer {
    /// Its identity, as the MCP server names it. Untrusted.
    pub issuer: String,
    /// Why the user must confirm it.
    pub doubt: IssuerDoubt,
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

/// The authorization server that was confirmed before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IssuerPin {
    None,
    /// There is one, but not which.
    Unreadable,
    Issuer(String),
}

impl IssuerPin {
    pub(crate) fn issuer(&self) -> Option<&str> {
        match self {
            Self::Issuer(issuer) => Some(issuer),
            Self::None | Self::Unreadable => None,
        }
    }
}

/// Checks whether the user must confirm an authorization server before anything is sent to it.
pub(crate) fn check(
    server: &AuthorizationServer,
    settings: &AuthSettings,
    pin: &IssuerPin,
) -> Result<(), UnconfirmedIssuer> {
    let is_machine = !matches!(settings.grant, GrantType::AuthorizationCode);
    if is_confirmed(server, settings, pin) {
        return Ok(());
    }
    let doubt = match pin {
        // SEP-2352: credentials belong to the authorization server that issued them.
        IssuerPin::Issuer(before) if is_machine || settings.client_id.is_some() => {
            Some(IssuerDoubt::Changed(quoted(before)))
        }
        IssuerPin::Unreadable if is_machine || settings.client_id.is_some() => {
            Some(IssuerDoubt::First)
        }
        IssuerPin::None if is_machine => Some(IssuerDoubt::First),
        _ if server.authorization_response_iss_parameter_supported => None,
        _ => elsewhere(server),
    };
    doubt.map_or(Ok(()), |doubt| Err(UnconfirmedIssuer { issuer: server.issuer.clone(), doubt }))
}

/// Checks whether a login could be mixed up with one at another authorization server that knows us by
/// the same client id, unless it [cannot](is_unmistakable) anyway.
pub(crate) fn check_client(
    server: &AuthorizationServer,
    client: &ClientIdentity,
    known: &GrantList,
) -> Result<(), UnconfirmedIssuer> {
    let grants =
        || known.grants.iter().filter_map(|(_, stored)| Some(&stored.as_ref().ok()?.grant));
    if grants().any(|grant| grant.issuer == server.issuer) {
        return Ok(());
    }
    match grants().find(|grant| grant.client.id == client.id) {
        Some(other) => Err(UnconfirmedIssuer {
            issuer: server.issuer.clone(),
            doubt: IssuerDoubt::SharedClient(quoted(&other.issuer)),
        }),
        None => Ok(()),
    }
}

/// Whether a login there cannot be taken for one elsewhere: the user has confirmed it, or its responses
/// say whose they are.
pub(crate) fn is_unmistakable(
    server: &AuthorizationServer,
    settings: &AuthSettings,
    pin: &IssuerPin,
) -> bool {
    server.authorization_response_iss_parameter_supported || is_confirmed(server, settings, pin)
}

/// Whether the user has configured or confirmed it.
fn is_confirmed(server: &AuthorizationServer, settings: &AuthSettings, pin: &IssuerPin) -> bool {
    settings.authorization_server.is_some() || pin.issuer() == Some(server.issuer.as_str())
}

/// Returns an endpoint at another origin than the issuer: the page of another authorization server, or a
/// place that gets its codes.
fn elsewhere(server: &AuthorizationServer) -> Option<IssuerDoubt> {
    let issuer = Url::parse(&server.issuer).ok().map(|url| url.origin());
    let login = server.authorization_endpoint.as_ref().map(|url| ("lets users log in", url));
    let mut endpoints = login.into_iter().chain([("receives codes", &server.token_endpoint)]);
    let found = endpoints.find(|(_, url)| issuer.as_ref() != Some(&url.origin()));
    found.map(|(endpoint, url)| IssuerDoubt::Elsewhere {
        endpoint,
        origin: quoted(&url.origin().ascii_serialization()),
    })
}

/// Returns the redirect URI for one authorization server: a response that another one has sent arrives
/// at another URI (RFC 9700, section 4.4.2.2).
pub(crate) fn redirect_uri(callback: &str, issuer: &str) -> String {
    format!("{callback}/{}", HEXLOWER.encode(&Sha256::digest(issuer)[..16]))
}

impl Authorizer {
    /// Confirms the authorization server of the MCP server: from now on it is the only one that gets the
    /// credentials of the configuration.
    ///
    /// # Errors
    /// [`AuthError::Unconfirmed`] if the MCP server names another one, [`AuthError::NotAboutTokens`] if
    /// it requires no token, and others if that cannot be found out or stored.
    pub async fn confirm_issuer(&self, issuer: &str) -> Result<(), AuthError> {
        if self.challenge().is_none() {
            self.probe().await?;
        }
        let discovery = self.discover(&IssuerPin::Issuer(issuer.to_owned())).await?;
        if discovery.server.issuer != issuer {
            let doubt = IssuerDoubt::NotNamed(quoted(issuer));
            let issuer = discovery.server.issuer;
            return Err(AuthError::Unconfirmed(Box::new(UnconfirmedIssuer { issuer, doubt })));
        }
        self.pin_issuer(issuer).await
    }

    /// Stores an authorization server that the user has confirmed.
    pub(crate) async fn pin_issuer(&self, issuer: &str) -> Result<(), AuthError> {
        tracing::info!(server = %self.0.key.server, issuer, "confirmed an authorization server");
        self.0.options.store.save_issuer(&self.0.key, issuer).await
    }

    /// Returns the authorization server that the user must confirm before a token can be obtained
    /// without a user. Nothing is sent to it.
    ///
    /// # Errors
    /// If it cannot be found out; [`AuthError::NotAboutTokens`] if the MCP server requires no token.
    pub async fn unconfirmed_issuer(&self) -> Result<Option<UnconfirmedIssuer>, AuthError> {
        if self.challenge().is_none() {
            self.probe().await?;
        }
        let pin = self.pinned_issuer().await;
        let discovery = self.discover(&pin).await?;
        Ok(check(&discovery.server, &self.0.options.settings, &pin).err())
    }

    /// Returns the authorization server that was confirmed, or that issued the stored grant: grants of
    /// older versions are their own confirmation.
    pub(crate) async fn pinned_issuer(&self) -> IssuerPin {
        let store = &self.0.options.store;
        match store.issuer(&self.0.key).await {
            Ok(Some(issuer)) => IssuerPin::Issuer(issuer),
            Ok(None) => match store.load(&self.0.key).await {
                Ok(Some(stored)) => IssuerPin::Issuer(stored.grant.issuer),
                Ok(None) => IssuerPin::None,
                Err(_) => IssuerPin::Unreadable,
            },
            Err(error) => {
                tracing::warn!(server = %self.0.key.server, %error, "cannot read the confirmed issuer");
                IssuerPin::Unreadable
            }
        }
    }
}

#[cfg(test)]
#[path = "issuer_tests.rs"]
mod tests;
