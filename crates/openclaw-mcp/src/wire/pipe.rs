//! A call over the pipes of a process.

use tokio::time::Instant;

use super::call_error::CallError;
use super::calls::{CallId, Fault};
use super::fast_lane::Limits;
use super::progress::Watcher;
use super::queue::Queue;
use super::{Closed, frame};
use crate::wire::json::Json;

/// What a server learns when nobody waits for its answer any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WhenDropped {
    Cancel,
    /// Nothing: for questions before the handshake, when a server may not expect to be told.
    Forget,
}

/// Writes a call and waits for its answer.
pub(super) async fn send(
    queue: &Queue,
    limits: Limits,
    when_dropped: WhenDropped,
    watcher: Option<&Watcher>,
    write: impl FnOnce(&mut Vec<u8>, u64),
) -> Result<Json, CallError> {
    let mut now = Instant::now();
    // A server that does not read what it is sent must not be waited for without end.
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
    // After the call was opened: had the connection closed before, nobody would end the call.
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

/// A call that waits. Unless it is over when this is dropped, the server is told to stop.
struct Call<'a> {
    queue: &'a Queue,
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
            if state.calls.close(id).is_some() && self.when_dropped == WhenDropped::Cancel {
                frame::cancelled(&mut state.out, id.number());
                state.out.push(b'\n');
            }
        });
    }
}
