//! Bearer tokens of plain HTTP requests.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use openclaw_protocol::{ErrorCode, Principal, Scope};
use openclaw_secrets::SecretString;
use serde_json::json;

use super::access::is_same_machine;
use super::connection_info::ConnectionInfo;
use super::handshake::{Rejection, check_token};
use super::listener::Gate;

/// Where programs try to register for a login (RFC 7591) when a token is missing.
pub(super) const REGISTER: &str = "/register";

/// How a program gets a token with this scope. In a header, too, so without quotation marks.
fn how(scope: Scope) -> String {
    let scope = scope.name().unwrap_or_default();
    format!(
        "the gateway has no login for programs: make a token with `openclaw gateway token create \
         --name NAME --scope {scope}` and send it as `Authorization: Bearer TOKEN`"
    )
}

/// Returns the bearer token of a request.
pub(super) fn bearer(headers: &HeaderMap) -> Option<SecretString> {
    shown(headers).map(SecretString::from)
}

fn shown(headers: &HeaderMap) -> Option<&str> {
    let shown = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = shown.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Whether the request has our own token and comes from this machine, where it is accepted whatever
/// others have tried. The usual case, for which nothing is copied or looked up.
fn is_own(headers: &HeaderMap, connection: &ConnectionInfo, gate: &Gate) -> bool {
    let own = gate.options.token.as_ref().filter(|own| !own.is_empty());
    own.zip(shown(headers)).is_some_and(|(own, shown)| own.is(shown))
        && is_same_machine(connection.peer.remote.ip(), connection.peer.local)
}

/// Returns whoever has the bearer token, if they have this scope.
pub(super) fn authenticate(
    headers: &HeaderMap,
    connection: &ConnectionInfo,
    gate: &Gate,
    scope: Scope,
) -> Result<Principal, Box<Response>> {
    if is_own(headers, connection, gate) {
        return Ok(Principal::Operator);
    }
    let token = bearer(headers);
    let principal = check_token(token.as_ref(), connection.peer, &gate.options, &gate.attempts);
    let principal = principal.map_err(|Rejection { error, .. }| {
        let status = match error.code == ErrorCode::Unavailable {
            true => StatusCode::TOO_MANY_REQUESTS,
            false => StatusCode::UNAUTHORIZED,
        };
        if status != StatusCode::UNAUTHORIZED {
            return Box::new((status, error.message).into_response());
        }
        let message = format!("{}; {}", error.message, how(scope));
        let challenge = format!("Bearer error=\"invalid_token\", error_description=\"{message}\"");
        let mut response = (status, message).into_response();
        let challenge = HeaderValue::from_str(&challenge);
        let challenge = challenge.unwrap_or_else(|_| HeaderValue::from_static("Bearer"));
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        Box::new(response)
    })?;
    if principal.has(scope) {
        return Ok(principal);
    }
    let message = format!("the token lacks the scope `{}`", scope.name().unwrap_or_default());
    Err(Box::new((StatusCode::FORBIDDEN, message).into_response()))
}

/// Rejects a registration. Programs without a token attempt one after a 401, and show its error instead of
/// the 401.
pub(super) async fn no_registration() -> Response {
    let error = json!({ "error": "access_denied", "error_description": how(Scope::Write) });
    (StatusCode::FORBIDDEN, axum::Json(error)).into_response()
}
