//! A single HTTP request, and the interpretation of its status.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, Method, Response, StatusCode};
use openclaw_oauth::authorizer::{AuthAttempts, SentToken};
use openclaw_oauth::error::AuthError;
use tokio::time::timeout;
use url::{Origin, Url};

use super::body::{self, beginning, refuse_compressed, shown};
use super::headers::{self, MessageSubject, Object};
use super::http_client::{HttpError, PooledBody, RequestTarget};
use super::route::{Protocol, Route};
use super::{HttpWire, reach};
use crate::wire::call_error::{CallError, UnusableResponse};
use crate::wire::peek::{LineKind, peek};
use crate::wire::redacted;

/// Maximum number of redirects within the origin.
const MAX_REDIRECTS: usize = 5;
/// A longer `Retry-After` is reduced to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);
/// Timeout of the ping that checks a session.
const PING: Duration = Duration::from_secs(10);
/// A longer challenge is ignored.
const MAX_CHALLENGE: usize = 4 * 1024;

/// A message to be sent.
#[derive(Debug, Clone)]
pub(super) struct Outgoing<'a> {
    pub(super) subject: MessageSubject<'a>,
    pub(super) body: Bytes,
}

/// Why a POST was not accepted.
#[derive(Debug)]
pub(super) enum PostRefusal {
    /// The server does not know the session.
    SessionLost,
    Failed(CallError),
}

impl From<CallError> for PostRefusal {
    fn from(error: CallError) -> Self {
        Self::Failed(error)
    }
}

impl HttpWire {
    /// Posts a message. The response has a success status, and its body is not read yet.
    pub(super) async fn post(
        &self,
        route: &Route,
        message: &Outgoing<'_>,
    ) -> Result<Response<PooledBody>, PostRefusal> {
        let target = match &route.protocol {
            Protocol::Sse { endpoint } => endpoint,
            Protocol::Modern | Protocol::Streamable => &self.target,
        };
        let headers = || headers::of_post(route, message.subject);
        let response = self.send(Method::POST, target, headers, Some(&message.body)).await?;
        if response.status().is_success() {
            refuse_compressed(&response)?;
            return Ok(response);
        }
        if response.status() == StatusCode::NOT_FOUND && route.session.is_some() {
            // Read, so that the connection can be reused.
            beginning(response, body::MAX_FAILURE).await;
            return Err(PostRefusal::SessionLost);
        }
        let is_bad = response.status() == StatusCode::BAD_REQUEST;
        let failure = Box::pin(self.failure(response)).await;
        if is_bad && route.session.is_some() && Box::pin(self.is_forgotten(route, target)).await {
            return Err(PostRefusal::SessionLost);
        }
        Err(failure.into())
    }

