//! Discovery: from a server's URL to its authorization server (RFC 9728, RFC 8414, OpenID Connect
//! Discovery; MCP authorization, "Authorization Server Discovery").

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer, Serialize};
use url::Url;

use crate::challenge::{AuthChallenge, Scheme, scopes};
use crate::error::AuthError;
use crate::http::{AuthHttpClient, AuthResponse, invalid, quoted, temporary};
use crate::settings::{AuthSettings, DpopUse, GrantType};

const RESOURCE: &str = "protected resource metadata";
const SERVER: &str = "authorization server metadata";
const RESOURCE_PATH: &str = "/.well-known/oauth-protected-resource";
const OAUTH_PATH: &str = "/.well-known/oauth-authorization-server";
const OPENID_PATH: &str = "/.well-known/openid-configuration";
/// Maximum number of authorization servers that are tried.
const MAX_SERVERS: usize = 4;
/// The scope of refresh tokens (OpenID Connect; SEP-2207).
pub(crate) const OFFLINE_ACCESS: &str = "offline_access";

/// What was found out about the authorization of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovery {
    /// The RFC 8707 resource, exactly as the server publishes it.
    pub resource: String,
    /// The authorization server.
    pub server: AuthorizationServer,
    /// The scopes to request. With `None`, the authorization server decides.
    pub scopes: Option<Vec<String>>,
    /// Whether to ask for tokens that are bound to a key (RFC 9449).
    pub dpop: bool,
}

impl Discovery {
    /// Requests these scopes, too.
    pub(crate) fn with_scopes(mut self, scopes: &BTreeSet<String>) -> Self {
        if !scopes.is_empty() {
            let usual = self.scopes.take().unwrap_or_default();
            let all: BTreeSet<String> = scopes.iter().cloned().chain(usual).collect();
            self.scopes = Some(all.into_iter().collect());
        }
        self
    }
}

/// An authorization server: its metadata, checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorizationServer {
    /// Its identity, compared byte by byte.
    pub issuer: String,
    /// Where users log in.
    pub authorization_endpoint: Option<Url>,
    /// Where tokens are issued.
    pub token_endpoint: Url,
    /// Where clients register (RFC 7591).
    pub registration_endpoint: Option<Url>,
    /// Where tokens are revoked (RFC 7009).
    pub revocation_endpoint: Option<Url>,
    /// The scopes it knows.
    pub scopes_supported: Option<Vec<String>>,
    /// The grant types it supports.
    pub grant_types_supported: Option<Vec<String>>,
    /// How clients may authenticate at the token endpoint.
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// The algorithms of client assertions.
    pub token_endpoint_auth_signing_alg_values_supported: Option<Vec<String>>,
    /// The algorithms of proofs, if it binds tokens to keys (RFC 9449).
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
    /// Whether each response to a login has an `iss` parameter (RFC 9207).
    #[serde(default, deserialize_with = "flag")]
    pub authorization_response_iss_parameter_supported: bool,
    /// Whether a client id may be the URL of a metadata document.
    #[serde(default, deserialize_with = "flag")]
    pub client_id_metadata_document_supported: bool,
}

#[derive(Debug, Deserialize)]
struct ResourceDocument {
    resource: String,
    authorization_servers: Option<Vec<String>>,
    scopes_supported: Option<Vec<String>>,
    #[serde(default, deserialize_with = "flag")]
    dpop_bound_access_tokens_required: bool,
}

#[derive(Debug, Deserialize)]
struct ServerDocument {
    #[serde(flatten)]
    server: AuthorizationServer,
    code_challenge_methods_supported: Option<Vec<String>>,
}

/// Some servers write null for what they do not support.
fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Ok(Option::<bool>::deserialize(from)?.unwrap_or_default())
}

