//! The hub over Streamable HTTP: with sessions, and without since 2026-07-28.
//!
//! Tool calls, and what belongs to them, are handled here ([`call`]); everything else is handled by
//! `rmcp`. The caller has checked `Host`, `Origin` and the token, and says whose requests these are.
//! What a principal opens, nobody else can use, and it ends when the token is revoked.

mod batches;
mod body;
mod call;
mod revocation;
mod room;
mod sessions;
mod stateless;
mod streams;

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, ALLOW, AsHeaderName, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use openclaw_budget::{BudgetSpent, BytePermit};
use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::Principal;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;

use super::client::HubClient;
use super::handler::{ClientOfRequest, Handler};
use super::options::HubClientOptions;
use super::{Hub, HubCaller};
use crate::era::EraServer;
use crate::front::incoming::{IncomingMessage, MODERN, classify};
use crate::front::memory::{
    MAX_MESSAGE, MAX_PARSED, MAX_SLOW_CALL, for_handshake, for_parsing, too_large,
};
use crate::front::reply::{
    HubReply, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, UNSUPPORTED_VERSION,
};
use crate::input::state::BAD_STATE;
use body::BodyError;
pub use body::HubBody;
use revocation::Revocations;
use sessions::{HttpSessions, HubSession};
use stateless::StatelessClients;

/// What clients usually accept; compared first, because it is quick.
const USUAL_ACCEPT: &str = "application/json, text/event-stream";
/// Maximum length of a version that is quoted, in characters.
const MAX_VERSION: usize = 40;
/// The versions with sessions.
const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// What is said about a large call that `rmcp` would have to handle.
const SLOW_CALL: &str = "a call of more than 1 MiB must have a valid `Content-Type`, `Accept` and \
    parameters, and since 2026-07-28 `Mcp-Method` and `Mcp-Name`";
