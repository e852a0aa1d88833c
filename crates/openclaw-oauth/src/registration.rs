//! Who we are to an authorization server: a configured client, a client with a metadata document
//! (CIMD), or one that registers itself (RFC 7591).

use openclaw_secrets::SecretString;
use serde_json::{Map, Value, json};
use url::Url;

use crate::client::{CLIENT_NAME, ClientIdentity, Registration, TokenAuth, signing_key};
use crate::error::AuthError;
use crate::http::{AuthHttpClient, invalid, temporary};
use crate::jwt;
use crate::metadata::AuthorizationServer;
use crate::quote::quoted;
use crate::settings::{AuthSettings, GrantType};

const REGISTRATION: &str = "the registration";

/// Finds out, or registers, who we are to an authorization server: the configured client, else our
/// metadata document, else a dynamic registration. A `known` registration at the same server is used
/// again.
///
/// # Errors
/// [`AuthError::NotRegistered`] if none of these is possible.
pub async fn identify(
    http: &AuthHttpClient,
    server: &AuthorizationServer,
    settings: &AuthSettings,
    redirect_uri: &str,
    known: Option<&ClientIdentity>,
) -> Result<ClientIdentity, AuthError> {
    if let Some(id) = &settings.client_id {
        return configured(server, settings, id, redirect_uri);
    }
    if settings.client_secret.is_some() || settings.private_key.is_some() {
        let setting = if settings.private_key.is_some() { "privateKey" } else { "clientSecret" };
        return Err(AuthError::Setting { setting, cause: "it needs a `clientId`".to_owned() });
    }
    if let Some(url) = document_url(server, settings) {
        return document_identity(server, url, redirect_uri);
    }
    if let Some(known) = known
        && known.is_usable(&server.issuer, redirect_uri, jwt::now())
    {
        return Ok(known.clone());
    }
    register(http, server, settings, redirect_uri).await
}

fn configured(
    server: &AuthorizationServer,
    settings: &AuthSettings,
    id: &str,
    redirect_uri: &str,
) -> Result<ClientIdentity, AuthError> {
    let algorithms = server.token_endpoint_auth_signing_alg_values_supported.as_deref();
    let key = signing_key(settings, algorithms.unwrap_or_default())?;
    let auth = match (&key, &settings.client_secret) {
        (Some(_), _) => TokenAuth::PrivateKeyJwt,
        (None, Some(_)) => match server.token_endpoint_auth_methods_supported.as_deref() {
            Some(methods) if !has(methods, TokenAuth::Basic) && has(methods, TokenAuth::Post) => {
                TokenAuth::Post
            }
            _ => TokenAuth::Basic,
        },
        (None, None) => TokenAuth::None,
    };
    Ok(ClientIdentity {
        issuer: server.issuer.clone(),
        id: id.to_owned(),
        secret: settings.client_secret.clone(),
        auth,
        private_key: settings.private_key.clone(),
        signing_algorithm: key.map(|key| key.algorithm()),
        registration: Registration::Configured,
        redirect_uri: Some(redirect_uri.to_owned()),
        secret_expires_at: None,
    })
}

/// Returns the URL of our metadata document, if the server supports them.
fn document_url<'a>(server: &AuthorizationServer, settings: &'a AuthSettings) -> Option<&'a Url> {
    let is_supported = server.client_id_metadata_document_supported;
    settings.client_metadata_url.as_ref().filter(|_| is_supported)
}

/// Whether this program registers itself at a server, unless it has done so before.
pub(crate) fn registers_itself(server: &AuthorizationServer, settings: &AuthSettings) -> bool {
    settings.client_id.is_none() && document_url(server, settings).is_none()
}

fn document_identity(
    server: &AuthorizationServer,
    url: &Url,
    redirect_uri: &str,
) -> Result<ClientIdentity, AuthError> {
    if url.scheme() != "https" || url.path() == "/" || url.fragment().is_some() {
        return Err(AuthError::Setting {
            setting: "clientMetadataUrl",
            cause: "it must be an https URL with a path".to_owned(),
        });
    }
    Ok(ClientIdentity {
        issuer: server.issuer.clone(),
        id: url.to_string(),
        secret: None,
        auth: TokenAuth::None,
        private_key: None,
        signing_algorithm: None,
        registration: Registration::MetadataDocument,
        redirect_uri: Some(redirect_uri.to_owned()),
        secret_expires_at: None,
    })
}