/// Finds the authorization server of an MCP server, and the scopes to request.
///
/// The metadata of the resource comes from the URL in the challenge, or from the well-known places.
/// Without any, the origin of the server is taken as its own authorization server, as in MCP
/// 2025-03-26. A configured authorization server is preferred over those that are named, and of
/// those the `pinned` one.
///
/// # Errors
/// If documents are invalid, belong to another resource or issuer, or cannot be fetched; for logins
/// also if the authorization server does not support PKCE with S256.
pub async fn discover(
    http: &AuthHttpClient,
    server_url: &Url,
    challenge: Option<&AuthChallenge>,
    settings: &AuthSettings,
    pinned: Option<&str>,
) -> Result<Discovery, AuthError> {
    let document = resource_document(http, server_url, challenge).await?;
    let is_login = matches!(settings.grant, GrantType::AuthorizationCode);
    let named = document.as_ref().and_then(|document| document.authorization_servers.clone());
    let named = named.filter(|named| !named.is_empty()).map(|named| {
        let pinned = pinned.filter(|pinned| named.iter().any(|one| one == pinned));
        pinned.map_or(named, |pinned| vec![pinned.to_owned()])
    });
    let server = match (&settings.authorization_server, named) {
        (Some(configured), _) => configured_server(http, configured, is_login).await?,
        (None, Some(named)) => named_server(http, &named, is_login).await?,
        (None, None) => legacy_server(http, server_url, is_login).await?,
    };
    let is_bound = |document: &ResourceDocument| document.dpop_bound_access_tokens_required;
    let dpop = match settings.dpop {
        DpopUse::Auto => {
            challenge.is_some_and(|challenge| challenge.scheme == Scheme::Dpop)
                || document.as_ref().is_some_and(is_bound)
        }
        DpopUse::Always => true,
        DpopUse::Never => false,
    };
    let scopes = select_scopes(settings, challenge, document.as_ref(), &server, is_login);
    let resource = document.map_or_else(|| canonical(server_url), |document| document.resource);
    tracing::debug!(issuer = %server.issuer, dpop, "discovered an authorization server");
    Ok(Discovery { resource, server, scopes, dpop })
}

/// The order of MCP's "Scope Selection Strategy". Configured scopes are taken as they are.
fn select_scopes(
    settings: &AuthSettings,
    challenge: Option<&AuthChallenge>,
    document: Option<&ResourceDocument>,
    server: &AuthorizationServer,
    is_login: bool,
) -> Option<Vec<String>> {
    if let Some(configured) = &settings.scopes {
        return Some(configured.clone()).filter(|scopes| !scopes.is_empty());
    }
    let challenged = challenge.and_then(|challenge| challenge.scope.clone());
    let supported = || document?.scopes_supported.as_ref().map(|list| scopes(&list.join(" ")));
    let mut chosen = challenged.or_else(supported).filter(|scopes| !scopes.is_empty())?;
    // SEP-2207: only if the authorization server lists it. Alone, it would replace the default scopes.
    let offers = server.scopes_supported.iter().flatten().any(|scope| scope == OFFLINE_ACCESS);
    if is_login && offers && !chosen.iter().any(|scope| scope == OFFLINE_ACCESS) {
        chosen.push(OFFLINE_ACCESS.to_owned());
    }
    Some(chosen)
}

