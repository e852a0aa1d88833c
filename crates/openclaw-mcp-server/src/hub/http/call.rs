//! Tool calls over HTTP. The reply is JSON if it is all that there is to say, or else the last event
//! of a stream.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use openclaw_trace::SpanContext;
use tokio::sync::mpsc;

use super::super::answers::AskableClient as _;
use super::super::call::CallFor;
use super::super::client::{HubClient, notification};
use super::super::incoming::{CallLine, CallRequest};
use super::super::reply::{
    HEADER_MISMATCH, HubReply, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY,
};
use super::super::replying::ReplyingTask;
use super::super::running::{CallStep, RunningCall};
use super::sessions::{HubSession, SessionCallGuard};
use super::{HubBody, respond, text};

/// How many events wait for a client that does not read. Its call is not continued meanwhile.
const EVENTS: usize = 16;

/// How a client is asked during a call.
enum Asking {
    /// By a request in the stream; the answer is another POST.
    Session { session: Arc<HubSession>, _call: SessionCallGuard },
    /// By the result; the answer comes with the next request (2026-07-28).
    Result,
}

/// What comes next in the reply to a call.
enum Next {
    Reply(HubReply),
    Event(RunningCall, Vec<u8>),
    Cancelled,
}

/// Handles the call of a client with a session. Returns `None` if it is invalid, which `rmcp` reports.
pub(super) async fn legacy(
    session: &Arc<HubSession>,
    line: &CallLine<'_>,
    headers: &HeaderMap,
) -> Option<Response<HubBody>> {
    let client = session.client();
    let (answers, events) = ReplyingTask::new(client.abilities());
    let Some(guard) = session.begin(line.id, &answers) else {
        let error = HubReply::error(INVALID_REQUEST, "the id is in use by another request");
        return Some(json(StatusCode::BAD_REQUEST, "null", error));
    };
    let trace = SpanContext::find(|name| text(headers, name));
    let plain = line.plain().filter(|plain| trace.is_none() && !plain.is_modern());
    let started = plain.zip(client.rights()).and_then(|(plain, rights)| {
        let session = session.scope().session();
        let by = CallFor { session, answers: &*answers, watcher: None };
        let done = || {
            let answers = Arc::clone(&answers);
            move |reply| answers.reply(reply)
        };
        client.begin(&rights, &plain, by, done)
    });
    let running = match started {
        Some(started) => {
            started.lane().flush();
            RunningCall::started(client, started, events)
        }
        None => {
            let mut request = line.to_request().filter(|it| it.modern.is_none())?;
            request.trace = request.trace.or(trace);
            RunningCall::in_scope(client, request, answers, events, Arc::clone(session.scope()))
        }
    };
    let asking = Asking::Session { session: Arc::clone(session), _call: guard };
    Some(reply(line.id, running, asking).await)
}

/// Handles the call of a client without a session.
pub(super) async fn modern(
    client: &Arc<HubClient>,
    id: &str,
    mut request: CallRequest,
    headers: &HeaderMap,
) -> Response<HubBody> {
    if request.trace.is_none() {
        request.trace = SpanContext::find(|name| text(headers, name));
    }
    let Some(mut modern) = request.modern.take() else { unreachable!("checked by the caller") };
    let parked = modern.state.as_deref().and_then(|state| client.hub.parked.take(state));
    let running = match parked {
        Some(parked) => match parked.continued(&mut modern.responses) {
            Ok(running) => running,
            Err(error) => return json(StatusCode::OK, id, error),
        },
        None => {
            let abilities = modern.abilities;
            request.modern = Some(modern);
            RunningCall::start(client, request, abilities)
        }
    };
    reply(id, running, Asking::Result).await
}

async fn reply(id: &str, running: RunningCall, asking: Asking) -> Response<HubBody> {
    match next(running, &asking).await {
        Next::Reply(reply) => {
            let status =
                if matches!(asking, Asking::Result) { status(&reply) } else { StatusCode::OK };
            json(status, id, reply)
        }
        Next::Event(running, first) => events(id.to_owned(), running, asking, first),
        Next::Cancelled => json(StatusCode::OK, id, HubReply::cancelled()),
    }
}

async fn next(mut running: RunningCall, asking: &Asking) -> Next {
    match running.step().await {
        CallStep::Done(reply) => Next::Reply(reply),
        CallStep::Tell(method, params) => Next::Event(running, notification(method, &params)),
        CallStep::Ask(question, answer) => match asking {
            Asking::Session { session, .. } => {
                Next::Event(running, session.question(&question, answer).into_bytes())
            }
            Asking::Result => Next::Reply(running.parked(&question, answer)),
        },
        CallStep::Cancelled => Next::Cancelled,
    }
}

/// Streams what happens during a call, and its reply. The task ends with the response: a client that
/// disconnects cancels its call.
fn events(id: String, running: RunningCall, asking: Asking, first: Vec<u8>) -> Response<HubBody> {
    let (sender, receiver) = mpsc::channel(EVENTS);
    tokio::spawn(async move {
        let telling = async {
            let (mut running, mut message) = (running, first);
            loop {
                if sender.send(event(&message)).await.is_err() {
                    return;
                }
                match next(running, &asking).await {
                    Next::Reply(reply) => {
                        let _ = sender.send(event(&reply.into_message(&id))).await;
                        return;
                    }
                    Next::Event(later, next) => (running, message) = (later, next),
                    // A cancelled call has no reply.
                    Next::Cancelled => return,
                }
            }
        };
        tokio::select! {
            () = telling => {}
            () = sender.closed() => {}
        }
    });
    let frames = stream::unfold(receiver, |mut receiver: mpsc::Receiver<Bytes>| async move {
        let event = receiver.recv().await?;
        Some((Ok::<_, Infallible>(Frame::data(event)), receiver))
    });
    let mut response = Response::new(HubBody::stream(StreamBody::new(frames)));
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// The status of a reply since 2026-07-28: errors of the protocol itself are errors of HTTP, too.
fn status(reply: &HubReply) -> StatusCode {
    match reply.code() {
        Some(HEADER_MISMATCH | MISSING_CAPABILITY) => StatusCode::BAD_REQUEST,
        Some(METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

fn event(message: &[u8]) -> Bytes {
    [b"event: message\ndata: ", message, b"\n\n"].concat().into()
}

/// Returns a response with one message.
pub(super) fn json(status: StatusCode, id: &str, reply: HubReply) -> Response<HubBody> {
    respond(status, "application/json", reply.into_message(id))
}
