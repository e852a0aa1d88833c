//! The write buffer of a connection, and the state that both lanes share.

use std::collections::HashMap;
use std::io;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::call_error::CallError;
use super::calls::{CallId, Expired, PendingCalls};
use super::deliver::Waiters;
use super::ending::CloseReason;
use super::last_activity::LastActivity;
use super::outlet::Outlet;
use super::pending_requests::PendingRequests;
use super::skipped::SkippedLines;
use super::traffic::Traffic;
use super::{Closed, ENDS, frame};

/// With more bytes than this in the buffer, nothing is added: the server does not read.
const HIGH_WATER: usize = 4 * 1024 * 1024;
/// From this number of calls in flight, writes are batched: one system call for each costs more
/// than waking the writer.
const CROWD: usize = 8;
/// A buffer with more capacity than this is freed once it is empty.
const KEPT: usize = 256 * 1024;
/// How long a server may read nothing while the buffer is full.
const UNREAD: Duration = Duration::from_secs(10);

/// The write queue of a connection.
pub(super) struct WriteQueue {
    state: Mutex<QueueState>,
    /// Dropping it closes the server's input.
    outlet: Mutex<Option<Arc<Outlet>>>,
    /// The buffer is not empty, or the connection is closing.
    work: Notify,
    /// The buffer has room again.
    room: Notify,
    /// A call has an earlier deadline than the timer.
    due: Notify,
    ending: CloseReason,
    /// The tasks of calls that no future waits for and that go on after their first response.
    continuing: Mutex<HashMap<u64, AbortHandle>>,
    /// Notifies the reader that the process has exited.
    ends: Mutex<Option<oneshot::Sender<ExitStatus>>>,
    /// Requests from the server that are not answered yet.
    pub(super) asked: PendingRequests,
    pub(super) heard: LastActivity,
    pub(super) skipped: SkippedLines,
    pub(super) traffic: Traffic,
    /// `rmcp` has started to receive.
    pub(super) is_rmcp_there: AtomicBool,
}

#[derive(Default)]
pub(super) struct QueueState {
    pub(super) out: Vec<u8>,
    pub(super) calls: PendingCalls,
    /// The writer is writing: new messages must be queued behind it.
    writing: bool,
}

impl WriteQueue {
    pub(super) fn new(
        outlet: Outlet,
        skipped: SkippedLines,
        ends: oneshot::Sender<ExitStatus>,
        traffic: Traffic,
    ) -> Self {
        Self {
            state: Mutex::default(),
            outlet: Mutex::new(Some(Arc::new(outlet))),
            work: Notify::new(),
            room: Notify::new(),
            due: Notify::new(),
            ending: CloseReason::default(),
            continuing: Mutex::default(),
            ends: Mutex::new(Some(ends)),
            asked: PendingRequests::default(),
            heard: LastActivity::default(),
            skipped,
            traffic,
            is_rmcp_there: AtomicBool::new(false),
        }
    }

    /// The lock is held briefly, and never across an `await`.
    pub(super) fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outlet(&self) -> Option<Arc<Outlet>> {
        self.outlet.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns why the connection is closed, if it is.
    pub(super) fn closed(&self) -> Option<&Closed> {
        self.ending.reason()
    }

    /// Waits until the connection is closed. Safe to cancel.
    pub(super) async fn until_closed(&self) -> Closed {
        self.ending.until().await
    }

    /// Reports that the process has exited: the rest of its output is read, then the connection
    /// closes.
    pub(super) fn server_ended(&self, status: ExitStatus) {
        let ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ends) = ends {
            let _ = ends.send(status);
        }
    }

    /// Returns whether a message can be added without waiting.
    pub(super) fn has_room(&self) -> bool {
        self.closed().is_none() && !self.is_full()
    }

    fn is_full(&self) -> bool {
        self.state().out.len() >= HIGH_WATER
    }

