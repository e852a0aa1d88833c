//! Which authorization servers get credentials and codes.
//!
//! An MCP server names its authorization server, so a hostile one can name any. The user confirms, or
//! configures, the one that gets the credentials of the configuration; it stays the only one, also
//! after a logout. A login with a browser is its own confirmation, unless the authorization server
//! could pass on the login of another one (mix-up: RFC 9700, section 4.4). Exactly that is confirmed
//! which was shown: an issuer, an origin of its endpoints, or its use of a client id.

use std::collections::BTreeSet;
use std::fmt;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use url::Url;

use crate::authorizer::Authorizer;
use crate::client::ClientIdentity;
use crate::error::AuthError;
use crate::grant::Grant;
use crate::http::quoted;
use crate::metadata::AuthorizationServer;
use crate::settings::{AuthSettings, GrantType};
use crate::store::{ConfirmedIssuer, StoredIssuer};

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

/// The authorization server that was confirmed before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IssuerPin {
    None,
    /// There is one, but not which.
    Unreadable,
    Issuer(ConfirmedIssuer),
}

impl IssuerPin {
    pub(crate) fn issuer(&self) -> Option<&str> {
        self.confirmed().map(|confirmed| confirmed.issuer.as_str())
    }

    fn confirmed(&self) -> Option<&ConfirmedIssuer> {
        match self {
            Self::Issuer(confirmed) => Some(confirmed),
            Self::None | Self::Unreadable => None,
        }
    }

    /// Returns what is confirmed about an authorization server besides its identity.
    fn about(&self, server: &AuthorizationServer) -> ConfirmedIssuer {
        let confirmed = self.confirmed().filter(|confirmed| confirmed.issuer == server.issuer);
        confirmed.cloned().unwrap_or_else(|| ConfirmedIssuer::new(&server.issuer))
    }
}

/// Checks whether the user must confirm an authorization server before anything is sent to it.
pub(crate) fn check(
    server: &AuthorizationServer,
    settings: &AuthSettings,
    pin: &IssuerPin,
) -> Result<(), Box<UnconfirmedIssuer>> {
    if settings.authorization_server.is_some() {
        return Ok(());
    }
    let is_machine = !matches!(settings.grant, GrantType::AuthorizationCode);
    // A login sends them, too, whoever finishes it.
    let has_credentials =
        is_machine || settings.client_secret.is_some() || settings.private_key.is_some();
    let is_ours = is_machine || settings.client_id.is_some();
    let mut proposed = pin.about(server);
    let doubt = match pin {
        IssuerPin::Issuer(before) if before.issuer == server.issuer => None,
        // SEP-2352: credentials belong to the authorization server that issued them.
        IssuerPin::Issuer(before) if is_ours => Some(IssuerDoubt::Changed(quoted(&before.issuer))),
        IssuerPin::Unreadable if is_ours => Some(IssuerDoubt::First),
        IssuerPin::None if has_credentials => Some(IssuerDoubt::First),
        _ => None,
    };
    let is_unmistakable = is_machine || server.authorization_response_iss_parameter_supported;
    let doubt = match doubt {
        None if !is_unmistakable => elsewhere(server, &mut proposed),
        doubt => doubt,
    };
    match doubt {
        Some(doubt) => {
            Err(Box::new(UnconfirmedIssuer { issuer: server.issuer.clone(), doubt, proposed }))
        }
        None => Ok(()),
    }
}

/// Checks whether a login could be mixed up with one at another authorization server that knows us by
/// the same client id, unless it [cannot](is_unmistakable) anyway. An authorization server is trusted
/// with a client id after a login with it, or a confirmation: these are the `known` ones.
pub(crate) fn check_client(
    server: &AuthorizationServer,
    client: &ClientIdentity,
    pin: &IssuerPin,
    known: &[KnownClient],
) -> Result<(), Box<UnconfirmedIssuer>> {
    let same_client = || known.iter().filter(|known| known.id == client.id);
    if same_client().any(|known| known.issuer == server.issuer) {
        return Ok(());
    }
    match same_client().next() {
        Some(other) => Err(Box::new(UnconfirmedIssuer {
            issuer: server.issuer.clone(),
            doubt: IssuerDoubt::SharedClient(quoted(&other.issuer)),
            proposed: ConfirmedIssuer { client_id: Some(client.id.clone()), ..pin.about(server) },
        })),
        None => Ok(()),
    }
}

/// A client id, and an authorization server that knows us by it.
#[derive(Debug)]
pub(crate) struct KnownClient {
    pub(crate) issuer: String,
    pub(crate) id: String,
}

