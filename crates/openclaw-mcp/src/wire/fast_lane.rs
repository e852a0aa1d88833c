//! The lane for calls: raw arguments in, a raw result out.

use std::process::ExitStatus;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::Instant;

use super::call_error::CallError;
use super::calls::Calls;
use super::http::{self, HttpWire};
use super::pipe::WhenDropped;
use super::progress::Watcher;
use super::queue::Queue;
use super::{Closed, frame, pipe};
use crate::connection::param_headers::ParamHeader;
use crate::wire::json::Json;

/// How long a call may take (T7).
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Without a sign of life.
    pub timeout: Duration,
    /// In all, however much progress there is.
    pub cap: Duration,
}

impl Limits {
    /// How much longer to wait for a call, if the server told of progress meanwhile.
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

/// A call of a tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolCall<'a> {
    /// The tool, as its server calls it.
    pub tool: &'a str,
    /// Its arguments: one JSON object.
    pub arguments: &'a RawValue,
    /// What stands in `_meta` besides the progress token: members of an object, without braces.
    pub meta: &'a str,
    /// Further members of `params`, without braces, such as `inputResponses`.
    pub more: &'a str,
    /// Which arguments are told in headers, too (HTTP, since 2026-07-28).
    pub headers: &'a [ParamHeader],
}

/// The lane for calls. A clone leads to the same server.
#[derive(Clone)]
pub struct FastLane {
    way: Way,
}

/// What it leads over.
#[derive(Clone)]
enum Way {
    Pipe(Arc<Queue>),
    Http(Arc<HttpWire>),
}

impl std::fmt::Debug for FastLane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FastLane").field("in_flight", &self.in_flight()).finish()
    }
}

/// Somebody thinks about a question of the server.
pub(crate) struct Thinking(FastLane);

impl Drop for Thinking {
    fn drop(&mut self) {
        self.0.with_calls(Calls::answered);
    }
}

/// A [`FastLane`] that does not keep its connection.
#[derive(Debug)]
pub(crate) struct WeakLane(WeakWay);

#[derive(Debug)]
enum WeakWay {
    Pipe(Weak<Queue>),
    Http(Weak<HttpWire>),
}

impl WeakLane {
    /// The lane, if the connection is still there.
    pub(crate) fn upgrade(&self) -> Option<FastLane> {
        let way = match &self.0 {
            WeakWay::Pipe(queue) => Way::Pipe(queue.upgrade()?),
            WeakWay::Http(wire) => Way::Http(wire.upgrade()?),
        };
        Some(FastLane { way })
    }
}

impl FastLane {
    pub(super) fn over_pipe(queue: Arc<Queue>) -> Self {
        Self { way: Way::Pipe(queue) }
    }

    pub(super) fn over_http(wire: Arc<HttpWire>) -> Self {
        Self { way: Way::Http(wire) }
    }

    /// How many calls wait for an answer.
    pub fn in_flight(&self) -> usize {
        match &self.way {
            Way::Pipe(queue) => queue.state().calls.count(),
            Way::Http(wire) => wire.calls().count(),
        }
    }

    /// How long ago the server last said anything.
    pub fn last_heard(&self) -> Duration {
        match &self.way {
            Way::Pipe(queue) => queue.heard.age(),
            Way::Http(wire) => wire.heard.age(),
        }
    }

    /// Somebody thinks about a question of the server for as long as this lives: calls are not late for it.
    /// How long they may take in all still holds.
    pub(crate) fn thinking(&self) -> Thinking {
        self.with_calls(Calls::asked);
        Thinking(self.clone())
    }

    /// The way to the same server, for somebody who does not keep it open.
    pub(crate) fn downgrade(&self) -> WeakLane {
        WeakLane(match &self.way {
            Way::Pipe(queue) => WeakWay::Pipe(Arc::downgrade(queue)),
            Way::Http(wire) => WeakWay::Http(Arc::downgrade(wire)),
        })
    }

