//! Who we are to an authorization server: a configured client, a client with a metadata document
//! (CIMD), or one that registers itself (RFC 7591).

use openclaw_secrets::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use url::Url;

use crate::error::AuthError;
use crate::http::{HttpClient, invalid, quoted, temporary};
use crate::jwt::{self, Algorithm, SigningKey};
use crate::metadata::AuthorizationServer;
use crate::settings::{AuthSettings, GrantType};

const REGISTRATION: &str = "the registration";
/// The name that users see when they are asked for permission.
const CLIENT_NAME: &str = "OpenClaw";
/// A registration is renewed when its secret expires within this time, in seconds.
const EXPIRY_MARGIN: u64 = 300;

/// How a client authenticates at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TokenAuth {
    /// Not at all: a public client.
    #[serde(rename = "none")]
    None,
    /// With its secret in the `Authorization` header.
    #[serde(rename = "client_secret_basic")]
    Basic,
    /// With its secret in the form.
    #[serde(rename = "client_secret_post")]
    Post,
    /// With a signed assertion.
    #[serde(rename = "private_key_jwt")]
    PrivateKeyJwt,
}

impl TokenAuth {
    /// Returns the name of the method (RFC 7591).
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::None, Self::Basic, Self::Post, Self::PrivateKeyJwt]
            .into_iter()
            .find(|method| method.name() == name)
    }
}

/// Where a client id comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Registration {
    /// The configuration.
    Configured,
    /// It is the URL of our metadata document.
    MetadataDocument,
    /// The authorization server assigned it.
    Dynamic,
}

/// A client of one authorization server. It serializes with its secrets, for the encrypted store only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientIdentity {
    /// The authorization server. Nothing of the identity is sent to another one.
    pub issuer: String,
    /// The client id.
    pub id: String,
    /// The client secret.
    #[serde(default, with = "crate::secret::option", skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretString>,
    /// How it authenticates at the token endpoint.
    pub auth: TokenAuth,
    /// The private key (PKCS#8 PEM), for [`TokenAuth::PrivateKeyJwt`].
    #[serde(default, with = "crate::secret::option", skip_serializing_if = "Option::is_none")]
    pub private_key: Option<SecretString>,
    /// The algorithm of the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signing_algorithm: Option<Algorithm>,
    /// Where the client id comes from.
    pub registration: Registration,
    /// The redirect URI it was registered with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
    /// When the secret expires, in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_expires_at: Option<u64>,
}

impl ClientIdentity {
    /// Returns the identity with the secret and key of the settings, if it is the configured client:
    /// they may have changed since it was stored.
    ///
    /// # Errors
    /// If the configured key is invalid.
    pub fn with_settings(mut self, settings: &AuthSettings) -> Result<Self, AuthError> {
        let is_same = settings.client_id.as_deref() == Some(self.id.as_str());
        if self.registration != Registration::Configured || !is_same {
            return Ok(self);
        }
        if settings.private_key.is_some() && self.auth == TokenAuth::PrivateKeyJwt {
            let key = signing_key(settings, None)?;
            self.signing_algorithm = key.map(|key| key.algorithm());
            self.private_key.clone_from(&settings.private_key);
        }
        self.secret.clone_from(&settings.client_secret);
        Ok(self)
    }

    /// Whether a stored dynamic registration can still be used for a login.
    fn is_usable(&self, issuer: &str, redirect_uri: &str, now: u64) -> bool {
        let is_fresh = self.secret_expires_at.is_none_or(|at| at > now + EXPIRY_MARGIN);
        let registered = self.redirect_uri.as_deref();
        self.registration == Registration::Dynamic
            && self.issuer == issuer
            && registered.is_some_and(|registered| is_same_redirect(registered, redirect_uri))
            && is_fresh
    }
}

