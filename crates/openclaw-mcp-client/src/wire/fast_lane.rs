//! The lane for calls: raw arguments in, raw result out.

use std::process::ExitStatus;
use std::sync::{Arc, Weak};
use std::time::Duration;

use openclaw_oauth::grant::Grant;
use openclaw_secrets::Redactor;
use openclaw_tools::StartedCall;
use openclaw_trace::SpanContext;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::Instant;

use super::call_error::CallError;
use super::calls::{OnReply, PendingCalls};
use super::http::{self, HttpWire};
use super::param_headers::ParamHeader;
use super::pipe::WhenDropped;
use super::progress::ProgressWatcher;
use super::queue::WriteQueue;
use super::{Closed, frame, pipe, redacted};
use crate::wire::json::{Json, JsonCow};

/// Time limits of a call (T7).
#[derive(Debug, Clone, Copy)]
pub struct TimeLimits {
    /// Without progress.
    pub timeout: Duration,
    /// In total, regardless of progress.
    pub cap: Duration,
}

impl TimeLimits {
    /// Returns how much longer to wait, given the last progress; `None` if the call has timed out.
    pub(super) fn left(
        self,
        started: Instant,
        progress: Option<Instant>,
        now: Instant,
    ) -> Option<Duration> {
        let of_this_step = self.timeout.checked_sub(now.saturating_duration_since(progress?))?;
        let of_the_whole = self.cap.checked_sub(now.saturating_duration_since(started))?;
        Some(of_this_step.min(of_the_whole)).filter(|left| !left.is_zero())
    }
}

/// A tool call.
#[derive(Debug, Clone, Copy)]
pub struct WireCall<'a> {
    /// The tool's name on its server.
    pub tool: &'a str,
    /// The arguments: one JSON object.
    pub arguments: &'a RawValue,
    /// Members of `_meta` besides the progress token, without braces.
    pub meta: &'a str,
    /// Further members of `params`, without braces, such as `inputResponses`.
    pub more: &'a str,
    /// Arguments that are also sent as headers (HTTP, since 2026-07-28).
    pub headers: &'a [ParamHeader],
    /// The span of the call, sent in `_meta`.
    pub trace: Option<&'a SpanContext>,
    /// The call among those in progress on the server, if they are tracked.
    pub work: Option<WorkId>,
}

/// The number of a call among those in progress on its server. A message that a remote server sends on
/// the stream of a call has it as an extension: it belongs to that call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkId(pub(crate) u64);

/// The lane for calls. Clones share the connection.
#[derive(Clone)]
pub struct FastLane {
    way: Transport,
}

#[derive(Clone)]
enum Transport {
    Pipe(Arc<WriteQueue>),
    Http(Arc<HttpWire>),
}

impl std::fmt::Debug for FastLane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FastLane").field("in_flight", &self.in_flight()).finish()
    }
}

/// Marks that the user is answering a request from the server.
pub(crate) struct Thinking(FastLane);

impl Drop for Thinking {
    fn drop(&mut self) {
        self.0.with_calls(PendingCalls::answered);
    }
}

/// A [`FastLane`] that does not keep its connection alive.
#[derive(Debug)]
pub(crate) struct WeakLane(WeakTransport);

#[derive(Debug)]
enum WeakTransport {
    Pipe(Weak<WriteQueue>),
    Http(Weak<HttpWire>),
}

impl WeakLane {
    /// Returns the lane, if the connection still exists.
    pub(crate) fn upgrade(&self) -> Option<FastLane> {
        let way = match &self.0 {
            WeakTransport::Pipe(queue) => Transport::Pipe(queue.upgrade()?),
            WeakTransport::Http(wire) => Transport::Http(wire.upgrade()?),
        };
        Some(FastLane { way })
    }
}

/// A pipe that calls can be started on without a future.
#[derive(Clone)]
pub struct DirectLane(Arc<WriteQueue>);

/// Where a call that is being started is written to.
pub struct CallFrame<'a> {
    out: &'a mut Vec<u8>,
    id: u64,
}

impl CallFrame<'_> {
    /// Writes the call.
    pub fn write(self, call: &WireCall<'_>) {
        frame::tool_call(self.out, self.id, call);
    }
}

impl DirectLane {
    /// Returns the redactor of the server's secrets.
    pub fn redactor(&self) -> &Redactor {
        self.0.skipped.redactor()
    }

