//! Dynamic client registration (RFC 7591).

use openclaw_secrets::SecretString;
use serde_json::{Map, Value, json};

use crate::client::{CLIENT_NAME, ClientIdentity, Registration, TokenAuth, has};
use crate::error::AuthError;
use crate::http::{AuthHttpClient, invalid, temporary};
use crate::metadata::AuthorizationServer;
use crate::quote::quoted;
use crate::settings::{AuthSettings, GrantType};

const REGISTRATION: &str = "the registration";

/// Registers a client.
pub(crate) async fn register(
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