async fn resource_document(
    http: &AuthHttpClient,
    server_url: &Url,
    challenge: Option<&AuthChallenge>,
) -> Result<Option<ResourceDocument>, AuthError> {
    let mut failed = None;
    let named = challenge.and_then(|challenge| challenge.resource_metadata.clone());
    let named = named.map(|url| (url, true));
    let known = resource_places(server_url).into_iter().map(|url| (url, false));
    for (url, is_named) in named.into_iter().chain(known) {
        match fetch(http, RESOURCE, &url).await {
            Ok(response) if !response.status.is_success() => {}
            Ok(response) => match response.document::<ResourceDocument>(RESOURCE) {
                Ok(document) if belongs(&document.resource, server_url) => {
                    return Ok(Some(document));
                }
                Ok(document) => {
                    let cause = format!("it is for another resource: {}", document.resource);
                    return Err(invalid(RESOURCE, &response.url, &cause));
                }
                Err(error) if is_named => return Err(error),
                // A website that answers every path with a page.
                Err(error) => tracing::debug!(%error, "no metadata at a well-known URL"),
            },
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    // An outage must not look like an old server without metadata.
    failed.map_or(Ok(None), Err)
}

/// RFC 9728, section 3.1: with the path and query of the resource, then at the root.
fn resource_places(server_url: &Url) -> Vec<Url> {
    let mut places = Vec::new();
    let path = server_url.path().trim_end_matches('/');
    if !path.is_empty() || server_url.query().is_some() {
        let mut url = at(server_url, &format!("{RESOURCE_PATH}{path}"));
        url.set_query(server_url.query());
        places.push(url);
    }
    places.push(at(server_url, RESOURCE_PATH));
    places
}

/// Whether a resource is the server, or contains it: same origin, and a prefix of the path.
fn belongs(resource: &str, server_url: &Url) -> bool {
    let Some(resource) = strict_url(resource) else { return false };
    let path = resource.path().trim_end_matches('/');
    let rest = server_url.path().strip_prefix(path);
    resource.origin().is_tuple()
        && resource.origin() == server_url.origin()
        && resource.username().is_empty()
        && resource.password().is_none()
        && resource.fragment().is_none()
        && (resource.query().is_none() || resource.query() == server_url.query())
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The resource of a server that publishes none: its URL without a trailing slash at the root.
fn canonical(server_url: &Url) -> String {
    let url = AuthError::shown(server_url);
    match server_url.path() {
        "/" => url.trim_end_matches('/').to_owned(),
        _ => url,
    }
}

async fn configured_server(
    http: &AuthHttpClient,
    configured: &Url,
    is_login: bool,
) -> Result<AuthorizationServer, AuthError> {
    // A parsed URL has a slash that the issuer may not have.
    let issuers = match configured.path() {
        "/" => vec![canonical(configured), configured.to_string()],
        _ => vec![configured.to_string()],
    };
    Ok(server_document(http, configured, &issuers, is_login).await?)
}

async fn named_server(
    http: &AuthHttpClient,
    named: &[String],
    is_login: bool,
) -> Result<AuthorizationServer, AuthError> {
    let mut failed = None;
    for issuer in named.iter().take(MAX_SERVERS) {
        let outcome = match strict_url(issuer) {
            Some(url) => {
                let issuers = std::slice::from_ref(issuer);
                server_document(http, &url, issuers, is_login).await.map_err(AuthError::from)
            }
            None => Err(AuthError::Unsupported {
                issuer: format!("`{}`", quoted(issuer)),
                cause: "has an invalid URL".to_owned(),
            }),
        };
        match outcome {
            Ok(server) => return Ok(server),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    Err(failed.unwrap_or(AuthError::LoginRequired))
}

/// MCP 2025-03-26: metadata at the root of the server's origin, or the default endpoints there.
async fn legacy_server(
    http: &AuthHttpClient,
    server_url: &Url,
    is_login: bool,
) -> Result<AuthorizationServer, AuthError> {
    let root = at(server_url, "/");
    let issuer = canonical(&root);
    let issuers = [issuer.clone(), root.to_string()];
    match server_document(http, &root, &issuers, is_login).await {
        Ok(server) => return Ok(server),
        Err(NoServer::Unusable(error)) => return Err(error),
        Err(NoServer::Absent(error)) => {
            tracing::debug!(issuer, %error, "no metadata: using the default endpoints");
        }
    }
    http.check("the login", &root)?;
    Ok(AuthorizationServer {
        issuer,
        authorization_endpoint: Some(at(server_url, "/authorize")),
        token_endpoint: at(server_url, "/token"),
        registration_endpoint: Some(at(server_url, "/register")),
        revocation_endpoint: None,
        scopes_supported: None,
        grant_types_supported: None,
        token_endpoint_auth_methods_supported: None,
        token_endpoint_auth_signing_alg_values_supported: None,
        dpop_signing_alg_values_supported: None,
        authorization_response_iss_parameter_supported: false,
        client_id_metadata_document_supported: false,
    })
}

/// Why the metadata of an authorization server cannot be used.
enum NoServer {
    /// There is none. The error says what is there instead, such as a web page.
    Absent(AuthError),
    /// There is some, and it is invalid; or it cannot be fetched now.
    Unusable(AuthError),
}

impl From<NoServer> for AuthError {
    fn from(reason: NoServer) -> Self {
        match reason {
            NoServer::Absent(error) | NoServer::Unusable(error) => error,
        }
    }
}

async fn server_document(
    http: &AuthHttpClient,
    url: &Url,
    issuers: &[String],
    is_login: bool,
) -> Result<AuthorizationServer, NoServer> {
    http.check(SERVER, url).map_err(NoServer::Unusable)?;
    if url.query().is_some() || url.fragment().is_some() {
        let cause = "an issuer must not have a query or fragment";
        return Err(NoServer::Unusable(invalid(SERVER, url, cause)));
    }
    let (mut failed, mut odd, mut missing) = (None, None, None);
    for place in server_places(url) {
        let response = match fetch(http, SERVER, &place).await {
            Ok(response) => response,
            Err(error) => {
                failed = failed.or(Some(error));
                continue;
            }
        };
        if !response.status.is_success() {
            let cause = format!("HTTP {}", response.status.as_u16());
            missing = missing.or(Some(invalid(SERVER, &response.url, &cause)));
        } else if let Err(error) = response.object(SERVER) {
            odd = odd.or(Some(error));
        } else {
            match checked(http, &response, issuers, is_login) {
                Ok(server) => return Ok(server),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
    }
    if let Some(error) = failed {
        return Err(NoServer::Unusable(error));
    }
    let absent = odd.or(missing).unwrap_or_else(|| invalid(SERVER, url, "not found"));
    Err(NoServer::Absent(absent))
}

/// RFC 8414, section 3.1, then OpenID Connect with the path inserted and appended.
fn server_places(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut places = vec![
        at(issuer, &format!("{OAUTH_PATH}{path}")),
        at(issuer, &format!("{OPENID_PATH}{path}")),
    ];
    if !path.is_empty() {
        places.push(at(issuer, &format!("{path}{OPENID_PATH}")));
    }
    places
}

fn checked(
    http: &AuthHttpClient,
    response: &AuthResponse,
    issuers: &[String],
    is_login: bool,
) -> Result<AuthorizationServer, AuthError> {
    let document: ServerDocument = response.document(SERVER)?;
    let server = document.server;
    // RFC 8414, section 3.3: identical, without any normalization.
    if !issuers.contains(&server.issuer) {
        let cause = format!("it is for another issuer: {}", server.issuer);
        return Err(invalid(SERVER, &response.url, &cause));
    }
    http.check("the token endpoint", &server.token_endpoint)?;
    for (what, endpoint) in [
        ("the login", &server.authorization_endpoint),
        ("the registration", &server.registration_endpoint),
        ("the revocation", &server.revocation_endpoint),
    ] {
        endpoint.as_ref().map_or(Ok(()), |url| http.check(what, url))?;
    }
    if is_login {
        let methods = document.code_challenge_methods_supported.unwrap_or_default();
        let unsupported = |cause: &str| AuthError::Unsupported {
            issuer: quoted(&server.issuer),
            cause: cause.into(),
        };
        if !methods.iter().any(|method| method == "S256") {
            return Err(unsupported("does not support PKCE with S256"));
        }
        if server.authorization_endpoint.is_none() {
            return Err(unsupported("has no authorization endpoint"));
        }
    }
    Ok(server)
}

/// Returns a response that is not about an outage.
async fn fetch(
    http: &AuthHttpClient,
    what: &'static str,
    url: &Url,
) -> Result<AuthResponse, AuthError> {
    let response = http.get(what, url).await?;
    temporary(what, &response).map_or(Ok(response), Err)
}

/// Parses a URL that is also shown and compared as it is written: parsing would drop line breaks.
fn strict_url(text: &str) -> Option<Url> {
    let is_odd = |c: char| c.is_control() || c.is_whitespace();
    Url::parse(text).ok().filter(|_| !text.contains(is_odd))
}

/// Returns another path at the same origin.
fn at(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

#[cfg(test)]
#[path = "metadata_tests.rs"]
mod tests;