    fn with_calls(&self, change: impl FnOnce(&mut Calls)) {
        match &self.way {
            Way::Pipe(queue) => change(&mut queue.state().calls),
            Way::Http(wire) => change(&mut wire.calls()),
        }
    }

    /// Why the connection is closed, if it is.
    pub fn closed(&self) -> Option<&Closed> {
        match &self.way {
            Way::Pipe(queue) => queue.closed(),
            Way::Http(wire) => wire.closed(),
        }
    }

    /// Waits until the connection is closed; says why. Safe to cancel.
    pub async fn until_closed(&self) -> Closed {
        match &self.way {
            Way::Pipe(queue) => queue.until_closed().await,
            Way::Http(wire) => wire.until_closed().await,
        }
    }

    /// A local server's process has ended: what it has answered before still counts, then the connection
    /// closes.
    pub(crate) fn server_ended(&self, status: ExitStatus) {
        match &self.way {
            Way::Pipe(queue) => queue.server_ended(status),
            Way::Http(_) => {}
        }
    }

    /// The first line that a local server printed and that is no message, if there was one: one clean
    /// line. From outside.
    pub(crate) fn first_skipped(&self) -> Option<&str> {
        match &self.way {
            Way::Pipe(queue) => queue.skipped.first(),
            Way::Http(_) => None,
        }
    }

    /// The id of the session at present, where there is one (HTTP, up to 2025-11-25).
    pub fn session_id(&self) -> Option<String> {
        match &self.way {
            Way::Pipe(_) => None,
            Way::Http(wire) => wire.session_id(),
        }
    }

    /// Calls a tool.
    ///
    /// Dropping the future tells the server that nobody waits any more, as a time-out does.
    ///
    /// # Errors
    /// If the server answers with one, too late or not at all.
    pub async fn call_tool(&self, call: ToolCall<'_>, limits: Limits) -> Result<Json, CallError> {
        self.call_tool_watched(call, limits, None).await
    }

    /// The same for somebody who wants to know how far it has got.
    ///
    /// # Errors
    /// If the server answers with one, too late or not at all.
    #[allow(clippy::manual_async_fn, reason = "it would hold its arguments twice")]
    pub fn call_tool_watched<'a>(
        &'a self,
        call: ToolCall<'a>,
        limits: Limits,
        watcher: Option<&'a Watcher>,
    ) -> impl Future<Output = Result<Json, CallError>> + Send + 'a {
        async move {
            match &self.way {
                Way::Pipe(queue) => {
                    let frame = |out: &mut Vec<u8>, id| frame::tool_call(out, id, &call);
                    pipe::send(queue, limits, WhenDropped::Cancel, watcher, frame).await
                }
                // Large: a call over a pipe would carry its size around.
                Way::Http(wire) => Box::pin(http::call_tool(wire, &call, limits, watcher)).await,
            }
        }
    }

    /// Sends any other request whose answer is wanted raw. `params` is one JSON value.
    ///
    /// # Errors
    /// If the server answers with one, too late or not at all.
    pub async fn request(
        &self,
        method: &str,
        params: &RawValue,
        limits: Limits,
    ) -> Result<Json, CallError> {
        self.send(method, params, limits, WhenDropped::Cancel).await
    }

    /// The same before the handshake: a server whose answer nobody waits for any more is not told.
    pub(crate) async fn ask(
        &self,
        method: &str,
        params: &RawValue,
        limits: Limits,
    ) -> Result<Json, CallError> {
        self.send(method, params, limits, WhenDropped::Forget).await
    }

    async fn send(
        &self,
        method: &str,
        params: &RawValue,
        limits: Limits,
        when_dropped: WhenDropped,
    ) -> Result<Json, CallError> {
        match &self.way {
            Way::Pipe(queue) => {
                let frame = |out: &mut Vec<u8>, id| frame::request(out, id, method, params);
                pipe::send(queue, limits, when_dropped, None, frame).await
            }
            // Large, and rare.
            Way::Http(wire) => Box::pin(http::request(wire, method, params, limits)).await,
        }
    }
}