    /// Spawns a task for the rest of a call that goes on after its first response; cancelling the call
    /// aborts it.
    pub fn go_on(&self, call: u64, rest: impl Future<Output = ()> + Send + 'static) {
        self.0.go_on(call, rest);
    }

    /// Ends the task of a call. Returns false if the call was cancelled.
    pub fn is_over(&self, call: u64) -> bool {
        self.0.is_over(call)
    }

    /// Starts the call that `write` writes: `on_reply` gets the response. Secrets are redacted in
    /// errors, but not in results.
    pub fn start<C: OnReply + 'static>(
        self,
        work: Option<WorkId>,
        limits: TimeLimits,
        now: Instant,
        on_reply: Box<C>,
        write: impl FnOnce(&C, CallFrame<'_>),
    ) -> StartedCall {
        let frame = |on_reply: &C, out: &mut Vec<u8>, id| write(on_reply, CallFrame { out, id });
        pipe::start(self.0, work, limits, now, on_reply, frame)
    }
}

impl FastLane {
    pub(super) fn over_pipe(queue: Arc<WriteQueue>) -> Self {
        Self { way: Transport::Pipe(queue) }
    }

    pub(super) fn over_http(wire: Arc<HttpWire>) -> Self {
        Self { way: Transport::Http(wire) }
    }

    /// Returns the number of pending calls.
    pub fn in_flight(&self) -> usize {
        match &self.way {
            Transport::Pipe(queue) => queue.state().calls.count(),
            Transport::Http(wire) => wire.calls().count(),
        }
    }

    /// Returns the time since the server last sent something.
    pub fn last_activity(&self) -> Duration {
        match &self.way {
            Transport::Pipe(queue) => queue.heard.age(),
            Transport::Http(wire) => wire.heard.age(),
        }
    }

    /// Suspends the timeout of calls while the user answers a request from the server, until the
    /// guard is dropped. The total limit still applies.
    pub(crate) fn thinking(&self) -> Thinking {
        self.with_calls(PendingCalls::asked);
        Thinking(self.clone())
    }

    /// Returns the calls whose response has arrived after they had ended, once each.
    pub(crate) fn late_responses(&self) -> Vec<WorkId> {
        match &self.way {
            Transport::Pipe(queue) => queue.state().calls.late_responses(),
            Transport::Http(wire) => wire.calls().late_responses(),
        }
    }

    /// Returns a handle that does not keep the connection alive.
    pub(crate) fn downgrade(&self) -> WeakLane {
        WeakLane(match &self.way {
            Transport::Pipe(queue) => WeakTransport::Pipe(Arc::downgrade(queue)),
            Transport::Http(wire) => WeakTransport::Http(Arc::downgrade(wire)),
        })
    }

    /// Returns the redactor of the server's secrets.
    pub(crate) fn redactor(&self) -> &Redactor {
        match &self.way {
            Transport::Pipe(queue) => queue.skipped.redactor(),
            Transport::Http(wire) => wire.redactor(),
        }
    }

    fn with_calls(&self, change: impl FnOnce(&mut PendingCalls)) {
        match &self.way {
            Transport::Pipe(queue) => change(&mut queue.state().calls),
            Transport::Http(wire) => change(&mut wire.calls()),
        }
    }

    /// Returns why the connection is closed, if it is.
    pub fn closed(&self) -> Option<&Closed> {
        match &self.way {
            Transport::Pipe(queue) => queue.closed(),
            Transport::Http(wire) => wire.closed(),
        }
    }

    /// Waits until the connection is closed and returns the reason. Safe to cancel.
    pub async fn until_closed(&self) -> Closed {
        match &self.way {
            Transport::Pipe(queue) => queue.until_closed().await,
            Transport::Http(wire) => wire.until_closed().await,
        }
    }

    /// Reports that a local server's process has exited: output from before the exit is still
    /// delivered, then the connection closes.
    pub(crate) fn server_ended(&self, status: ExitStatus) {
        match &self.way {
            Transport::Pipe(queue) => queue.server_ended(status),
            Transport::Http(_) => {}
        }
    }

    /// Returns the first line from a local server that is not a message, sanitized. Untrusted.
    pub(crate) fn first_skipped(&self) -> Option<&str> {
        match &self.way {
            Transport::Pipe(queue) => queue.skipped.first(),
            Transport::Http(_) => None,
        }
    }

