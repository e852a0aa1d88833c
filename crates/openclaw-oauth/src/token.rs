//! Token requests: authorization code, refresh, client credentials, assertions (RFC 6749, RFC 7523,
//! RFC 8693, RFC 8707) and revocation (RFC 7009).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, StatusCode};
use openclaw_secrets::SecretString;
use url::{Url, form_urlencoded};

use crate::authorize::AuthorizationRequest;
use crate::client::{ClientIdentity, Registration, TokenAuth};
use crate::dpop::{DpopKey, PROOF_HEADER};
use crate::error::AuthError;
use crate::http::{AuthHttpClient, AuthResponse};
use crate::jwt::{self, SigningKey};
use crate::server_hints::ServerHints;
use crate::settings::{Enterprise, JWT_BEARER};
use crate::token_response::{ID_JAG, REQUEST, check_error, error_code, id_jag};

pub use crate::token_response::TokenResponse;

const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const CLIENT_ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

const EXCHANGE: &str = "the token exchange";
const REVOCATION: &str = "the revocation";

/// A token endpoint, with the client and the resource that tokens are requested for.
#[derive(Debug, Clone, Copy)]
pub struct TokenEndpoint<'a> {
    /// The HTTP client.
    pub http: &'a AuthHttpClient,
    /// The URL of the endpoint.
    pub url: &'a Url,
    /// The client. Its issuer is the audience of client assertions.
    pub client: &'a ClientIdentity,
    /// The RFC 8707 resource.
    pub resource: &'a str,
    /// The key to bind tokens to.
    pub dpop: Option<&'a DpopKey>,
    /// What servers said before.
    pub hints: &'a ServerHints,
}

type Form<'a> = Vec<(&'a str, &'a str)>;

