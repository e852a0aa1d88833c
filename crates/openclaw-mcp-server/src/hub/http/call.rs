//! Tool calls over HTTP. The reply is JSON if it is all that there is to say, or else the last event
//! of a stream.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use openclaw_budget::ByteBudget;
use openclaw_config::LogLevel;
use openclaw_mcp_client::wire::param_headers::marked_arguments;
use openclaw_trace::SpanContext;
use tokio::time::sleep;

use super::super::call::{CallFor, start_in_scope};
use super::super::client::HubClient;
use super::sessions::{CallRefusal, HubSession, SessionCallGuard};
use super::streams::{CallStream, PATIENCE};
use super::{HubBody, VERSION, WITH_POLLING, respond, text};
use crate::front::connection::notification;
use crate::front::events::ReplyingTask;
use crate::front::incoming::{CallLine, CallRequest};
use crate::front::memory::counted;
use crate::front::reply::{
    BUSY, HEADER_MISMATCH, HubReply, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY,
};
use crate::front::running::{CallStep, RunningCall, Watched};
use crate::input::AskableClient as _;

/// A call of a client of the hub.
type HubCall = RunningCall<HubClient>;

/// How a client is asked during a call.
enum Asking {
    /// By a request in the stream; the answer is another POST.
    Session { session: Arc<HubSession>, call: SessionCallGuard, can_pause: bool },
    /// By the result; the answer comes with the next request (2026-07-28).
    Result,
}

/// What comes next in the reply to a call.
enum Next {
    Reply(HubReply),
    /// A notification.
    Event(HubCall, Vec<u8>),
    /// A request to the client.
    Question(HubCall, Vec<u8>),
    Pause(HubCall, Duration),
    Cancelled,
}

/// Handles the call of a client with a session. Returns `None` if it is invalid, which `rmcp` reports.
pub(super) async fn legacy(
    session: &Arc<HubSession>,
    line: &CallLine<'_>,
    headers: &HeaderMap,
) -> Option<Response<HubBody>> {
    let (running, asking) = match start(session, line, headers)? {
        Ok(started) => started,
        Err(NotStarted { status, id, error }) => return Some(json(status, id, error)),
    };
    Some(reply(line.id, running, asking).await)
}

/// Like [`legacy`], for a call in a batch: its replies are sent together, so it is not asked for
/// anything meanwhile. Returns the message, unless the call is cancelled.
pub(super) async fn in_batch(
    session: &Arc<HubSession>,
    line: &CallLine<'_>,
    headers: &HeaderMap,
) -> Option<Option<Vec<u8>>> {
    let (mut running, _asking) = match start(session, line, headers)? {
        Ok(started) => started,
        Err(NotStarted { id, error, .. }) => return Some(Some(error.into_message(id))),
    };
    loop {
        match running.step().await {
            CallStep::Done(reply) => return Some(Some(reply.into_message(line.id))),
            CallStep::Cancelled => return Some(None),
            // Without an answer, the question is declined.
            CallStep::Ask(..) | CallStep::Tell(..) | CallStep::Pause(_) => {}
        }
    }
}

/// The reply to a call that is not started.
struct NotStarted<'a> {
    status: StatusCode,
    /// As JSON.
    id: &'a str,
    error: HubReply,
}

/// Starts the call of a client with a session.
fn start<'a>(
    session: &Arc<HubSession>,
    line: &CallLine<'a>,
    headers: &HeaderMap,
) -> Option<Result<(HubCall, Asking), NotStarted<'a>>> {
    let client = session.client();
    // The session knows the level of its log messages.
    let (answers, events) = ReplyingTask::new(client.abilities(), Some(LogLevel::Debug));
    let guard = match session.begin(line.id, &answers) {
        Ok(guard) => guard,
        Err(CallRefusal::IdInUse) => {
            let words = "the id is in use by another request";
            let error = HubReply::error(INVALID_REQUEST, words);
            return Some(Err(NotStarted { status: StatusCode::BAD_REQUEST, id: "null", error }));
        }
        Err(CallRefusal::TooMany) => {
            let error = HubReply::error(BUSY, "too many calls of this session are in progress");
            let status = StatusCode::TOO_MANY_REQUESTS;
            return Some(Err(NotStarted { status, id: line.id, error }));
        }
    };
    // Earlier clients do not expect an event without data.
    let can_pause = text(headers, &VERSION) == Some(WITH_POLLING);
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
            let scope = Arc::clone(session.scope());
            let watched = if can_pause { Watched::ProgressAndPauses } else { Watched::AsRequested };
            start_in_scope(client, request, answers, events, scope, watched)
        }
    };
    let asking = Asking::Session { session: Arc::clone(session), call: guard, can_pause };
    Some(Ok((running, asking)))
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
    if let Err(problem) = check_headers(client, &request, headers).await {
        return json(StatusCode::BAD_REQUEST, id, HubReply::error(HEADER_MISMATCH, &problem));
    }
    match RunningCall::answered(client, request) {
        Ok(running) => reply(id, running, Asking::Result).await,
        Err(instead) => json(StatusCode::OK, id, instead),
    }
}