/// What is said about a session that does not exist, or not for this principal.
const UNKNOWN: &str = "unknown session";
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
    sessions: Arc<HttpSessions>,
    stateless: StatelessClients,
    revocations: Revocations,
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
        config.max_request_body_bytes = MAX_PARSED;
        // The gateway checks both, for all its paths.
        let config = config.disable_allowed_hosts().disable_allowed_origins();
        let rmcp = StreamableHttpService::new(
            || Ok(EraServer(Handler::of_request())),
            Arc::clone(&manager),
            config,
        );
        let sessions = Arc::new(HttpSessions::new(manager));
        Self {
            hub,
            rmcp,
            sessions,
            stateless: StatelessClients::default(),
            revocations: Revocations::default(),
        }
    }

    /// Handles a request of a caller. Dropping the future, or the body of the response, cancels a
    /// call; so does [`end_revoked`](Self::end_revoked).
    pub async fn handle<B>(&self, caller: &HubCaller, request: Request<B>) -> Response<HubBody>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let mut serving = pin!(self.serve(caller, request));
        let Some(revoked) = self.revocations.token_for(&caller.principal) else {
            return serving.await;
        };
        tokio::select! {
            biased;
            response = &mut serving => {
                response.map(|body| body.until(revoked.cancelled_owned()))
            }
            () = revoked.cancelled() => plain(StatusCode::UNAUTHORIZED, "the token was revoked"),
        }
    }

    /// Ends the sessions, streams and calls of principals that are no longer valid.
    pub fn end_revoked(&self, mut is_valid: impl FnMut(&Principal) -> bool) {
        let mut is_revoked = |it: &Principal| it.token().is_some() && !is_valid(it);
        self.revocations.revoke(&mut is_revoked);
        self.stateless.remove(&mut is_revoked);
        self.sessions.end_all(&mut is_revoked);
        // Also those of clients on stdio.
        self.hub.waiting.cancel(|client| is_revoked(client.principal()));
    }

    async fn serve<B>(&self, caller: &HubCaller, request: Request<B>) -> Response<HubBody>
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
            Method::POST => self.post(caller, request, options).await,
            _ => Box::pin(self.other(caller, request)).await,
        }
    }

    async fn post<B>(
        &self,
        caller: &HubCaller,
        request: Request<B>,
        options: HubClientOptions,
    ) -> Response<HubBody>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let (mut parts, body) = request.into_parts();
        let (body, _memory) = match body::read(body, MAX_MESSAGE, &caller.budget).await {
            Ok(body) => body,
            Err(error) => return bad_body(error),
        };
        if parts.headers.get_all(&SESSION).iter().nth(1).is_some() {
            return plain(StatusCode::BAD_REQUEST, "more than one `Mcp-Session-Id`");
        }
        let is_modern = is_modern(&parts.headers);
        if is_modern {
            // There are no sessions any more.
            parts.headers.remove(&SESSION);
        }
        let session = match self.session(&parts.headers, &caller.principal) {
            Ok(session) => session,
            Err(UnknownSession) => return plain(StatusCode::NOT_FOUND, UNKNOWN),
        };
        let message = classify(&body);
        if let Some(problem) = too_large(&message, &body) {
            return plain(StatusCode::PAYLOAD_TOO_LARGE, problem);
        }
        if let Some(session) = &session
            && is_legacy(&parts.headers)
        {
            match &message {
                IncomingMessage::Call(line) if is_for_call(&parts.headers) => {
                    if let Some(reply) = call::legacy(session, line, &parts.headers).await {
                        return reply;
                    }
                }
                IncomingMessage::Response(id) => match session.answer(id, &body) {
                    Ok(true) => return accepted(),
                    Ok(false) => {}
                    Err(spent) => return bad_body(BodyError::Memory(spent)),
                },
                IncomingMessage::Cancel(id) if session.cancel(id) => return accepted(),
                _ => {}
            }
        }
        if let (IncomingMessage::Batch, Some(session)) = (&message, &session)
            && session.client().connection.has_batches()
            && is_for_call(&parts.headers)
        {
            return Box::pin(self.batch(session, &parts, &body)).await;
        }
        if let Some(error) = not_a_message(&message)
            && is_for_call(&parts.headers)
        {
            return call::json(StatusCode::BAD_REQUEST, "null", error);
        }
        if let IncomingMessage::BadState(id) = &message {
            let error = HubReply::error(INVALID_PARAMS, BAD_STATE);
            return call::json(StatusCode::BAD_REQUEST, id, error);
        }
        if let IncomingMessage::Handshake { id, is_modern: claims_modern } = &message
            && (is_modern || (session.is_none() && *claims_modern))
        {
            return no_handshake(id, &parts.headers);
        }
        let opens = session.is_none() && !is_modern;
        let client = match &session {
            Some(session) => Ok(Arc::clone(session.client())),
            None if opens => self.hub.client(caller.clone(), options),
            None => self.stateless.client(&self.hub, caller, options),
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
        if matches!(message, IncomingMessage::Call(_)) && body.len() > MAX_SLOW_CALL {
            return plain(StatusCode::PAYLOAD_TOO_LARGE, SLOW_CALL);
        }
        let parsing = for_parsing(&caller.budget, &body);
        // What a session begins with is kept as long as the session.
        let kept = if opens { &body[..] } else { &[] };
        let (parsing, kept) = match (parsing, for_handshake(&caller.budget, kept)) {
            (Ok(parsing), Ok(kept)) => (parsing, kept),
            (Err(spent), _) | (_, Err(spent)) => return bad_body(BodyError::Memory(spent)),
        };
        let is_json = is_for_call(&parts.headers);
        let mut request = Request::from_parts(parts, Full::new(body.clone()));
        request.extensions_mut().insert(ClientOfRequest(Arc::clone(&client)));
        // Boxed: the futures are large, and would enlarge that of a call.
        let response = if opens {
            Box::pin(self.open(request, client, kept)).await
        } else {
            Box::pin(self.rmcp.handle(request)).await
        };
        // Of a type that it accepts, so the message is meant, such as one whose id is `null`.
        if is_json && response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            let error = HubReply::error(INVALID_REQUEST, "not a JSON-RPC message");
            return call::json(StatusCode::BAD_REQUEST, "null", error);
        }
        response.map(|body| HubBody::counted_stream(body, &caller.budget, parsing))
    }

    /// Passes on a request that opens a session, if it is valid. That is not cut short when the client
    /// disconnects, or nothing would know the session.
    async fn open(
        &self,
        request: Request<Full<Bytes>>,
        client: Arc<HubClient>,
        memory: BytePermit,
    ) -> BoxResponse {
        let rmcp = self.rmcp.clone();
        let sessions = Arc::clone(&self.sessions);
        let opening = tokio::spawn(async move {
            let response = rmcp.handle(request).await;
            if let Some(id) = text(response.headers(), &SESSION) {
                sessions.open(id, client, memory);
            }
            response
        });
        opening.await.unwrap_or_else(|_| {
            let mut failed = Response::new(Full::default().boxed());
            *failed.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            failed
        })
    }

    /// Returns the session that a request names, if it names one.
    fn session(
        &self,
        headers: &HeaderMap,
        principal: &Principal,
    ) -> Result<Option<Arc<HubSession>>, UnknownSession> {
        if !headers.contains_key(&SESSION) {
            return Ok(None);
        }
        let found = text(headers, &SESSION).and_then(|id| self.sessions.get(id, principal));
        found.map(Some).ok_or(UnknownSession)
    }

    /// Opens the stream of a session, or ends a session.
    async fn other<B>(&self, caller: &HubCaller, request: Request<B>) -> Response<HubBody>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        if is_modern(request.headers()) {
            let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "expected POST");
            refused.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
            return refused;
        }
        let session = match self.session(request.headers(), &caller.principal) {
            Ok(session) => session,
            Err(UnknownSession) => return plain(StatusCode::NOT_FOUND, UNKNOWN),
        };
        let id = text(request.headers(), &SESSION);
        let last = text(request.headers(), &LAST_EVENT).and_then(streams::of_event);
        match (request.method(), session, id, last) {
            (&Method::DELETE, Some(_), Some(id), _) => {
                self.sessions.end(id).await;
                // `rmcp` replies 202, which the Python SDK reports as a failure.
                empty(StatusCode::NO_CONTENT)
            }
            (&Method::GET, Some(session), _, Some(last)) => {
                let over =
                    "cannot resume: the stream has ended, or its events are no longer stored";
                let body = session.resumed(last);
                body.map_or_else(|| plain(StatusCode::BAD_REQUEST, over), events)
            }
            _ => {
                let response = self.rmcp.handle(request).await;
                let parsing = caller.budget.permit();
                response.map(|body| HubBody::counted_stream(body, &caller.budget, parsing))
            }
        }
    }
}