    /// Waits until a message can be added. Safe to cancel.
    pub(super) async fn room(&self) -> Result<(), Closed> {
        loop {
            let room = self.room.notified();
            if let Some(closed) = self.closed() {
                return Err(closed.clone());
            }
            if !self.is_full() {
                return Ok(());
            }
            room.await;
        }
    }

    /// Adds a message. If nothing else is queued, the caller writes it directly: waking a task
    /// would cost more than the call. With many calls in flight it is left to the writer, which
    /// batches them.
    pub(super) fn push<T>(&self, add: impl FnOnce(&mut QueueState) -> T) -> T {
        let mut state = self.state();
        let was_idle = state.out.is_empty() && !state.writing;
        let added = add(&mut state);
        let is_crowded = state.calls.count() >= CROWD;
        self.write_out(state, was_idle && !is_crowded);
        added
    }

    /// Writes the buffer directly, if nothing else is being written; what does not fit is left to the
    /// writer.
    pub(super) fn flush(&self) {
        let state = self.state();
        if !state.out.is_empty() && !state.writing {
            self.write_out(state, true);
        }
    }

    /// Writes what fits of the buffer, if `directly`, and leaves the rest to the writer.
    fn write_out(&self, mut state: MutexGuard<'_, QueueState>, directly: bool) {
        if directly && let Some(outlet) = self.outlet() {
            // An error is left to the writer.
            let written = outlet.try_write(&state.out).unwrap_or(0);
            self.traffic.sent(written);
            state.out.drain(..written);
        }
        let is_left = !state.out.is_empty();
        drop(state);
        if is_left {
            self.work.notify_one();
        }
    }

    /// Notifies [`Self::keep_time`] of an earlier deadline.
    pub(super) fn is_due_sooner(&self) {
        self.due.notify_one();
    }

