//! Messages for a client from other tasks: those of `rmcp`, notifications, and replies to calls that
//! no future waits for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::reply::{BUSY, HubReply};
use super::segments::Segments;

/// With more bytes than this waiting to be written, messages and calls wait, nothing is read from
/// the client, and notifications are dropped.
pub(super) const FULL: usize = 4 * 1024 * 1024;

/// With more bytes than this, a client is behind with reading.
pub(super) const BEHIND: usize = 256 * 1024;
/// With more bytes than this in the outbox, results are replaced by an error: calls that were started
/// before the client stopped reading must not fill the memory.
const MAX_RESULTS: usize = 64 * 1024 * 1024;
const DROPPED: &str = "the result was dropped: 64 MiB of other results wait for the client to read";

/// Messages that the front takes and writes.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    state: Mutex<Taken>,
    filled: Notify,
    emptied: Notify,
}

/// The content of an outbox.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// Lines, each with its line break.
    pub(super) lines: Segments,
    /// The ids of the requests that they answer, as JSON.
    pub(super) answered: Vec<Arc<str>>,
}

impl Taken {
    fn add(&mut self, line: &[u8]) {
        self.lines.push(line);
        self.lines.push(b"\n");
    }
}

impl Outbox {
    /// Adds a line and waits until there is room for it. Safe to cancel.
    pub(super) async fn send(&self, line: &[u8], answers: Option<Arc<str>>) {
        loop {
            let mut emptied = std::pin::pin!(self.emptied.notified());
            emptied.as_mut().enable();
            if self.state().lines.len() < FULL {
                break;
            }
            emptied.await;
        }
        let mut state = self.state();
        state.add(line);
        state.answered.extend(answers);
        drop(state);
        self.filled.notify_one();
    }

    /// Adds a line if there is room for it.
    pub(super) fn offer(&self, line: &[u8]) {
        let mut state = self.state();
        if state.lines.len() < FULL {
            state.add(line);
            drop(state);
            self.filled.notify_one();
        }
    }

    /// Adds the reply to a call, or an error if too many bytes wait already.
    pub(super) fn reply(&self, id: Arc<str>, mut reply: HubReply) {
        let mut state = self.state();
        if state.lines.len() >= MAX_RESULTS {
            reply = HubReply::error(BUSY, DROPPED);
        }
        reply.write_line(&id, &mut state.lines);
        state.answered.push(id);
        // One notification is enough for all that the front takes together.
        let is_first = state.answered.len() == 1;
        drop(state);
        if is_first {
            self.filled.notify_one();
        }
    }

    /// Moves everything to the end of `taken`.
    pub(super) fn take(&self, taken: &mut Taken) {
        let mut state = self.state();
        if state.lines.is_empty() {
            return;
        }
        taken.answered.append(&mut state.answered);
        taken.lines.append(&mut state.lines);
        drop(state);
        self.emptied.notify_waiters();
    }

    /// Waits until something was added. Safe to cancel.
    pub(super) async fn filled(&self) {
        self.filled.notified().await;
    }

    fn state(&self) -> MutexGuard<'_, Taken> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::reply::ReplyTo;
    use super::*;

    fn result(json: String) -> HubReply {
        HubReply::result(json, ReplyTo::Legacy)
    }

    #[test]
    fn results_are_dropped_when_too_many_bytes_wait_and_their_calls_are_answered() {
        let outbox = Outbox::default();
        let large = || result(format!("\"{}\"", "x".repeat(MAX_RESULTS / 4)));
        for id in ["1", "2", "3", "4", "5", "6"] {
            outbox.reply(id.into(), large());
        }
        let mut taken = Taken::default();
        outbox.take(&mut taken);
        assert_eq!(taken.answered.len(), 6);
        assert!(taken.lines.len() < MAX_RESULTS + 1_000, "{}", taken.lines.len());
        // What is read makes room.
        outbox.reply("7".into(), result("{}".to_owned()));
        let mut next = Taken::default();
        outbox.take(&mut next);
        let line = String::from_utf8(next.lines.front().to_vec()).unwrap();
        assert_eq!(line, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n");
    }
}
