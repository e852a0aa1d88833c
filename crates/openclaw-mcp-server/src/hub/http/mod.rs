//! The hub over Streamable HTTP: with sessions, and without since 2026-07-28.
//!
//! Tool calls, and what belongs to them, are handled here ([`call`]); everything else is handled by
//! `rmcp`. The caller has checked `Host`, `Origin` and the token.

mod batches;
mod body;
mod call;
mod sessions;
mod streams;

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, AsHeaderName, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::Hub;
use super::handler::{ClientOfRequest, Handler};
use super::incoming::{IncomingMessage, MODERN, classify};
use super::options::HubClientOptions;
use super::reply::{HubReply, INVALID_REQUEST, PARSE_ERROR};
use crate::era::EraServer;
use body::BodyError;
pub use body::HubBody;
use sessions::Sessions;

/// Maximum size of a request's body.
const MAX_BODY: usize = 64 * 1024 * 1024;
/// What clients usually accept; compared first, because it is quick.
const USUAL_ACCEPT: &str = "application/json, text/event-stream";
/// The versions with sessions.
const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The version since which a server may close the stream of a call, and continue it later.
const WITH_POLLING: &str = "2025-11-25";
static SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
static VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
static LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
static METHOD: HeaderName = HeaderName::from_static("mcp-method");
static NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Serves clients over HTTP.
pub struct HubHttp {
    hub: Arc<Hub>,
    rmcp: StreamableHttpService<EraServer<Handler>, LocalSessionManager>,
    sessions: Sessions,
}

impl std::fmt::Debug for HubHttp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HubHttp").finish_non_exhaustive()
    }
}

impl HubHttp {
    /// Creates the server.
    pub fn new(hub: Arc<Hub>) -> Self {
        let mut manager = LocalSessionManager::default();
        // Calls do not pass through `rmcp`, so it cannot know whether a session is in use.
        manager.session_config.keep_alive = None;
        let manager = Arc::new(manager);
        let mut config = StreamableHttpServerConfig::default();
        config.json_response = true;
        config.max_request_body_bytes = MAX_BODY;
        // The gateway checks both, for all its paths.
        let config = config.disable_allowed_hosts().disable_allowed_origins();
        let rmcp = StreamableHttpService::new(
            || Ok(EraServer(Handler::of_request())),
            Arc::clone(&manager),
            config,
        );
        Self { hub, rmcp, sessions: Sessions::new(manager) }
    }

    /// Handles a request. Dropping the future, or the body of the response, cancels a call.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<HubBody>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let options = match HubClientOptions::from_query(request.uri().query().unwrap_or_default())
        {
            Ok(options) => options,
            Err(error) => return plain(StatusCode::BAD_REQUEST, &error.to_string()),
        };
        match *request.method() {
            Method::POST => self.post(request, options).await,
            _ => Box::pin(self.other(request)).await,
        }
    }

    async fn post<B>(&self, request: Request<B>, options: HubClientOptions) -> Response<HubBody>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let (parts, body) = request.into_parts();
        let body = match body::read(body, MAX_BODY).await {
            Ok(body) => body,
            Err(BodyError::TooLarge) => {
                return plain(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large");
            }
            Err(BodyError::Incomplete) => {
                return plain(StatusCode::BAD_REQUEST, "the request is incomplete");
            }
        };
        if parts.headers.get_all(&SESSION).iter().nth(1).is_some() {
            return plain(StatusCode::BAD_REQUEST, "more than one `Mcp-Session-Id`");
        }
        let message = classify(&body);
        let session = text(&parts.headers, &SESSION).and_then(|id| self.sessions.get(id));
        if let Some(session) = &session
            && is_legacy(&parts.headers)
        {
            match &message {
                IncomingMessage::Call(line) if is_for_call(&parts.headers) => {
                    if let Some(reply) = call::legacy(session, line, &parts.headers).await {
                        return reply;
                    }
                }
                IncomingMessage::Response(id) if session.answer(id, &body) => return accepted(),
                IncomingMessage::Cancel(id) if session.cancel(id) => return accepted(),
                _ => {}
            }
        }
        if let (IncomingMessage::Batch, Some(session)) = (&message, &session)
            && session.client().has_batches()
            && is_for_call(&parts.headers)
        {
            return Box::pin(self.batch(session, &parts, &body)).await;
        }
        if let Some(error) = not_a_message(&message)
            && is_for_call(&parts.headers)
        {
            return call::json(StatusCode::BAD_REQUEST, "null", error);
        }
        let is_new = session.is_none() && !is_modern(&parts.headers);
        let client = match &session {
            Some(session) => Ok(Arc::clone(session.client())),
            None if is_new => self.hub.client(options),
            None => self.sessions.stateless(&self.hub, options),
        };
        let client = match client {
            Ok(client) => client,
            Err(error) => return plain(StatusCode::NOT_FOUND, &error.to_string()),
        };
        if let IncomingMessage::Call(line) = &message
            && session.is_none()
            && is_for_call(&parts.headers)
            && names(&parts.headers, line.name())
            && let Some(request) = line.to_request().filter(|it| it.modern.is_some())
        {
            return call::modern(&client, line.id, request, &parts.headers).await;
        }
        let is_json = is_for_call(&parts.headers);
        let mut request = Request::from_parts(parts, Full::new(body.clone()));
        request.extensions_mut().insert(ClientOfRequest(Arc::clone(&client)));
        // Boxed: the future is large, and would enlarge that of a call.
        let response = Box::pin(self.rmcp.handle(request)).await;
        // Of a type that it accepts, so the message is meant, such as one whose id is `null`.
        if is_json && response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            let error = HubReply::error(INVALID_REQUEST, "not a JSON-RPC message");
            return call::json(StatusCode::BAD_REQUEST, "null", error);
        }
        if is_new && let Some(id) = text(response.headers(), &SESSION) {
            Box::pin(self.sessions.open(id, client)).await;
        }
        response.map(HubBody::stream)
    }

    /// Opens the stream of a session, or ends a session.
    async fn other<B>(&self, request: Request<B>) -> Response<HubBody>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let is_end = request.method() == Method::DELETE;
        let session = text(request.headers(), &SESSION).map(ToOwned::to_owned);
        let known = session.as_deref().and_then(|it| self.sessions.get(it));
        if is_end && session.is_some() && known.is_none() {
            return plain(StatusCode::NOT_FOUND, "unknown session");
        }
        let last = text(request.headers(), &LAST_EVENT).and_then(streams::of_event);
        if let (&Method::GET, Some(session), Some(last)) = (request.method(), known, last) {
            let over = "cannot resume: the stream has ended, or its events are no longer stored";
            let body = session.resumed(last);
            return body.map_or_else(|| plain(StatusCode::BAD_REQUEST, over), events);
        }
        let response = self.rmcp.handle(request).await;
        if let Some(session) = session.filter(|_| is_end && response.status().is_success()) {
            self.sessions.forget(&session);
            // `rmcp` replies 202, which the Python SDK reports as a failure.
            return empty(StatusCode::NO_CONTENT);
        }
        response.map(HubBody::stream)
    }
}

