//! Streamable HTTP: one POST per message, with sessions (2025) or without (2026-07-28).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hyper::Response;
use hyper::body::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc::UnboundedReceiver;

use super::bodies::{Body, Cut, EventBody, Pieces, channel, events, set_header, status, text};
use super::{Exchange, Server, gzip};
use crate::engine::{Incoming, Listener, Session, error, lock, notification, params};
use crate::script::{Answer, Endless, RpcError, is_modern};

const JSON: &str = "application/json";
const SESSION: &str = "mcp-session-id";

/// The fields of a message that tell responses from other messages.
#[derive(Deserialize)]
struct Outgoing<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    error: Option<Code>,
}

#[derive(Deserialize)]
struct Code {
    code: i64,
}

/// The kind of a request, and the form of its response.
struct Kind {
    modern: bool,
    call: bool,
    json: bool,
}

impl Server {
    pub(super) async fn post(self: &Arc<Self>, exchange: &Exchange) -> Response<Body> {
        let script = &self.engine.script;
        let body = &exchange.body;
        let message = serde_json::from_slice::<Incoming<'_>>(body);
        // A batch has no method of its own; it is answered as a whole.
        let batch = message.is_err() && body.trim_ascii_start().starts_with(b"[");
        let Ok(message) = message.or_else(|_| serde_json::from_str(if batch { "{}" } else { "" }))
        else {
            return problem(400, "null", -32700, "Parse error");
        };
        let method = message.method.as_ref().map_or("", |method| &method.0);
        let id = message.id.map_or("null", RawValue::get);
        let meta_version = params(message.params)
            .ok()
            .and_then(|params| params.meta.version)
            .map(|version| version.0.into_owned());
        let version = exchange.header("mcp-protocol-version").or(meta_version.as_deref());
        let modern = script.protocol.is_modern() && version.is_some_and(is_modern);
        if modern
            && message.id.is_some()
            && let Err(reason) = check_headers(exchange, &message, meta_version.as_deref())
        {
            return problem(400, id, -32020, &reason);
        }

        let mut new_session = None;
        let explicit_probe = method == "server/discover" && script.protocol.discover.is_some();
        let session = if modern || explicit_probe || script.http.no_sessions {
            Arc::clone(&self.stateless)
        } else if method == "initialize" {
            let session = self.engine.new_session();
            let id = self.new_id("session");
            lock(&self.sessions).insert(id.clone(), Arc::clone(&session));
            new_session = Some(id);
            session
        } else {
            match self.session_of(exchange) {
                Ok(session) => session,
                Err(response) => return *response,
            }
        };
        if !batch && (message.id.is_none() || message.method.is_none()) {
            self.stall(&message).await;
            let (out, _) = channel();
            self.engine.handle(&session, body, &out);
            return status(202);
        }
        let call = method == "tools/call";
        if call {
            if let Some(megabytes) = script.http.gzip_bomb_mb {
                return gzip::bomb(megabytes);
            }
            if let Some(of) = script.http.endless_stream {
                return endless(of);
            }
        }
        // A subscription has no response, and a batch has several: both are always streams.
        let json = script.http.answer == Answer::Json;
        let kind = Kind { modern, call, json: json && !batch && method != "subscriptions/listen" };
        let mut response = self.respond(&session, body, &kind).await;
        if let Some(id) = new_session {
            set_header(&mut response, SESSION, &id);
        }
        response
    }

    /// Returns the session of the request, or the error response.
    fn session_of(&self, exchange: &Exchange) -> Result<Arc<Session>, Box<Response<Body>>> {
        let lost = self.engine.script.http.session_lost_after;
        if lost.is_some_and(|after| self.engine.calls() >= after)
            && !self.sessions_lost.swap(true, Ordering::Relaxed)
        {
            lock(&self.sessions).clear();
        }
        let Some(id) = exchange.header(SESSION) else {
            return Err(problem(400, "null", -32000, "Bad Request: no valid session ID").into());
        };
        self.session(id).ok_or_else(|| problem(404, "null", -32001, "Session not found").into())
    }

    async fn respond(
        self: &Arc<Self>,
        session: &Arc<Session>,
        body: &[u8],
        &Kind { modern, call, json }: &Kind,
    ) -> Response<Body> {
        let (out, mut messages) = channel();
        self.engine.handle(session, body, &out);
        drop(out);
        let http = &self.engine.script.http;
        if json {
            return json_answer(session, messages, modern).await;
        }
        // Errors of 2026-07-28 have their own HTTP status, which a stream cannot have.
        let mut first = None;
        if modern && let Ok(message) = messages.try_recv() {
            if let Some(code) =
                serde_json::from_slice::<Outgoing<'_>>(&message).ok().and_then(|it| it.error)
                && status_of(code.code) != 200
            {
                return text(status_of(code.code), JSON, message);
            }
            first = Some(message);
        }
        let mut stream = EventBody::new(messages);
        if http.drop_stream.as_ref().is_some_and(|drop| drop.ids) || http.retry_ms.is_some() {
            stream = stream.numbered(self.new_id("stream"), http.retry_ms);
        }
        let cut = http.drop_stream.clone().filter(|_| call);
        let mut stream = stream.cut(cut.map(|how| Cut { server: Arc::clone(self), how }));
        if let Some(message) = first {
            stream.put_back(&message);
        }
        events(stream)
    }

