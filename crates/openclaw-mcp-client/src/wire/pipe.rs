//! A call over the pipes of a process.

use std::sync::Arc;

use openclaw_tools::{CallLane, StartedCall};
use tokio::time::Instant;

use super::call_error::CallError;
use super::calls::{CallId, Fault, OnReply, Waiter};
use super::fast_lane::{TimeLimits, WorkId};
use super::progress::ProgressWatcher;
use super::queue::{QueueState, WriteQueue};
use super::{Closed, frame};
use crate::wire::json::Json;

/// What to send when a call is dropped before its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WhenDropped {
    Cancel,
    /// Nothing: before the handshake, a server may not expect a cancellation.
    Forget,
}

/// Sends a call and waits for its response.
pub(super) async fn send(
    queue: &WriteQueue,
    limits: TimeLimits,
    when_dropped: WhenDropped,
    (watcher, work): (Option<&ProgressWatcher>, Option<WorkId>),
    write: impl FnOnce(&mut Vec<u8>, u64),
) -> Result<Json, CallError> {
    let mut now = Instant::now();
    // Waiting for a server that does not read its input must be bounded.
    if !queue.has_room() {
        match tokio::time::timeout(limits.timeout, queue.room()).await {
            Ok(room) => room?,
            Err(_) => return Err(CallError::TimedOut(now.elapsed())),
        }
        now = Instant::now();
    }
    let mut is_due_sooner = false;
    let opened = queue.push(|state| {
        let (id, answer) = state.calls.open()?;
        is_due_sooner = state.calls.limit(id, now, limits);
        state.calls.track(id, work);
        if let Some(watcher) = watcher {
            state.calls.watch(id, watcher);
        }
        write(&mut state.out, id.number());
        state.out.push(b'\n');
        Some((id, answer))
    });
    let (id, answer) = opened.ok_or(CallError::Busy)?;
    if is_due_sooner {
        queue.is_due_sooner();
    }
    let mut call = Call { queue, id, when_dropped, is_over: false };
    // Checked after the call was opened: if the connection was closed before, nothing would
    // complete the call.
    if let Some(closed) = queue.closed() {
        call.is_over = true;
        queue.state().calls.close(id);
        return Err(closed.clone().into());
    }
    let answer = answer.await;
    call.is_over = !matches!(answer, Ok(Err(Fault::TimedOut(_))));
    match answer {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(fault)) => Err(fault.into()),
        Err(_) => Err(queue.closed().cloned().unwrap_or(Closed::ByUs).into()),
    }
}

/// Sends a call whose response is passed to `call`. It is buffered until the queue is flushed. The
/// queue may exceed its capacity by this call: whether there is room is checked before.
pub(super) fn start<C: OnReply + 'static>(
    queue: Arc<WriteQueue>,
    work: Option<WorkId>,
    limits: TimeLimits,
    now: Instant,
    call: Box<C>,
    write: impl FnOnce(&C, &mut Vec<u8>, u64),
) -> StartedCall {
    let mut state = queue.state();
    if !state.calls.has_room() {
        drop(state);
        call.reply(CallId::NONE.number(), Err(CallError::Busy), now);
        return StartedCall::new(queue, CallId::NONE.number());
    }
    let QueueState { calls, out, .. } = &mut *state;
    let id = calls.open_for(|id| {
        write(&call, out, id.number());
        out.push(b'\n');
        Waiter::Function(call)
    });
    let is_due_sooner = calls.limit(id, now, limits);
    calls.track(id, work);
    drop(state);
    if is_due_sooner {
        queue.is_due_sooner();
    }
    // Checked after the call was opened: if the connection was closed before, nothing would complete
    // the call.
    if let Some(closed) = queue.closed() {
        let waiter = queue.state().calls.close(id);
        if let Some(Some(Waiter::Function(call))) = waiter {
            call.reply(id.number(), Err(closed.clone().into()), now);
        }
    }
    StartedCall::new(queue, id.number())
}

impl CallLane for WriteQueue {
    fn flush(&self) {
        Self::flush(self);
    }

    fn cancel(&self, call: u64) -> bool {
        CallId::of_number(call).is_some_and(|id| Self::cancel(self, id))
    }
}

/// A pending call. Dropping it before it is over cancels it on the server.
struct Call<'a> {
    queue: &'a WriteQueue,
    id: CallId,
    when_dropped: WhenDropped,
    is_over: bool,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let id = self.id;
        self.queue.push(|state| {
            if state.calls.abandon(id).is_some() && self.when_dropped == WhenDropped::Cancel {
                frame::cancelled(&mut state.out, id.number());
                state.out.push(b'\n');
            }
        });
    }
}