    /// Returns whether the server no longer knows the session. It should respond with 404; many
    /// respond with 400, like the reference servers, which can also mean a bad message. A ping is
    /// always valid: if it is rejected too, the session is gone.
    async fn is_forgotten(&self, route: &Route, target: &RequestTarget) -> bool {
        let Some((id, _answer)) = self.calls().open() else { return false };
        // Only the number is needed.
        self.calls().close(id);
        let body = format!(r#"{{"jsonrpc":"2.0","id":{},"method":"ping"}}"#, id.number()).into();
        let ping = MessageSubject { method: "ping", object: Object::None };
        let headers = || headers::of_post(route, ping);
        let pinged = timeout(PING, async {
            let response = self.send(Method::POST, target, headers, Some(&body)).await.ok()?;
            let refused = [StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND];
            let is_refused = refused.contains(&response.status());
            if is_refused {
                // Read, so that the connection can be reused.
                beginning(response, body::MAX_FAILURE).await;
            }
            is_refused.then_some(())
        });
        matches!(pinged.await, Ok(Some(())))
    }

    /// Opens or resumes a stream by GET.
    pub(super) async fn get(
        &self,
        route: &Route,
        last_event: Option<&str>,
    ) -> Result<Response<PooledBody>, CallError> {
        let headers = || headers::of_get(route, last_event);
        let response = self.send(Method::GET, &self.target, headers, None).await?;
        if !response.status().is_success() {
            return Err(self.failure(response).await);
        }
        refuse_compressed(&response)?;
        match body::form(&response) {
            body::BodyType::Events => Ok(response),
            body::BodyType::Json => Err(CallError::Protocol(
                "the server sent JSON instead of an event stream".to_owned(),
            )),
            body::BodyType::Other(kind) => {
                let kind =
                    if kind.is_empty() { "data without a content type" } else { kind.as_str() };
                Err(CallError::Protocol(format!(
                    "the server sent {kind} instead of an event stream"
                )))
            }
        }
    }

    /// Deletes the session on the server. Errors are ignored.
    pub(super) async fn delete(&self, route: &Route) {
        let headers = || headers::of_delete(route);
        let _ = self.send(Method::DELETE, &self.target, headers, None).await;
    }

    /// Sends a request, with a token if the server has one. If the token is rejected, obtains
    /// another one where that is possible without a user, and sends the request again.
    async fn send(
        &self,
        method: Method,
        target: &RequestTarget,
        headers: impl Fn() -> HeaderMap,
        body: Option<&Bytes>,
    ) -> Result<Response<PooledBody>, CallError> {
        let mut attempts = AuthAttempts::default();
        // Ends: the attempts allow each way to another token once or twice.
        loop {
            let (response, sent) = self.send_once(&method, target, &headers, body).await?;
            let challenges = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN];
            let Some(auth) = self.auth.as_ref().filter(|_| challenges.contains(&response.status()))
            else {
                return Ok(response);
            };
            let status = response.status();
            let challenged =
                auth.challenged(status, response.headers(), sent.as_ref(), &mut attempts);
            match challenged.await {
                // Read, so that the connection can be reused.
                Ok(()) => drop(beginning(response, body::MAX_FAILURE).await),
                Err(AuthError::NotAboutTokens) => return Ok(response),
                Err(AuthError::LoginRequired) => return Err(self.failure(response).await),
                Err(error) => return Err(CallError::Auth(error)),
            }
        }
    }

    /// Sends a request and follows redirects within the origin. Credentials never leave it.
    async fn send_once(
        &self,
        method: &Method,
        target: &RequestTarget,
        headers: &impl Fn() -> HeaderMap,
        body: Option<&Bytes>,
    ) -> Result<(Response<PooledBody>, Option<SentToken>), CallError> {
        let mut target = Cow::Borrowed(target);
        for _ in 0..=MAX_REDIRECTS {
            let mut headers = headers();
            let body = body.cloned().unwrap_or_default();
            let sent = match &self.auth {
                Some(auth) => auth.authorize(method, &target.url, &mut headers).await,
                None => Ok(None),
            };
            let sent = sent.map_err(CallError::Auth)?;
            let response = self.client.send(method.clone(), &target, headers, body).await;
            let response = response.map_err(|error| self.broken()(&error))?;
            if let Some(auth) = &self.auth {
                auth.note_nonce(response.headers());
            }
            match self.sent_on(method, &target.url, &response)? {
                Some(next) => target = Cow::Owned(next),
                None => return Ok((response, sent)),
            }
        }
        Err(UnusableResponse::RedirectedTooOften { times: MAX_REDIRECTS }.into())
    }

    /// Returns the target of a redirect, if the response is one.
    fn sent_on(
        &self,
        method: &Method,
        url: &Url,
        response: &Response<PooledBody>,
    ) -> Result<Option<RequestTarget>, CallError> {
        let status = response.status();
        let Some(location) = response.headers().get(LOCATION).filter(|_| status.is_redirection())
        else {
            return Ok(None);
        };
        let target = location.to_str().ok().and_then(|location| url.join(location).ok());
        let Some(target) = target else {
            return Err(no_address());
        };
        if target.origin() != self.target.url.origin() {
            return Err(self.redirected(&origin(&target)));
        }
        // Only these two keep the method; others would turn the POST into a GET.
        let keeps =
            matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        if method == Method::POST && !keeps {
            return Err(self.redirected(&without_query(&target)));
        }
        let target = self.client.target(target).ok_or_else(no_address)?;
        Ok(Some(target))
    }

