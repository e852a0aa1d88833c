//! Bearer tokens of plain HTTP requests.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use openclaw_protocol::{ErrorCode, Principal, Scope};
use openclaw_secrets::SecretString;

use super::access::is_same_machine;
use super::handshake::{Rejection, check_token};
use super::listener::Gate;
use super::request_info::RequestInfo;

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
fn is_own(headers: &HeaderMap, visit: &RequestInfo, gate: &Gate) -> bool {
    let own = gate.options.token.as_ref().filter(|own| !own.is_empty());
    own.zip(shown(headers)).is_some_and(|(own, shown)| own.is(shown))
        && is_same_machine(visit.peer.remote.ip(), visit.peer.local)
}

/// Returns whoever has the bearer token, if they have this scope.
pub(super) fn authenticate(
    headers: &HeaderMap,
    visit: &RequestInfo,
    gate: &Gate,
    scope: Scope,
) -> Result<Principal, Box<Response>> {
    if is_own(headers, visit, gate) {
        return Ok(Principal::Operator);
    }
    let token = bearer(headers);
    let principal = check_token(token.as_ref(), visit.peer, &gate.options, &gate.attempts);
    let principal = principal.map_err(|Rejection { error, .. }| {
        let status = match error.code == ErrorCode::Unavailable {
            true => StatusCode::TOO_MANY_REQUESTS,
            false => StatusCode::UNAUTHORIZED,
        };
        let mut response = (status, error.message).into_response();
        let challenge = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        Box::new(response)
    })?;
    if principal.has(scope) {
        return Ok(principal);
    }
    let words = format!("the token lacks the scope `{}`", scope.name().unwrap_or_default());
    Err(Box::new((StatusCode::FORBIDDEN, words).into_response()))
}