/// Finds out, or registers, who we are to an authorization server: the configured client, else our
/// metadata document, else a dynamic registration. A `known` registration at the same server is used
/// again.
///
/// # Errors
/// [`AuthError::NotRegistered`] if none of these is possible, or the configured client was used at
/// another authorization server before (its credentials are not sent to a new one by a server's word).
pub async fn identify(
    http: &HttpClient,
    server: &AuthorizationServer,
    settings: &AuthSettings,
    redirect_uri: &str,
    known: Option<&ClientIdentity>,
) -> Result<ClientIdentity, AuthError> {
    if let Some(id) = &settings.client_id {
        return configured(server, settings, id, redirect_uri, known);
    }
    if settings.client_secret.is_some() || settings.private_key.is_some() {
        let setting = if settings.private_key.is_some() { "privateKey" } else { "clientSecret" };
        return Err(AuthError::Setting { setting, cause: "it needs a `clientId`".to_owned() });
    }
    if let Some(url) = &settings.client_metadata_url
        && server.client_id_metadata_document_supported
    {
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
    known: Option<&ClientIdentity>,
) -> Result<ClientIdentity, AuthError> {
    let moved = known.filter(|known| {
        known.registration == Registration::Configured
            && known.id == id
            && known.issuer != server.issuer
    });
    // SEP-2352: credentials belong to the authorization server that issued them.
    if let (Some(known), None) = (moved, &settings.authorization_server) {
        let cause = format!(
            "the configured client was registered at {}; set `authorizationServerUrl` to change it",
            quoted(&known.issuer)
        );
        return Err(AuthError::NotRegistered { issuer: quoted(&server.issuer), cause });
    }
    let key = signing_key(settings, Some(server))?;
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

/// Reads the configured key. An RSA key signs with PS256 where the server does not take RS256.
fn signing_key(
    settings: &AuthSettings,
    server: Option<&AuthorizationServer>,
) -> Result<Option<SigningKey>, AuthError> {
    let Some(pem) = &settings.private_key else { return Ok(None) };
    let algorithm = settings.signing_algorithm.as_deref().map(str::parse).transpose()?;
    let key = SigningKey::from_pem(pem, algorithm)?;
    let accepted = server
        .and_then(|server| server.token_endpoint_auth_signing_alg_values_supported.as_deref())
        .unwrap_or_default();
    let accepts = |algorithm: Algorithm| accepted.iter().any(|name| name == algorithm.name());
    if algorithm.is_none()
        && key.algorithm() == Algorithm::Rs256
        && !accepts(Algorithm::Rs256)
        && accepts(Algorithm::Ps256)
    {
        return SigningKey::from_pem(pem, Some(Algorithm::Ps256)).map(Some);
    }
    Ok(Some(key))
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

/// Returns the client metadata document to be hosted at a URL (CIMD).
pub fn metadata_document(client_metadata_url: &Url, redirect_uris: &[String]) -> Value {
    json!({
        "client_id": client_metadata_url.as_str(),
        "client_name": CLIENT_NAME,
        "redirect_uris": redirect_uris,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": TokenAuth::None.name(),
        "application_type": "native",
    })
}

async fn register(
    http: &HttpClient,
    server: &AuthorizationServer,
    settings: &AuthSettings,
    redirect_uri: &str,
) -> Result<ClientIdentity, AuthError> {
    let refused =
        |cause: String| AuthError::NotRegistered { issuer: quoted(&server.issuer), cause };
    let Some(endpoint) = &server.registration_endpoint else {
        let cause = "it does not support registration; set `clientId`".to_owned();
        return Err(refused(cause));
    };
    let methods = server.token_endpoint_auth_methods_supported.as_deref();
    let requested = choose_method(methods, &settings.grant).ok_or_else(|| {
        refused("it has no authentication method for registered clients; set `clientId`".to_owned())
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
    let mut grants = vec![match &settings.grant {
        GrantType::AuthorizationCode => "authorization_code",
        GrantType::ClientCredentials => "client_credentials",
        GrantType::JwtBearer { .. } | GrantType::Enterprise(_) => crate::token::JWT_BEARER,
    }];
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
/// is its own user. A server that lists nothing supports Basic (RFC 8414, section 2).
fn choose_method(supported: Option<&[String]>, grant: &GrantType) -> Option<TokenAuth> {
    let Some(supported) = supported else { return Some(TokenAuth::Basic) };
    let needs_secret = matches!(grant, GrantType::ClientCredentials);
    [TokenAuth::None, TokenAuth::Basic, TokenAuth::Post]
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

/// Whether two redirect URIs are the same to an authorization server. The port of a loopback URI may
/// differ (RFC 8252, section 7.3).
fn is_same_redirect(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    let (Ok(mut one), Ok(mut other)) = (Url::parse(one), Url::parse(other)) else { return false };
    let is_loopback = one.host().is_some_and(|host| openclaw_net::host::is_loopback(&host));
    let _ = one.set_port(None);
    let _ = other.set_port(None);
    is_loopback && one == other
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
