//! A call over HTTP.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use serde_json::value::RawValue;
use tokio::time::{Instant, Sleep, sleep};

use super::HttpWire;
use super::headers::{MessageSubject, Object};
use super::post::Outgoing;
use crate::wire::call_error::CallError;
use crate::wire::calls::CallId;
use crate::wire::deliver::Wanted;
use crate::wire::fast_lane::{TimeLimits, WireCall, WorkId};
use crate::wire::json::Json;
use crate::wire::{Closed, ProgressWatcher, frame};

/// Calls a tool. Dropping the future cancels the call on the server.
pub(in crate::wire) async fn call_tool(
    wire: &Arc<HttpWire>,
    call: &WireCall<'_>,
    limits: TimeLimits,
    watcher: Option<&ProgressWatcher>,
) -> Result<Json, CallError> {
    let WireCall { tool: name, arguments, headers, .. } = *call;
    let subject =
        MessageSubject { method: "tools/call", object: Object::Tool { name, arguments, headers } };
    let size = 384 + arguments.get().len() + call.meta.len() + call.more.len();
    let write = |out: &mut Vec<u8>, id| frame::tool_call(out, id, call);
    send(wire, limits, subject, size, (watcher, call.work), write).await
}

/// Sends another request. Dropping the future cancels it on the server.
pub(in crate::wire) async fn request(
    wire: &Arc<HttpWire>,
    work: Option<WorkId>,
    method: &str,
    params: &RawValue,
    limits: TimeLimits,
) -> Result<Json, CallError> {
    let subject = MessageSubject { method, object: Object::Params(params) };
    let size = 128 + params.get().len();
    let write = |out: &mut Vec<u8>, id| frame::request(out, id, method, params);
    send(wire, limits, subject, size, (None, work), write).await
}

async fn send(
    wire: &Arc<HttpWire>,
    limits: TimeLimits,
    subject: MessageSubject<'_>,
    size: usize,
    (watcher, work): (Option<&ProgressWatcher>, Option<WorkId>),
    write: impl FnOnce(&mut Vec<u8>, u64),
) -> Result<Json, CallError> {
    let (id, mut elsewhere) = wire.calls().open().ok_or(CallError::Busy)?;
    wire.calls().track(id, work);
    if let Some(watcher) = watcher {
        wire.calls().watch(id, watcher);
    }
    let mut call = Call { wire, id, is_over: false };
    // Checked after the call was opened: if the connection was closed before, nothing would
    // complete the call.
    if let Some(closed) = wire.closed() {
        call.is_over = true;
        return Err(closed.clone().into());
    }
    let mut body = Vec::with_capacity(size);
    write(&mut body, id.number());
    let message = Outgoing { subject, body: body.into() };
    let started = Instant::now();
    let mut exchange = pin!(wire.exchange(Wanted { id: id.number(), work }, &message));
    let mut is_posted = false;
    let mut patience = pin!(sleep(limits.timeout));
    let outcome = loop {
        tokio::select! {
            // The timeout first: a server that sends without a pause always has something to read.
            biased;
            () = due(&mut patience) => {
                let progress = wire.calls().last_progress(id);
                let left = limits.left(started, progress, Instant::now());
                let left = left.ok_or_else(|| CallError::TimedOut(started.elapsed()))?;
                patience.set(sleep(left));
            }
            exchanged = &mut exchange, if !is_posted => match exchanged {
                Ok(Some(answer)) => break Ok(answer),
                // The response will arrive on the open stream.
                Ok(None) => is_posted = true,
                Err(error) => break Err(error),
            },
            answer = &mut elsewhere => break answer.map_err(|_| {
                wire.closed().cloned().unwrap_or(Closed::ByUs).into()
            }),
        }
    };
    call.is_over = true;
    Ok(outcome??)
}

/// Waits for a deadline. Unlike the timer alone, this does not depend on whether the runtime has
/// looked at its timers since, which a busy one does only now and then.
async fn due(timer: &mut Pin<&mut Sleep>) {
    poll_fn(|context| {
        let is_due = Instant::now() >= timer.deadline();
        if is_due { Poll::Ready(()) } else { timer.as_mut().poll(context) }
    })
    .await;
}

/// A pending call. Dropping it before it is over cancels it on the server: since 2026-07-28 by
/// closing the stream, which dropping does; before, by a notification.
struct Call<'a> {
    wire: &'a Arc<HttpWire>,
    id: CallId,
    is_over: bool,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let was_open = match self.is_over {
            true => self.wire.calls().close(self.id).is_some(),
            false => self.wire.calls().abandon(self.id).is_some(),
        };
        if self.is_over || !was_open || self.wire.route().is_modern() {
            return;
        }
        let mut body = Vec::with_capacity(128);
        frame::cancelled(&mut body, self.id.number());
        let wire = Arc::clone(self.wire);
        self.wire.tasks.spawn(async move { wire.notify_cancelled(body).await });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_deadline_is_seen_before_the_runtime_looks_at_its_timers() {
        let mut timer = pin!(sleep(Duration::from_millis(1)));
        assert!(timer.as_mut().now_or_never().is_none());
        // Blocks the only thread, as a poll that does not return does.
        std::thread::sleep(Duration::from_millis(5));
        assert!(due(&mut timer).now_or_never().is_some());
        let mut later = pin!(sleep(Duration::from_secs(600)));
        assert!(due(&mut later).now_or_never().is_none());
    }
}