/// A response of `rmcp`.
type BoxResponse = Response<BoxBody<Bytes, Infallible>>;

/// There is no such session, or it is that of another principal.
struct UnknownSession;

/// Refuses the handshake of a version that has none.
fn no_handshake(id: &str, headers: &HeaderMap) -> Response<HubBody> {
    let requested = text(headers, &VERSION).unwrap_or(MODERN);
    let supported = LEGACY.join(", ");
    if requested == MODERN {
        let words = format!(
            "unknown method `initialize`: {MODERN} has no handshake; versions that have one: {supported}"
        );
        let error = HubReply::error(METHOD_NOT_FOUND, &words);
        return call::json(StatusCode::NOT_FOUND, id, error);
    }
    let requested = clean_line(Untrusted::new(requested), MAX_VERSION);
    let all: Vec<_> = LEGACY.into_iter().chain([MODERN]).rev().collect();
    let error = json!({
        "code": UNSUPPORTED_VERSION,
        "message": "unsupported protocol version",
        "data": { "supported": all, "requested": requested },
    });
    call::json(StatusCode::BAD_REQUEST, id, HubReply::Error(error.to_string()))
}

/// Returns the response to a request whose body cannot be read.
fn bad_body(error: BodyError) -> Response<HubBody> {
    let (status, words) = match error {
        BodyError::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "the request exceeds 64 MiB".into()),
        BodyError::Incomplete => (StatusCode::BAD_REQUEST, "the request is incomplete".into()),
        BodyError::Slow => (StatusCode::REQUEST_TIMEOUT, "the request takes too long".into()),
        BodyError::Memory(spent @ BudgetSpent::Own(_)) => {
            (StatusCode::TOO_MANY_REQUESTS, spent.to_string())
        }
        BodyError::Memory(spent @ BudgetSpent::Whole(_)) => {
            (StatusCode::SERVICE_UNAVAILABLE, spent.to_string())
        }
    };
    plain(status, &words)
}

/// Returns the error for a body that is not a message.
fn not_a_message(message: &IncomingMessage<'_>) -> Option<HubReply> {
    match message {
        IncomingMessage::Batch => {
            Some(HubReply::error(INVALID_REQUEST, "batches are not supported"))
        }
        IncomingMessage::Invalid(_) => {
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