    /// Returns the current session id, if there is one (HTTP, up to 2025-11-25).
    pub fn session_id(&self) -> Option<String> {
        match &self.way {
            Transport::Pipe(_) => None,
            Transport::Http(wire) => wire.session_id(),
        }
    }

    /// Returns the login that the requests are authorized with, if there is one.
    pub fn grant(&self) -> Option<Arc<Grant>> {
        match &self.way {
            Transport::Pipe(_) => None,
            Transport::Http(wire) => wire.grant(),
        }
    }

    /// Subscribes to interruptions after which the server's own messages may have been missed, and
    /// what the session held is gone (HTTP, up to 2025-11-25).
    pub(crate) fn interruptions(&self) -> Option<watch::Receiver<u64>> {
        match &self.way {
            Transport::Pipe(_) => None,
            Transport::Http(wire) => Some(wire.interruptions()),
        }
    }

    /// Waits until messages that a remote server initiates can be received, but not for long.
    pub(crate) async fn until_listening(&self) {
        if let Transport::Http(wire) = &self.way {
            wire.until_listening().await;
        }
    }

    /// Calls a tool, and reports progress to `watcher`.
    ///
    /// Dropping the future cancels the call on the server, as a timeout does.
    ///
    /// # Errors
    /// If the server responds with an error, the call times out, or the connection fails.
    #[allow(clippy::manual_async_fn, reason = "an `async fn` would hold its arguments twice")]
    pub fn call_tool<'a>(
        &'a self,
        call: WireCall<'a>,
        limits: TimeLimits,
        watcher: Option<&'a ProgressWatcher>,
    ) -> impl Future<Output = Result<Json, CallError>> + Send + 'a {
        async move {
            match &self.way {
                Transport::Pipe(queue) => {
                    let frame = |out: &mut Vec<u8>, id| frame::tool_call(out, id, &call);
                    let about = (watcher, call.work);
                    pipe::send(queue, limits, WhenDropped::Cancel, about, frame).await
                }
                // Boxed: the future is large, and would enlarge that of a call over a pipe.
                Transport::Http(wire) => {
                    Box::pin(http::call_tool(wire, &call, limits, watcher)).await
                }
            }
            .map(|result| redacted::result(JsonCow::Owned(result), self.redactor()).into())
        }
    }

    /// Returns a way to start calls without a future, if this is a pipe that has room.
    pub(crate) fn direct(&self) -> Option<DirectLane> {
        match &self.way {
            Transport::Pipe(queue) if queue.has_room() => Some(DirectLane(Arc::clone(queue))),
            Transport::Pipe(_) | Transport::Http(_) => None,
        }
    }

    /// Sends another request and returns its raw result. `params` is one JSON value.
    ///
    /// # Errors
    /// If the server responds with an error, the call times out, or the connection fails.
    pub async fn request(
        &self,
        method: &str,
        params: &RawValue,
        limits: TimeLimits,
    ) -> Result<Json, CallError> {
        self.request_for(None, method, params, limits).await
    }

    /// Like [`request`](Self::request), for this call among those in progress on the server.
    ///
    /// # Errors
    /// Like [`request`](Self::request).
    pub(crate) async fn request_for(
        &self,
        work: Option<WorkId>,
        method: &str,
        params: &RawValue,
        limits: TimeLimits,
    ) -> Result<Json, CallError> {
        self.send(work, method, params, limits, WhenDropped::Cancel).await
    }

    /// Like [`request`](Self::request), but for use before the handshake: dropping the future does
    /// not send a cancellation.
    pub(crate) async fn ask(
        &self,
        method: &str,
        params: &RawValue,
        limits: TimeLimits,
    ) -> Result<Json, CallError> {
        self.send(None, method, params, limits, WhenDropped::Forget).await
    }

    async fn send(
        &self,
        work: Option<WorkId>,
        method: &str,
        params: &RawValue,
        limits: TimeLimits,
        when_dropped: WhenDropped,
    ) -> Result<Json, CallError> {
        match &self.way {
            Transport::Pipe(queue) => {
                let frame = |out: &mut Vec<u8>, id| frame::request(out, id, method, params);
                pipe::send(queue, limits, when_dropped, (None, work), frame).await
            }
            // Boxed: large and rare.
            Transport::Http(wire) => {
                Box::pin(http::request(wire, work, method, params, limits)).await
            }
        }
    }
}