/// Registers a client.
async fn register(
    http: &AuthHttpClient,
    server: &AuthorizationServer,
    settings: &AuthSettings,
    redirect_uri: &str,
) -> Result<ClientIdentity, AuthError> {
    let refused =
        |cause: String| AuthError::NotRegistered { issuer: quoted(&server.issuer), cause };
    let Some(endpoint) = &server.registration_endpoint else {
        let cause = "it does not register clients automatically".to_owned();
        return Err(refused(cause));
    };
    let methods = server.token_endpoint_auth_methods_supported.as_deref();
    let requested = choose_method(methods, &settings.grant).ok_or_else(|| {
        refused("it has no authentication method for registered clients".to_owned())
    })?;
    let body = registration_request(server, settings, redirect_uri, requested);
    let response = http.post_json(REGISTRATION, endpoint, &body).await?;
    if let Some(error) = temporary(REGISTRATION, &response) {
        return Err(error);
    }
    let object = response.object(REGISTRATION);
    if !response.status.is_success() {
        let object = object.unwrap_or_default();
        let text = |name| object.get(name).and_then(Value::as_str).map(quoted);
        return Err(refused(match (text("error"), text("error_description")) {
            (Some(code), Some(description)) => format!("{code} ({description})"),
            (Some(code), None) => code,
            _ => format!("HTTP {}", response.status.as_u16()),
        }));
    }
    let object = object?;
    let identity = registered(server, &object, redirect_uri, requested);
    let identity = identity.map_err(|cause| invalid(REGISTRATION, endpoint, cause))?;
    tracing::info!(issuer = %server.issuer, auth = identity.auth.name(), "registered a client");
    Ok(identity)
}

fn registration_request(
    server: &AuthorizationServer,
    settings: &AuthSettings,
    redirect_uri: &str,
    auth: TokenAuth,
) -> Value {
    let offers = |grant: &str| {
        server.grant_types_supported.as_ref().is_none_or(|all| all.iter().any(|one| one == grant))
    };
    let is_login = matches!(settings.grant, GrantType::AuthorizationCode);
    let mut grants = vec![settings.grant.name()];
    if is_login && offers("refresh_token") {
        grants.push("refresh_token");
    }
    let mut body = json!({
        "client_name": CLIENT_NAME,
        "application_type": "native",
        "grant_types": grants,
        "token_endpoint_auth_method": auth.name(),
    });
    if is_login {
        body["redirect_uris"] = json!([redirect_uri]);
        body["response_types"] = json!(["code"]);
    }
    if let Some(scopes) = settings.scopes.as_ref().filter(|scopes| !scopes.is_empty()) {
        body["scope"] = scopes.join(" ").into();
    }
    body
}

/// A program on the user's machine cannot keep a secret, so none is preferred, except where the client
/// is its own user. A server that lists nothing supports Basic (RFC 8414, section 2). One that lists
/// both gets the secret in the form: servers of the Python SDK offer Basic, but reject it without a
/// `client_id` in the form, with which others reject it.
fn choose_method(supported: Option<&[String]>, grant: &GrantType) -> Option<TokenAuth> {
    let Some(supported) = supported else { return Some(TokenAuth::Basic) };
    let needs_secret = matches!(grant, GrantType::ClientCredentials);
    [TokenAuth::None, TokenAuth::Post, TokenAuth::Basic]
        .into_iter()
        .filter(|method| !needs_secret || *method != TokenAuth::None)
        .find(|method| has(supported, *method))
}

fn registered(
    server: &AuthorizationServer,
    object: &Map<String, Value>,
    redirect_uri: &str,
    requested: TokenAuth,
) -> Result<ClientIdentity, &'static str> {
    let text = |name| object.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let is_visible = |text: &&str| text.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
    let id = text("client_id").filter(is_visible).ok_or("no valid client_id")?;
    let secret = text("client_secret");
    let auth = match text("token_endpoint_auth_method") {
        Some(name) => TokenAuth::from_name(name).ok_or("an unknown authentication method")?,
        // A server that issues no secret takes the client for a public one.
        None if secret.is_none() => TokenAuth::None,
        None => requested,
    };
    match auth {
        TokenAuth::Basic | TokenAuth::Post if secret.is_none() => return Err("no client_secret"),
        TokenAuth::PrivateKeyJwt => return Err("an authentication method without a key"),
        _ => {}
    }
    // Zero means that it does not expire (RFC 7591, section 3.2.1).
    let expires_at = object.get("client_secret_expires_at").and_then(Value::as_u64);
    Ok(ClientIdentity {
        issuer: server.issuer.clone(),
        id: id.to_owned(),
        secret: secret.filter(|_| auth != TokenAuth::None).map(SecretString::from),
        auth,
        private_key: None,
        signing_algorithm: None,
        registration: Registration::Dynamic,
        redirect_uri: Some(redirect_uri.to_owned()),
        secret_expires_at: expires_at.filter(|at| *at > 0 && auth != TokenAuth::None),
    })
}

fn has(methods: &[String], method: TokenAuth) -> bool {
    methods.iter().any(|name| name == method.name())
}

#[cfg(test)]
#[path = "registration_tests.rs"]
mod tests;