/// Returns the error for a body that is not a message.
fn not_a_message(message: &IncomingMessage<'_>) -> Option<HubReply> {
    match message {
        IncomingMessage::Batch => {
            Some(HubReply::error(INVALID_REQUEST, "batches are not supported"))
        }
        IncomingMessage::Invalid => {
            Some(HubReply::error(INVALID_REQUEST, "not a JSON-RPC message"))
        }
        IncomingMessage::Garbage => Some(HubReply::error(PARSE_ERROR, "not JSON")),
        _ => None,
    }
}

/// Returns the only value of a header.
fn text(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    // Faster than `to_str`, which looks at each byte.
    std::str::from_utf8(value.as_bytes()).ok().filter(|text| text.is_ascii())
}

/// Whether the request can be a call. What is wrong with another one, `rmcp` reports.
fn is_for_call(headers: &HeaderMap) -> bool {
    let accepts = text(headers, ACCEPT).unwrap_or_default();
    let is_json = |it: &str| it.starts_with("application/json");
    text(headers, CONTENT_TYPE).is_some_and(is_json)
        && (accepts == USUAL_ACCEPT
            || ["application/json", "text/event-stream"].iter().all(|kind| accepts.contains(kind)))
}

fn is_modern(headers: &HeaderMap) -> bool {
    text(headers, &VERSION).is_some_and(|version| version >= MODERN)
}

fn is_legacy(headers: &HeaderMap) -> bool {
    match text(headers, &VERSION) {
        Some(version) => LEGACY.contains(&version),
        None => !headers.contains_key(&VERSION),
    }
}

/// Whether the headers name this call, as they must since 2026-07-28.
fn names(headers: &HeaderMap, name: &str) -> bool {
    text(headers, &VERSION) == Some(MODERN)
        && text(headers, &METHOD) == Some("tools/call")
        && text(headers, &NAME) == Some(name)
}

/// Returns a response that is a stream of events.
fn events(body: HubBody) -> Response<HubBody> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn plain(status: StatusCode, message: &str) -> Response<HubBody> {
    respond(status, "text/plain; charset=utf-8", message.to_owned())
}

fn accepted() -> Response<HubBody> {
    empty(StatusCode::ACCEPTED)
}

fn empty(status: StatusCode) -> Response<HubBody> {
    let mut response = Response::new(HubBody::from(Bytes::new()));
    *response.status_mut() = status;
    response
}

fn respond(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<HubBody> {
    let mut response = Response::new(HubBody::from(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