    /// Returns the stream for messages of the server's own, or the rest of a dropped stream.
    pub(super) fn get(&self, exchange: &Exchange) -> Response<Body> {
        let http = &self.engine.script.http;
        if let Some(last) = exchange.header("last-event-id") {
            let stream = last.rsplit_once(':').map_or(last, |(stream, _)| stream);
            return match lock(&self.parked).remove(stream) {
                Some(rest) => events(rest),
                None => problem(404, "null", -32001, "No such stream"),
            };
        }
        if http.no_get {
            return status(405);
        }
        let session = if http.no_sessions {
            Arc::clone(&self.stateless)
        } else {
            match self.session_of(exchange) {
                Ok(session) => session,
                Err(response) => return *response,
            }
        };
        let (out, messages) = channel();
        session.listen(Listener { out, subscription: None });
        let stream = EventBody::new(messages).first(": open\n\n").flood(http, &session);
        events(match http.retry_ms {
            Some(ms) => stream.first(format!("retry: {ms}\n\n")),
            None => stream,
        })
    }

    pub(super) fn delete(&self, exchange: &Exchange) -> Response<Body> {
        let id = exchange.header(SESSION).unwrap_or_default();
        status(if lock(&self.sessions).remove(id).is_some() { 200 } else { 404 })
    }
}

/// Waits for the response; other messages go to the GET stream.
async fn json_answer(
    session: &Session,
    mut messages: UnboundedReceiver<Vec<u8>>,
    modern: bool,
) -> Response<Body> {
    while let Some(message) = messages.recv().await {
        let Ok(parsed) = serde_json::from_slice::<Outgoing<'_>>(&message) else {
            return text(200, JSON, message);
        };
        if parsed.method.is_some() || parsed.id.is_none() && parsed.error.is_none() {
            session.tell(|listener| listener.subscription.is_none().then(|| message.clone()));
            continue;
        }
        let code =
            parsed.error.map_or(200, |error| if modern { status_of(error.code) } else { 200 });
        return text(code, JSON, message);
    }
    // There is no response: over HTTP, silence is a request that hangs.
    std::future::pending().await
}

/// The HTTP status of a JSON-RPC error on 2026-07-28.
fn status_of(code: i64) -> u16 {
    match code {
        -32022..=-32020 => 400,
        -32601 => 404,
        _ => 200,
    }
}

fn problem(code: u16, id: &str, rpc: i64, message: &str) -> Response<Body> {
    text(code, JSON, error(id, &RpcError::new(rpc, message)))
}

/// An endless stream.
fn endless(of: Endless) -> Response<Body> {
    let event = |message: &[u8]| [b"event: message\ndata: ".as_slice(), message, b"\n\n"].concat();
    let event = Bytes::from(match of {
        Endless::Notifications => {
            let data = serde_json::json!({"level": "info", "data": "x".repeat(1000)});
            event(&notification("notifications/message", &data))
        }
        Endless::Comments => format!(": {}\n\n", "x".repeat(1000)).into_bytes(),
        Endless::ForeignAnswers => {
            // In the range of ids that the client uses.
            let answer: &[u8] = br#"{"jsonrpc":"2.0","id":1125899906842624,"result":{}}"#;
            event(answer).repeat(5_000)
        }
    });
    events(Pieces(move || Some(event.clone())))
}

/// 2026-07-28: `Mcp-Method` and `Mcp-Name` must match the body.
fn check_headers(
    exchange: &Exchange,
    message: &Incoming<'_>,
    meta_version: Option<&str>,
) -> Result<(), String> {
    let method = message.method.as_ref().map_or("", |method| &method.0);
    if exchange.header("mcp-method") != Some(method) {
        return Err(format!("Mcp-Method does not match the method {method}"));
    }
    if exchange.header("mcp-protocol-version") != meta_version {
        return Err("MCP-Protocol-Version does not match _meta".into());
    }
    let params = params(message.params).map_err(|error| error.message)?;
    let name = match method {
        "tools/call" | "prompts/get" => params.name,
        "resources/read" => params.uri,
        _ => None,
    };
    let header = exchange.header("mcp-name");
    match name {
        // Names that are not plain ASCII are sent as base64, which is not decoded here.
        Some(name)
            if header != Some(&*name.0)
                && !header.is_some_and(|it| it.starts_with("=?base64?")) =>
        {
            Err(format!("Mcp-Name does not match {}", name.0))
        }
        _ => Ok(()),
    }
}
