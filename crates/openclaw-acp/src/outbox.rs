//! Bounds what waits to be written to the client.
//!
//! The queues of the ACP crate have no limit. So updates are handed to it only while there is room,
//! and requests are read only while few responses wait.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Bytes of updates that may wait before no more are handed over.
const ROOM: usize = 256 * 1024;
/// Requests that may be unanswered before no more are read. Far more than there are sessions, each
/// of which runs one prompt: the others are answered soon.
const MAX_OWED: usize = 1_024;

/// What kind of frame was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// A `session/update`.
    Update,
    /// A response.
    Response,
    /// Anything else.
    Other,
}

/// Counts what waits to be written.
#[derive(Debug, Default)]
pub(crate) struct WriteBacklog {
    waiting: Mutex<Waiting>,
    /// Notified when something was written.
    written: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The sizes of the updates that wait, in order.
    updates: VecDeque<usize>,
    bytes: usize,
    /// Requests that are not answered yet.
    owed: usize,
}

impl WriteBacklog {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an update that is handed over.
    pub(crate) fn hands_over(&self, bytes: usize) {
        let mut waiting = self.lock();
        waiting.updates.push_back(bytes);
        waiting.bytes += bytes;
    }

    /// Returns whether an update may be handed over.
    pub(crate) fn has_room(&self) -> bool {
        self.lock().bytes < ROOM
    }

    /// Waits until an update may be handed over.
    pub(crate) async fn room(&self) {
        self.until(|waiting| waiting.bytes < ROOM).await;
    }

    /// Counts a request.
    pub(crate) fn owes(&self) {
        self.lock().owed += 1;
    }

    /// Waits until another request may be read.
    pub(crate) async fn may_owe(&self) {
        self.until(|waiting| waiting.owed < MAX_OWED).await;
    }

    /// Counts a frame that was written.
    pub(crate) fn wrote(&self, frame: FrameKind) {
        let mut waiting = self.lock();
        match frame {
            FrameKind::Update => {
                let bytes = waiting.updates.pop_front().unwrap_or_default();
                waiting.bytes -= bytes;
            }
            FrameKind::Response => waiting.owed = waiting.owed.saturating_sub(1),
            FrameKind::Other => return,
        }
        drop(waiting);
        self.written.notify_waiters();
    }

    async fn until(&self, is_so: impl Fn(&Waiting) -> bool) {
        loop {
            let mut written = std::pin::pin!(self.written.notified());
            // Registered before the check: a frame that is written in between is not missed.
            written.as_mut().enable();
            if is_so(&self.lock()) {
                return;
            }
            written.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn there_is_room_again_when_updates_were_written() {
        let outbox = WriteBacklog::default();
        outbox.hands_over(ROOM - 1);
        assert!(outbox.has_room());
        outbox.hands_over(10);
        let mut room = Box::pin(outbox.room());
        assert!(!outbox.has_room() && room.as_mut().now_or_never().is_none());
        outbox.wrote(FrameKind::Other);
        assert!(!outbox.has_room());
        outbox.wrote(FrameKind::Update);
        room.await;
    }

    #[tokio::test]
    async fn no_more_requests_are_read_while_too_many_are_unanswered() {
        let outbox = WriteBacklog::default();
        (0..MAX_OWED).for_each(|_| outbox.owes());
        let mut may = Box::pin(outbox.may_owe());
        assert!(may.as_mut().now_or_never().is_none());
        outbox.wrote(FrameKind::Response);
        may.await;
    }
}