/// Checks the arguments that are also sent as headers.
async fn check_headers(
    client: &HubClient,
    request: &CallRequest,
    headers: &HeaderMap,
) -> Result<(), String> {
    let mut view = client.view();
    if view.as_ref().is_some_and(|view| view.tool(&request.name).is_none()) {
        // A server that is still connecting may have it.
        view = client.connected_view().await;
    }
    let Some(view) = view else { return Ok(()) };
    let marked = view.tool(&request.name).map_or(&[][..], |tool| tool.headers());
    if marked.is_empty() {
        return Ok(());
    }
    let arguments = marked_arguments(marked, &request.arguments);
    marked.iter().try_for_each(|header| header.check(&arguments, headers))
}

async fn reply(id: &str, running: HubCall, asking: Asking) -> Response<HubBody> {
    let client = Arc::clone(running.client());
    match next(running, &asking).await {
        Next::Reply(reply) => {
            let status =
                if matches!(asking, Asking::Result) { status(&reply) } else { StatusCode::OK };
            match counted(&client.budget, reply.into_message(id)) {
                Ok(message) => respond(status, "application/json", message),
                Err(spent) => json(StatusCode::OK, id, HubReply::busy(spent)),
            }
        }
        first @ (Next::Event(..) | Next::Question(..) | Next::Pause(..)) => {
            events(id.to_owned(), first, asking, &client.budget)
        }
        // A cancelled call has no reply: it is a stream that ends without an event.
        Next::Cancelled => super::events(HubBody::from(Bytes::new())),
    }
}

async fn next(mut running: HubCall, asking: &Asking) -> Next {
    match running.step().await {
        CallStep::Done(reply) => Next::Reply(reply),
        CallStep::Tell(method, params) => Next::Event(running, notification(method, &params)),
        CallStep::Ask(question, answer) => match asking {
            Asking::Session { session, .. } => {
                Next::Question(running, session.question(&question, answer).into_bytes())
            }
            Asking::Result => Next::Reply(running.parked(&question, answer)),
        },
        CallStep::Pause(retry) => Next::Pause(running, retry),
        CallStep::Cancelled => Next::Cancelled,
    }
}

/// Streams what happens during a call, and its reply. A client that stays away cancels its call.
fn events(id: String, first: Next, asking: Asking, budget: &Arc<ByteBudget>) -> Response<HubBody> {
    let stream = match &asking {
        Asking::Session { session, can_pause, .. } => session.new_stream(*can_pause),
        Asking::Result => CallStream::new(None, false, budget),
    };
    let stream = match stream {
        Ok(stream) => stream,
        Err(spent) => return json(StatusCode::OK, &id, HubReply::busy(spent)),
    };
    let response = super::events(stream.body());
    tokio::spawn(async move {
        tokio::select! {
            () = tell(&stream, &id, first, &asking) => {}
            () = stream.abandoned() => {}
        }
        stream.end();
        if let Asking::Session { session, call, .. } = asking {
            let left = Arc::downgrade(&session);
            drop((call, session));
            // The connection may be lost with the last event.
            sleep(PATIENCE).await;
            if let Some(session) = left.upgrade() {
                session.drop_stream(&stream);
            }
        }
    });
    response
}

async fn tell(stream: &CallStream, id: &str, first: Next, asking: &Asking) {
    let mut step = first;
    loop {
        let running = match step {
            Next::Reply(reply) => {
                if let Err(spent) = stream.push(&reply.into_message(id)) {
                    // Without memory for the error, too, the stream just ends.
                    let _ = stream.push(&HubReply::busy(spent).into_message(id));
                }
                return;
            }
            Next::Event(running, message) => {
                stream.offer(&message);
                running
            }
            Next::Question(running, message) => {
                if let Err(spent) = stream.push(&message) {
                    tracing::warn!(%spent, "cannot ask a client of the hub; cancelled its call");
                    drop(running);
                    let _ = stream.push(&HubReply::busy(spent).into_message(id));
                    return;
                }
                running
            }
            Next::Pause(running, retry) => {
                stream.pause(retry);
                running
            }
            // A cancelled call has no reply.
            Next::Cancelled => return,
        };
        step = next(running, asking).await;
    }
}

/// The status of a reply since 2026-07-28: errors of the protocol itself are errors of HTTP, too.
fn status(reply: &HubReply) -> StatusCode {
    match reply.code() {
        Some(HEADER_MISMATCH | MISSING_CAPABILITY) => StatusCode::BAD_REQUEST,
        Some(METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

/// Returns a response with one message.
pub(super) fn json(status: StatusCode, id: &str, reply: HubReply) -> Response<HubBody> {
    respond(status, "application/json", reply.into_message(id))
}