/// Whether a login there cannot be taken for one elsewhere: the user has configured it, or its
/// responses say whose they are.
pub(crate) fn is_unmistakable(server: &AuthorizationServer, settings: &AuthSettings) -> bool {
    server.authorization_response_iss_parameter_supported || settings.authorization_server.is_some()
}

/// Returns an endpoint at another origin than the issuer that is not confirmed: the page of another
/// authorization server, or a place that gets its codes. Adds the origin to what is `proposed`.
fn elsewhere(server: &AuthorizationServer, proposed: &mut ConfirmedIssuer) -> Option<IssuerDoubt> {
    let mut endpoints = endpoints_elsewhere(server, true);
    let found = endpoints.find(|(_, origin)| !proposed.origins.contains(origin));
    found.map(|(endpoint, origin)| {
        proposed.origins.insert(origin.clone());
        IssuerDoubt::Elsewhere { endpoint, origin: quoted(&origin) }
    })
}

/// Returns what is at another origin than the issuer, with the origin.
fn endpoints_elsewhere(
    server: &AuthorizationServer,
    has_login: bool,
) -> impl Iterator<Item = (&'static str, String)> {
    let issuer = Url::parse(&server.issuer).ok().map(|url| url.origin());
    let page = server.authorization_endpoint.as_ref().filter(|_| has_login);
    let login = page.map(|url| ("lets users log in", url));
    let endpoints = login.into_iter().chain([("receives codes", &server.token_endpoint)]);
    endpoints
        .filter(move |(_, url)| issuer.as_ref() != Some(&url.origin()))
        .map(|(endpoint, url)| (endpoint, url.origin().ascii_serialization()))
}

/// Returns what a login, or a token of a machine, confirms: the user was asked about the endpoints, or
/// the response has named the issuer.
pub(crate) fn confirmed_by(
    server: &AuthorizationServer,
    client: &ClientIdentity,
    settings: &AuthSettings,
) -> ConfirmedIssuer {
    let has_login = matches!(settings.grant, GrantType::AuthorizationCode);
    let origins = endpoints_elsewhere(server, has_login).map(|(_, origin)| origin);
    ConfirmedIssuer {
        client_id: Some(client.id.clone()),
        origins: origins.collect(),
        ..ConfirmedIssuer::new(&server.issuer)
    }
}

/// Returns the redirect URI for one authorization server: a response that another one has sent arrives
/// at another URI (RFC 9700, section 4.4.2.2).
pub(crate) fn redirect_uri(callback: &str, issuer: &str) -> String {
    format!("{callback}/{}", HEXLOWER.encode(&Sha256::digest(issuer)[..16]))
}

impl Authorizer {
    /// Confirms the authorization server of the MCP server: from now on it is the only one that gets the
    /// credentials of the configuration. If a login has failed with a doubt about it, also what the
    /// doubt was about.
    ///
    /// # Errors
    /// [`AuthError::Unconfirmed`] if the MCP server names another one, [`AuthError::NotAboutTokens`] if
    /// it requires no token, and others if that cannot be found out or stored.
    pub async fn confirm_issuer(&self, issuer: &str) -> Result<(), AuthError> {
        if self.challenge().is_none() {
            self.probe().await?;
        }
        let wanted = IssuerPin::Issuer(ConfirmedIssuer::new(issuer));
        let discovery = self.discover(&wanted).await?;
        if discovery.server.issuer != issuer {
            let issuer = discovery.server.issuer;
            return Err(AuthError::Unconfirmed(Box::new(UnconfirmedIssuer {
                proposed: ConfirmedIssuer::new(&issuer),
                issuer,
                doubt: IssuerDoubt::NotNamed(quoted(wanted.issuer().unwrap_or_default())),
            })));
        }
        // What the user was shown. It may name another place now.
        let stored = self.0.options.store.issuer(&self.0.key).await.ok().flatten();
        let asked = stored.and_then(|stored| stored.asked).filter(|asked| asked.issuer == issuer);
        match (asked, self.pinned_issuer().await) {
            (Some(asked), _) => self.pin_issuer(asked).await,
            (None, IssuerPin::Issuer(known)) if known.issuer == issuer => {
                self.pin_issuer(known).await
            }
            (None, _) => self.pin_issuer(ConfirmedIssuer::new(issuer)).await,
        }
    }

