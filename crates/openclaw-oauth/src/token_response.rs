//! Responses of token endpoints (RFC 6749, section 5).

use openclaw_secrets::SecretString;
use serde_json::{Map, Value};

use crate::challenge::{Scheme, scopes};
use crate::client::TokenAuth;
use crate::error::AuthError;
use crate::http::{AuthResponse, invalid, temporary};
use crate::quote::quoted;

/// What errors call a request to a token endpoint.
pub(crate) const REQUEST: &str = "the token request";
/// The token type of authorization grants for other domains.
pub(crate) const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
/// Maximum lifetime of a token, in seconds: ten years.
const MAX_LIFETIME: u64 = 10 * 365 * 24 * 60 * 60;
/// Maximum length of a token: it must fit in a header.
const MAX_TOKEN: usize = 16 * 1024;

/// A successful token response.
#[derive(Debug, Clone)]
pub struct TokenResponse {
    /// The access token: visible ASCII characters.
    pub access_token: SecretString,
    /// How it must be presented.
    pub token_type: Scheme,
    /// Its lifetime in seconds, from 1 to ten years. `None` if the server did not say.
    pub expires_in: Option<u64>,
    /// The refresh token.
    pub refresh_token: Option<SecretString>,
    /// The granted scopes. `None` if they are those that were requested.
    pub scopes: Option<Vec<String>>,
    /// How the client authenticated itself.
    pub client_auth: TokenAuth,
}

impl TokenResponse {
    pub(crate) fn parse(
        response: &AuthResponse,
        has_proof: bool,
        client_auth: TokenAuth,
    ) -> Result<Self, AuthError> {
        let object = response.object(REQUEST)?;
        let read = Self::read(&object, has_proof, client_auth);
        read.map_err(|cause| invalid(REQUEST, &response.url, cause))
    }

    /// Errors do not quote the response: it contains tokens.
    fn read(
        object: &Map<String, Value>,
        has_proof: bool,
        client_auth: TokenAuth,
    ) -> Result<Self, &'static str> {
        let text = |name| object.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let access_token = text("access_token").ok_or("no access_token")?;
        if access_token.len() > MAX_TOKEN
            || !access_token.bytes().all(|byte| byte.is_ascii_graphic())
        {
            return Err("an access token that does not fit in a header");
        }
        let token_type = match text("token_type").map(str::to_ascii_lowercase).as_deref() {
            Some("bearer") => Scheme::Bearer,
            Some("dpop") if has_proof => Scheme::Dpop,
            Some("dpop") => {
                return Err(
                    "a token bound to a key that was not sent; set `auth.dpop` to \"always\"",
                );
            }
            Some(_) => return Err("an unsupported token_type"),
            None => return Err("no token_type"),
        };
        let refresh_token = text("refresh_token").map(SecretString::from);
        Ok(Self {
            access_token: access_token.into(),
            token_type,
            expires_in: lifetime(object.get("expires_in"))?,
            refresh_token,
            scopes: text("scope").map(scopes).filter(|scopes| !scopes.is_empty()),
            client_auth,
        })
    }
}

/// Some servers send a string or a fraction. Zero is sent for tokens that do not expire; if it is
/// meant literally, the token is renewed when the server rejects it.
fn lifetime(value: Option<&Value>) -> Result<Option<u64>, &'static str> {
    let number = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(_) => None,
    };
    let seconds =
        number.filter(|number: &f64| number.is_finite()).ok_or("an invalid expires_in")?;
    if seconds < 0.0 {
        return Err("an access token that has already expired");
    }
    // The cast saturates.
    Ok(Some((seconds as u64).min(MAX_LIFETIME)).filter(|seconds| *seconds > 0))
}

/// Returns the OAuth error code of a response with any status.
pub(crate) fn error_code(response: &AuthResponse) -> Option<String> {
    let object = response.object(REQUEST).ok()?;
    object.get("error").and_then(Value::as_str).map(quoted)
}

/// Returns an error if a response is one: temporary by its status or code, or a rejection.
pub(crate) fn check_error(what: &'static str, response: &AuthResponse) -> Result<(), AuthError> {
    if let Some(error) = temporary(what, response) {
        return Err(error);
    }
    let Some(code) = error_code(response) else {
        if response.status.is_success() {
            return Ok(());
        }
        let cause = format!("HTTP {} without an OAuth error", response.status.as_u16());
        return Err(invalid(what, &response.url, &cause));
    };
    if matches!(code.as_str(), "temporarily_unavailable" | "server_error" | "slow_down") {
        let url = AuthError::shown(&response.url);
        return Err(AuthError::Unreachable { what, url, cause: code });
    }
    let object = response.object(what)?;
    let description = object.get("error_description").and_then(Value::as_str).map(quoted);
    tracing::debug!(what, code, "rejected");
    Err(AuthError::Rejected { what, code, description })
}

/// Returns the authorization grant of a token exchange (RFC 8693, section 2.2.1). Its `token_type` is
/// `N_A`, since it is not an access token.
pub(crate) fn id_jag(
    what: &'static str,
    response: &AuthResponse,
) -> Result<SecretString, AuthError> {
    let object = response.object(what)?;
    let text = |name| object.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    if text("issued_token_type") != Some(ID_JAG) {
        return Err(invalid(what, &response.url, "not an authorization grant (ID-JAG)"));
    }
    let grant = text("access_token").ok_or_else(|| invalid(what, &response.url, "no token"))?;
    Ok(grant.into())
}