impl TokenEndpoint<'_> {
    /// Exchanges the code of a login, as returned by [`AuthorizationRequest::check`].
    ///
    /// # Errors
    /// If the request is rejected, the response is invalid, or the server cannot be reached.
    pub async fn exchange_code(
        &self,
        request: &AuthorizationRequest,
        code: &SecretString,
    ) -> Result<TokenResponse, AuthError> {
        let form = vec![
            ("grant_type", "authorization_code"),
            ("code", code.expose()),
            ("redirect_uri", request.redirect_uri.as_str()),
            ("code_verifier", request.verifier().expose()),
        ];
        self.request(form, &[]).await
    }

    /// Renews tokens. Without scopes, those of the login are kept. The response may have a new refresh
    /// token; if not, the old one stays valid.
    ///
    /// # Errors
    /// As for [`exchange_code`](Self::exchange_code); `invalid_grant` if the refresh token is no longer
    /// valid.
    pub async fn refresh(
        &self,
        refresh_token: &SecretString,
        scopes: &[String],
    ) -> Result<TokenResponse, AuthError> {
        let form = vec![("grant_type", "refresh_token"), ("refresh_token", refresh_token.expose())];
        self.request(form, scopes).await
    }

    /// Requests a token for the client itself.
    ///
    /// # Errors
    /// As for [`exchange_code`](Self::exchange_code).
    pub async fn client_credentials(&self, scopes: &[String]) -> Result<TokenResponse, AuthError> {
        self.request(vec![("grant_type", "client_credentials")], scopes).await
    }

    /// Requests a token for the bearer of an assertion. It is never repeated after an error (SEP-1933).
    ///
    /// # Errors
    /// As for [`exchange_code`](Self::exchange_code).
    pub async fn jwt_bearer(
        &self,
        assertion: &SecretString,
        scopes: &[String],
    ) -> Result<TokenResponse, AuthError> {
        let form = vec![("grant_type", JWT_BEARER), ("assertion", assertion.expose())];
        self.request(form, scopes).await
    }

    /// Requests a token for a user for whom an identity provider vouches: exchanges the ID token there
    /// for an authorization grant (ID-JAG), and that here for an access token (SEP-990).
    ///
    /// # Errors
    /// As for [`exchange_code`](Self::exchange_code), also from the identity provider.
    pub async fn enterprise(
        &self,
        provider: &Enterprise,
        scopes: &[String],
    ) -> Result<TokenResponse, AuthError> {
        let scope = scopes.join(" ");
        let mut form = vec![
            ("grant_type", TOKEN_EXCHANGE),
            ("requested_token_type", ID_JAG),
            ("audience", self.client.issuer.as_str()),
            ("resource", self.resource),
            ("subject_token", provider.id_token.expose()),
            ("subject_token_type", ID_TOKEN),
        ];
        if !scope.is_empty() {
            form.push(("scope", &scope));
        }
        let mut headers = HeaderMap::new();
        match &provider.client_secret {
            Some(secret) => {
                headers.insert(AUTHORIZATION, basic(&provider.client_id, secret.expose()));
            }
            None => form.push(("client_id", &provider.client_id)),
        }
        let url = &provider.token_endpoint;
        let response = self.http.post_form(EXCHANGE, url, &form, headers).await?;
        check_error(EXCHANGE, &response)?;
        let grant = id_jag(EXCHANGE, &response)?;
        self.jwt_bearer(&grant, scopes).await
    }

    async fn request(
        &self,
        mut form: Form<'_>,
        scopes: &[String],
    ) -> Result<TokenResponse, AuthError> {
        let scope = scopes.join(" ");
        if !scope.is_empty() {
            form.push(("scope", &scope));
        }
        form.push(("resource", self.resource));
        let grant = form.first().map_or("", |(_, grant)| grant);
        tracing::debug!(issuer = %self.client.issuer, grant, "requesting a token");
        let mut auth = self.client.auth;
        let mut response = self.send(&form, auth).await?;
        // A request without client authentication or proof was not processed, so none of these is a
        // second attempt.
        if self.is_provable(&response) {
            response = self.send(&form, auth).await?;
        }
        if let Some(other) = self.other_method(&response).filter(|_| grant != JWT_BEARER) {
            tracing::debug!(issuer = %self.client.issuer, method = other.name(), "trying another method");
            auth = other;
            response = self.send(&form, auth).await?;
        }
        self.hints.note_nonce(self.url, &response.headers);
        check_error(REQUEST, &response)?;
        TokenResponse::parse(&response, self.dpop.is_some(), auth)
    }

    /// Whether a rejected proof or assertion may be accepted now: with the nonce of the response (RFC
    /// 9449, section 8), or with its time.
    fn is_provable(&self, response: &AuthResponse) -> bool {
        let signs = self.client.auth == TokenAuth::PrivateKeyJwt;
        match error_code(response).as_deref() {
            Some("use_dpop_nonce") if self.dpop.is_some() => {
                self.hints.note_nonce(self.url, &response.headers)
            }
            Some("invalid_dpop_proof") if self.dpop.is_some() => {
                self.hints.note_time(self.url, &response.headers)
            }
            Some("invalid_client") if signs => self.hints.note_time(self.url, &response.headers),
            _ => false,
        }
    }

    /// Returns the other way to send a configured secret, if the server rejected the first one. The
    /// client was registered for one of them, and the configuration does not say for which; some
    /// servers offer both in their metadata and accept one.
    fn other_method(&self, response: &AuthResponse) -> Option<TokenAuth> {
        let is_rejected = response.status == StatusCode::UNAUTHORIZED
            && matches!(
                error_code(response).as_deref(),
                Some("invalid_client" | "unauthorized_client")
            );
        match self.client.auth {
            _ if !is_rejected || self.client.registration != Registration::Configured => None,
            TokenAuth::Basic => Some(TokenAuth::Post),
            TokenAuth::Post => Some(TokenAuth::Basic),
            TokenAuth::None | TokenAuth::PrivateKeyJwt => None,
        }
    }

    async fn send(&self, form: &Form<'_>, auth: TokenAuth) -> Result<AuthResponse, AuthError> {
        let authentication =
            ClientAuthentication::new(self.client, auth, self.hints.now(self.url))?;
        let (mut form, mut headers) = (form.clone(), HeaderMap::new());
        authentication.apply(&mut form, &mut headers);
        if let Some(key) = self.dpop {
            let proof = key.proof("POST", self.url, None, self.hints)?;
            headers.insert(PROOF_HEADER, sensitive(&proof)?);
        }
        self.http.post_form(REQUEST, self.url, &form, headers).await
    }
}