    /// Stores what the user has confirmed.
    pub(crate) async fn pin_issuer(&self, confirmed: ConfirmedIssuer) -> Result<(), AuthError> {
        tracing::info!(
            server = %self.0.key.server, issuer = confirmed.issuer, origins = ?confirmed.origins,
            client_id = confirmed.client_id, "confirmed an authorization server"
        );
        self.0.options.store.save_issuer(&self.0.key, &confirmed.into()).await
    }

    /// Remembers what the user is asked, so that a confirmation in another process is about that.
    pub(crate) async fn note_question(&self, pin: &IssuerPin, unconfirmed: &UnconfirmedIssuer) {
        // What cannot be read is not replaced by less.
        if *pin == IssuerPin::Unreadable {
            return;
        }
        let asked = Some(unconfirmed.proposed.clone());
        let question = StoredIssuer { confirmed: pin.confirmed().cloned(), asked };
        if let Err(error) = self.0.options.store.save_issuer(&self.0.key, &question).await {
            tracing::warn!(server = %self.0.key.server, %error, "cannot store a question");
        }
    }

    /// Returns the clients that authorization servers are trusted with, of all MCP servers.
    pub(crate) async fn known_clients(&self) -> Vec<KnownClient> {
        let store = &self.0.options.store;
        let (grants, pins) = (store.list().await, store.issuers().await);
        let of_grants = grants.unwrap_or_default().grants.into_iter().filter_map(|(_, stored)| {
            let grant = stored.ok()?.grant;
            Some(KnownClient { issuer: grant.issuer, id: grant.client.id })
        });
        // They are kept after a logout.
        let of_pins = pins.unwrap_or_default().into_iter().filter_map(|confirmed| {
            Some(KnownClient { issuer: confirmed.issuer, id: confirmed.client_id? })
        });
        of_grants.chain(of_pins).collect()
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
        Ok(check(&discovery.server, &self.0.options.settings, &pin)
            .err()
            .map(|unconfirmed| *unconfirmed))
    }

    /// Returns the authorization server that was confirmed, or that issued the stored grant: grants of
    /// older versions are their own confirmation, and say what pins of older versions lack.
    pub(crate) async fn pinned_issuer(&self) -> IssuerPin {
        let store = &self.0.options.store;
        let stored = match store.issuer(&self.0.key).await {
            Ok(stored) => stored.and_then(|stored| stored.confirmed),
            Err(error) => {
                tracing::warn!(server = %self.0.key.server, %error, "cannot read the confirmed issuer");
                return IssuerPin::Unreadable;
            }
        };
        if let Some(confirmed) = stored.as_ref().filter(|it| it.client_id.is_some()) {
            return IssuerPin::Issuer(confirmed.clone());
        }
        let grant = match store.load(&self.0.key).await {
            Ok(grant) => grant.map(|stored| stored.grant),
            Err(_) if stored.is_none() => return IssuerPin::Unreadable,
            Err(_) => None,
        };
        match (stored, grant) {
            (Some(confirmed), Some(grant)) if confirmed.issuer == grant.issuer => {
                IssuerPin::Issuer(with_grant(confirmed, &grant))
            }
            (Some(confirmed), _) => IssuerPin::Issuer(confirmed),
            (None, Some(grant)) => {
                IssuerPin::Issuer(with_grant(ConfirmedIssuer::new(&grant.issuer), &grant))
            }
            (None, None) => IssuerPin::None,
        }
    }

    /// Stores what only a grant of an older version confirms, before that is deleted.
    pub(crate) async fn keep_confirmation(&self) -> Result<(), AuthError> {
        let IssuerPin::Issuer(confirmed) = self.pinned_issuer().await else { return Ok(()) };
        let store = &self.0.options.store;
        let stored = store.issuer(&self.0.key).await?.unwrap_or_default();
        if stored.confirmed.as_ref() == Some(&confirmed) {
            return Ok(());
        }
        let stored = StoredIssuer { confirmed: Some(confirmed), ..stored };
        store.save_issuer(&self.0.key, &stored).await
    }
}

/// Adds what the grant of an older version says about its authorization server.
fn with_grant(confirmed: ConfirmedIssuer, grant: &Grant) -> ConfirmedIssuer {
    let issuer = Url::parse(&grant.issuer).ok().map(|url| url.origin());
    let origin = grant.token_endpoint.origin();
    let elsewhere = (issuer.as_ref() != Some(&origin)).then(|| origin.ascii_serialization());
    let origins: BTreeSet<_> = confirmed.origins.into_iter().chain(elsewhere).collect();
    ConfirmedIssuer { client_id: Some(grant.client.id.clone()), origins, ..confirmed }
}

#[cfg(test)]
#[path = "issuer_tests.rs"]
mod tests;
