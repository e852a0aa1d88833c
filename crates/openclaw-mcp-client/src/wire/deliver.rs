//! Routes each message to its receiver: a call of the fast lane, or `rmcp`.

use openclaw_secrets::Redactor;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::calls::{CallId, CallReply, Fault, PendingCalls, Waiter};
use super::fast_lane::WorkId;
use super::inbox::{ReceiverDropped, ToRmcp, WhenFull};
use super::peek::{LineKind, peek};
use super::skipped::SkippedLines;
use super::{progress, redacted};
use crate::wire::json::{Json, JsonRef};

/// Access to the pending calls of a connection.
pub(super) trait Waiters: Sync {
    /// Runs `act` with the calls locked.
    fn with_calls<T>(&self, act: impl FnOnce(&mut PendingCalls) -> T) -> T;

    /// The log of lines that are not messages.
    fn skipped(&self) -> &SkippedLines;

    /// Whether `rmcp` has started to receive. Until then, messages beyond the queue's capacity are
    /// dropped: the response that `rmcp` needs first may be behind them.
    fn is_rmcp_there(&self) -> bool;
}

/// A request whose response is read by its caller.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) id: u64,
    /// The call that it is made for: what else is read belongs to it.
    pub(super) work: Option<WorkId>,
}

/// Routes a message to its receiver. The response to request `wanted` is returned to the caller; an
/// error without an id is treated as that response.
pub(super) async fn deliver(
    line: &[u8],
    wanted: Option<Wanted>,
    waiters: &impl Waiters,
    to_rmcp: &ToRmcp,
) -> Result<Option<CallReply>, ReceiverDropped> {
    route(peek(line), line, wanted, waiters, to_rmcp).await
}

/// Like [`deliver`], for a line that was classified.
pub(super) async fn route(
    kind: LineKind<'_>,
    line: &[u8],
    wanted: Option<Wanted>,
    waiters: &impl Waiters,
    to_rmcp: &ToRmcp,
) -> Result<Option<CallReply>, ReceiverDropped> {
    let redactor = waiters.skipped().redactor();
    let wanted_id = wanted.map(|wanted| wanted.id);
    match kind {
        LineKind::Answer(id, answer) if Some(id.number()) == wanted_id => {
            Ok(Some(owned(answer, redactor)))
        }
        LineKind::ToRmcp(id, answer) if Some(id) == wanted_id => Ok(Some(owned(answer, redactor))),
        LineKind::Unreadable(id) if Some(id.number()) == wanted_id => {
            Ok(Some(Err(Fault::Unreadable)))
        }
        LineKind::Nameless(error) if wanted.is_some() => Ok(Some(owned(Err(error), redactor))),
        LineKind::Answer(id, answer) => {
            answered(id, answer, waiters, Instant::now());
            Ok(None)
        }
        LineKind::Unreadable(id) => {
            hand_to_waiter(id, Err(Unusable::Unreadable), waiters, Instant::now());
            Ok(None)
        }
        LineKind::Progress(id) => {
            if let Some(watcher) = waiters.with_calls(|calls| calls.progressed(id)) {
                progress::tell(&watcher, line, redactor);
            }
            Ok(None)
        }
        LineKind::ToRmcp(..) | LineKind::Nameless(_) | LineKind::Other => {
            let when_full = if waiters.is_rmcp_there() { WhenFull::Wait } else { WhenFull::Drop };
            let work = wanted.and_then(|wanted| wanted.work);
            to_rmcp.send(line, work, when_full, waiters.skipped()).await?;
            // What a server says before the result of a call, such as a log message, is handled
            // before the result is delivered: `rmcp` gets its turn first.
            tokio::task::yield_now().await;
            Ok(None)
        }
        LineKind::Batch(messages) => {
            let mut found = None;
            for message in messages {
                // Batches must not be nested.
                let line = message.get().as_bytes();
                if matches!(peek(line), LineKind::Batch(_) | LineKind::Garbage) {
                    waiters.skipped().note(line);
                } else {
                    let answer = Box::pin(deliver(line, wanted, waiters, to_rmcp)).await?;
                    found = found.or(answer);
                }
            }
            Ok(found)
        }
        LineKind::Garbage => {
            waiters.skipped().note(line);
            Ok(None)
        }
    }
}

/// Why a response has no result.
enum Unusable<'a> {
    /// It is an error.
    Error(&'a RawValue),
    /// It is not valid JSON.
    Unreadable,
}

impl Unusable<'_> {
    /// Redacts secrets.
    fn fault(self, redactor: &Redactor) -> Fault {
        match self {
            Self::Error(error) => Fault::Error(redacted::error(error, redactor)),
            Self::Unreadable => Fault::Unreadable,
        }
    }
}

/// Copies a response. Secrets are redacted in errors; whether a result is content is known to the
/// caller.
fn owned(answer: Result<JsonRef<'_>, &RawValue>, redactor: &Redactor) -> CallReply {
    answer.map(Json::from).map_err(|error| Unusable::Error(error).fault(redactor))
}

/// Hands the response to a call to its caller. It was received at `now`.
pub(super) fn answered(
    id: CallId,
    answer: Result<JsonRef<'_>, &RawValue>,
    waiters: &impl Waiters,
    now: Instant,
) {
    hand_to_waiter(id, answer.map_err(Unusable::Error), waiters, now);
}

fn hand_to_waiter(
    id: CallId,
    answer: Result<JsonRef<'_>, Unusable<'_>>,
    waiters: &impl Waiters,
    now: Instant,
) {
    let redactor = waiters.skipped().redactor();
    // There may be no waiter: the call timed out, or the server responded twice.
    match waiters.with_calls(|calls| calls.respond(id)) {
        Some(Waiter::Future(waiter)) => {
            let _ = waiter.send(answer.map(Json::from).map_err(|it| it.fault(redactor)));
        }
        Some(Waiter::Function(call)) => {
            call.reply(id.number(), answer.map_err(|it| it.fault(redactor).into()), now);
        }
        None => {}
    }
}
