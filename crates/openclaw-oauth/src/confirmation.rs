//! Which authorization servers get credentials and codes, and what the user must confirm first.
//!
//! An MCP server names its authorization server, so a hostile one can name any. The user confirms, or
//! configures, the one that gets the credentials of the configuration; it stays the only one, also
//! after a logout. A login with a browser is its own confirmation, unless the authorization server
//! could pass on the login of another one (mix-up: RFC 9700, section 4.4). Exactly that is confirmed
//! which was shown: an issuer, an origin of its endpoints, or its use of a client id.

use url::Url;

use crate::client::ClientIdentity;
use crate::issuer::{ConfirmedIssuer, IssuerDoubt, UnconfirmedIssuer};
use crate::metadata::AuthorizationServer;
use crate::quote::quoted;
use crate::settings::{AuthSettings, GrantType};

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

    pub(crate) fn confirmed(&self) -> Option<&ConfirmedIssuer> {
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

#[cfg(test)]
#[path = "confirmation_tests.rs"]
mod tests;