    /// Times out calls until the connection closes. One timer serves all of them: setting and
    /// cancelling one for each would be a large part of the cost of a call.
    pub(super) async fn keep_time(self: Arc<Self>) {
        loop {
            let next_look = self.expire();
            let look = async {
                match next_look {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = look => {}
                () = self.due.notified() => {}
                _ = self.until_closed() => return,
            }
        }
    }

    /// Completes the calls that have timed out, and returns when to look again.
    fn expire(&self) -> Option<Instant> {
        let now = Instant::now();
        let (next_look, expired) = self.state().calls.expire(now);
        for Expired { id, call, after } in expired {
            self.push(|state| cancelled(state, id));
            call.reply(id.number(), Err(CallError::TimedOut(after)), now);
        }
        next_look
    }

    /// Cancels a call that no future waits for. Returns whether it was pending.
    pub(super) fn cancel(&self, id: CallId) -> bool {
        let closed = self.push(|state| {
            let closed = state.calls.abandon(id);
            if closed.is_some() {
                cancelled(state, id);
            }
            closed
        });
        if closed.is_some() {
            // It is dropped here, without the lock.
            return true;
        }
        let task = self.continuing().remove(&id.number());
        task.map(|task| task.abort()).is_some()
    }

    /// Spawns a task for the rest of a call that no future waits for.
    pub(super) fn go_on(&self, call: u64, rest: impl Future<Output = ()> + Send + 'static) {
        // Locked meanwhile, so that the task does not end before it is known.
        let mut continuing = self.continuing();
        continuing.insert(call, tokio::spawn(rest).abort_handle());
    }

    /// Ends the task of a call. Returns false if the call was cancelled.
    pub(super) fn is_over(&self, call: u64) -> bool {
        self.continuing().remove(&call).is_some()
    }

    fn continuing(&self) -> MutexGuard<'_, HashMap<u64, AbortHandle>> {
        self.continuing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the writer: batches the buffered messages into one write, until the connection closes.
    pub(super) async fn write(self: Arc<Self>) {
        let mut batch = Vec::new();
        loop {
            {
                let mut state = self.state();
                batch.clear();
                std::mem::swap(&mut batch, &mut state.out);
                state.writing = !batch.is_empty();
            }
            self.room.notify_waiters();
            if batch.is_empty() {
                if self.closed().is_some() {
                    break;
                }
                self.work.notified().await;
                continue;
            }
            let Some(outlet) = self.outlet() else { break };
            if let Err(reason) = self.write_all(&outlet, &batch).await {
                self.close(reason);
                break;
            }
            if batch.capacity() > KEPT {
                batch = Vec::new();
            }
        }
        // Dropping the outlet closes the server's input.
        *self.outlet.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    async fn write_all(&self, outlet: &Outlet, mut bytes: &[u8]) -> Result<(), Closed> {
        while !bytes.is_empty() {
            match timeout(UNREAD, outlet.write(bytes)).await {
                Ok(Ok(written)) => {
                    self.traffic.sent(written);
                    bytes = &bytes[written..];
                }
                Ok(Err(error)) => {
                    // Usually the process has exited, and the reader is about to notice.
                    let _ = timeout(ENDS, self.until_closed()).await;
                    return Err(broken(&error));
                }
                Err(_) if self.is_full() => return Err(Closed::Unread),
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Closes the connection: buffered messages are still written, but pending calls fail. The
    /// first reason counts.
    pub(super) fn close(&self, reason: Closed) {
        self.ending.set(reason);
        let calls = self.state().calls.clear();
        self.work.notify_one();
        self.room.notify_waiters();
        for (id, call) in calls {
            let reason = self.closed().cloned().unwrap_or(Closed::ByUs);
            call.reply(id.number(), Err(reason.into()), Instant::now());
        }
    }
}

/// Adds the notification that a call is cancelled.
fn cancelled(state: &mut QueueState, id: CallId) {
    frame::cancelled(&mut state.out, id.number());
    state.out.push(b'\n');
}

impl Waiters for WriteQueue {
    fn with_calls<T>(&self, act: impl FnOnce(&mut PendingCalls) -> T) -> T {
        act(&mut self.state().calls)
    }

    fn skipped(&self) -> &SkippedLines {
        &self.skipped
    }

    fn is_rmcp_there(&self) -> bool {
        self.is_rmcp_there.load(Ordering::Relaxed)
    }
}

/// Maps an I/O error to a reason; a broken pipe was closed by the server.
pub(super) fn broken(error: &io::Error) -> Closed {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Closed::ByServer,
        kind => Closed::Broken(kind),
    }
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "these are tests")]

    use std::process::Stdio;

    use openclaw_secrets::Redactor;
    use tokio::process::Command;

    use super::*;

    #[tokio::test]
    async fn few_messages_are_written_immediately_and_many_are_batched_in_order() {
        let mut echo = Command::new("cat");
        let echo = echo.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut echo = echo.spawn().unwrap();
        let outlet = Outlet::new(echo.stdin.take().unwrap()).unwrap();
        // Waits until the pipe is known to be writable.
        outlet.write(b"").await.unwrap();
        let skipped = SkippedLines::from("x", &Redactor::new());
        let queue =
            Arc::new(WriteQueue::new(outlet, skipped, oneshot::channel().0, Traffic::default()));
        let mut answers = Vec::new();
        for number in 1..=CROWD + 2 {
            answers.push(queue.push(|state| {
                state.out.extend_from_slice(format!("{number};").as_bytes());
                state.calls.open().unwrap()
            }));
            // The writer has not started: what is missing was written by `push` itself.
            let waits = queue.state().out.iter().filter(|byte| **byte == b';').count();
            assert_eq!(waits, (number + 1).saturating_sub(CROWD));
        }
        queue.close(Closed::ByUs);
        Arc::clone(&queue).write().await;
        let written = echo.wait_with_output().await.unwrap().stdout;
        assert_eq!(String::from_utf8(written).unwrap(), "1;2;3;4;5;6;7;8;9;10;");
    }
}