/// Revokes an access or refresh token (RFC 7009). Prefer the refresh token: access tokens of the same
/// login end with it.
///
/// # Errors
/// If the request is rejected, or the server cannot be reached.
pub async fn revoke(
    http: &AuthHttpClient,
    url: &Url,
    client: &ClientIdentity,
    token: &SecretString,
    is_refresh_token: bool,
) -> Result<(), AuthError> {
    let hint = if is_refresh_token { "refresh_token" } else { "access_token" };
    let mut form = vec![("token", token.expose()), ("token_type_hint", hint)];
    let mut headers = HeaderMap::new();
    let authentication = ClientAuthentication::new(client, client.auth, jwt::now())?;
    authentication.apply(&mut form, &mut headers);
    tracing::debug!(issuer = %client.issuer, hint, "revoking a token");
    let response = http.post_form(REVOCATION, url, &form, headers).await?;
    // The body of a success is ignored (RFC 7009, section 2.2); it is often empty.
    if response.status.is_success() { Ok(()) } else { check_error(REVOCATION, &response) }
}

/// What a client adds to a request to authenticate itself.
struct ClientAuthentication<'a> {
    client: &'a ClientIdentity,
    auth: TokenAuth,
    assertion: Option<SecretString>,
}

impl<'a> ClientAuthentication<'a> {
    fn new(client: &'a ClientIdentity, auth: TokenAuth, now: u64) -> Result<Self, AuthError> {
        let assertion = match (auth, &client.private_key) {
            (TokenAuth::PrivateKeyJwt, Some(pem)) => {
                let key = SigningKey::from_pem(pem, client.signing_algorithm)?;
                Some(key.client_assertion(&client.id, &client.issuer, now)?)
            }
            (TokenAuth::PrivateKeyJwt, None) => return Err(missing("privateKey")),
            _ => None,
        };
        let needs_secret = matches!(auth, TokenAuth::Basic | TokenAuth::Post);
        if needs_secret && client.secret.is_none() {
            return Err(missing("clientSecret"));
        }
        Ok(Self { client, auth, assertion })
    }

    fn apply<'b>(&'b self, form: &mut Form<'b>, headers: &mut HeaderMap) {
        let secret = self.client.secret.as_ref().map_or("", SecretString::expose);
        if self.auth == TokenAuth::Basic {
            headers.insert(AUTHORIZATION, basic(&self.client.id, secret));
            return;
        }
        form.push(("client_id", &self.client.id));
        if self.auth == TokenAuth::Post {
            form.push(("client_secret", secret));
        }
        if let Some(assertion) = &self.assertion {
            form.push(("client_assertion_type", CLIENT_ASSERTION));
            form.push(("client_assertion", assertion.expose()));
        }
    }
}

fn missing(setting: &'static str) -> AuthError {
    AuthError::Setting { setting, cause: "it is not set, but the client needs it".to_owned() }
}

/// RFC 6749, section 2.3.1: id and secret are form-encoded first.
fn basic(id: &str, secret: &str) -> HeaderValue {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let credentials = STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret)));
    // Base64 always fits in a header.
    sensitive(&format!("Basic {credentials}")).unwrap_or(HeaderValue::from_static("Basic"))
}

fn sensitive(text: &str) -> Result<HeaderValue, AuthError> {
    let mut value =
        HeaderValue::from_str(text).map_err(|_| AuthError::Crypto("an invalid header"))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