    fn redirected(&self, to: &str) -> CallError {
        CallError::Redirected { to: self.redactor().redact(to).into_owned() }
    }

    /// Converts a response with an error status.
    async fn failure(&self, response: Response<PooledBody>) -> CallError {
        let status = response.status();
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let challenge = header(WWW_AUTHENTICATE).filter(|it| it.len() <= MAX_CHALLENGE);
        let challenge = challenge.map(|text| self.redactor().redact(text).into_owned());
        let retry_after = header(RETRY_AFTER).and_then(until);
        let error = match status {
            StatusCode::UNAUTHORIZED => CallError::NeedsAuth { challenge },
            StatusCode::FORBIDDEN => CallError::Forbidden { challenge },
            StatusCode::TOO_MANY_REQUESTS => CallError::RateLimited { retry_after },
            StatusCode::SERVICE_UNAVAILABLE if let Some(retry_after) = retry_after => {
                CallError::OutOfService { retry_after }
            }
            _ => {
                let body = beginning(response, body::MAX_FAILURE).await;
                return match peek(&body) {
                    LineKind::Answer(_, Err(error))
                    | LineKind::ToRmcp(_, Err(error))
                    | LineKind::Nameless(error) => {
                        CallError::Rpc(redacted::error(error, self.redactor()))
                    }
                    _ => CallError::Http {
                        status: status.as_u16(),
                        body: shown(&body, self.redactor()),
                    },
                };
            }
        };
        beginning(response, body::MAX_FAILURE).await;
        error
    }

    /// Returns a function that converts an error of the HTTP client.
    pub(super) fn broken(&self) -> impl Fn(&HttpError) -> CallError + use<> {
        let is_proxied = self.client.is_proxied();
        move |error| reach::unreachable(error, is_proxied).into()
    }
}

fn no_address() -> CallError {
    CallError::Protocol("the server redirected to an invalid URL".to_owned())
}

/// Parses `Retry-After` (RFC 9110, section 10.2.3): seconds or a date.
fn until(retry_after: &str) -> Option<Duration> {
    let after = match retry_after.trim().parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let date = httpdate::parse_http_date(retry_after.trim()).ok()?;
            date.duration_since(SystemTime::now()).unwrap_or_default()
        }
    };
    Some(after.min(LONGEST_PAUSE))
}

/// Returns the origin of a URL for display.
fn origin(url: &Url) -> String {
    match url.origin() {
        origin @ Origin::Tuple(..) => origin.ascii_serialization(),
        Origin::Opaque(_) => format!("a {}: address", url.scheme()),
    }
}

fn without_query(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let _ = url.set_password(None);
    let _ = url.set_username("");
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_a_number_of_seconds_or_a_date() {
        assert_eq!(until(" 120"), Some(Duration::from_secs(120)));
        assert_eq!(until("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO), "long ago");
        assert_eq!(until("Sun, 21 Oct 2412 07:28:00 GMT"), Some(LONGEST_PAUSE));
        assert_eq!(until("18446744073709551615"), Some(LONGEST_PAUSE));
        assert_eq!(until("soon"), None);
    }

    #[test]
    fn urls_are_shown_without_userinfo_and_query() {
        let url = |text| Url::parse(text).unwrap();
        assert_eq!(origin(&url("https://u:p@a.example:8443/x?key=1")), "https://a.example:8443");
        assert_eq!(origin(&url("file:///etc/passwd")), "a file: address");
        assert_eq!(without_query(&url("https://u:p@a.example/x?key=1#y")), "https://a.example/x");
    }
}
