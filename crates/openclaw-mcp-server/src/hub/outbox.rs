//! Messages for a client from other tasks: those of `rmcp`, notifications, and replies to calls that
//! no future waits for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use openclaw_budget::{BudgetSpent, ByteBudget, BytePermit, FREE};
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
#[derive(Debug)]
pub(super) struct Outbox {
    state: Mutex<State>,
    filled: Notify,
    emptied: Notify,
}

#[derive(Debug)]
struct State {
    waiting: Taken,
    /// Bytes that the front has taken, and not written yet.
    taken: usize,
    /// The memory of both.
    memory: BytePermit,
}

impl State {
    /// Counts further bytes.
    fn count(&mut self, more: usize) -> Result<(), BudgetSpent> {
        self.memory.resize(self.taken + self.waiting.lines.len() + more)
    }
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
    /// Creates the outbox of a client with this memory.
    pub(super) fn new(budget: &Arc<ByteBudget>) -> Self {
        let (waiting, memory) = (Taken::default(), budget.permit());
        let state = Mutex::new(State { waiting, taken: 0, memory });
        Self { state, filled: Notify::new(), emptied: Notify::new() }
    }

    /// Adds a line and waits until there is room for it. Safe to cancel.
    pub(super) async fn send(&self, line: &[u8], answers: Option<Arc<str>>) {
        loop {
            let mut emptied = std::pin::pin!(self.emptied.notified());
            emptied.as_mut().enable();
            if self.state().waiting.lines.len() < FULL {
                break;
            }
            emptied.await;
        }
        let mut state = self.state();
        match (state.count(line.len()), answers) {
            (Err(spent), Some(id)) if line.len() > FREE => {
                HubReply::busy(spent).write_line(&id, &mut state.waiting.lines);
                state.waiting.answered.push(id);
            }
            // Few: there is room.
            (_, answers) => {
                state.waiting.add(line);
                state.waiting.answered.extend(answers);
            }
        }
        drop(state);
        self.filled.notify_one();
    }

    /// Adds a line if there is room for it.
    pub(super) fn offer(&self, line: &[u8]) {
        let mut state = self.state();
        if state.waiting.lines.len() < FULL && state.count(line.len()).is_ok() {
            state.waiting.add(line);
            drop(state);
            self.filled.notify_one();
        }
    }

    /// Adds the reply to a call, or an error if too many bytes wait already.
    pub(super) fn reply(&self, id: Arc<str>, mut reply: HubReply) {
        let mut state = self.state();
        if state.waiting.lines.len() >= MAX_RESULTS {
            reply = HubReply::error(BUSY, DROPPED);
        } else if let Err(spent) = state.count(reply.len()) {
            reply = HubReply::busy(spent);
        }
        reply.write_line(&id, &mut state.waiting.lines);
        state.waiting.answered.push(id);
        // One notification is enough for all that the front takes together.
        let is_first = state.waiting.answered.len() == 1;
        drop(state);
        if is_first {
            self.filled.notify_one();
        }
    }

    /// Moves everything to the end of `taken`, all of which counts until it is written.
    pub(super) fn take(&self, taken: &mut Taken) {
        let mut state = self.state();
        let is_empty = state.waiting.lines.is_empty();
        if !is_empty {
            taken.answered.append(&mut state.waiting.answered);
            taken.lines.append(&mut state.waiting.lines);
        }
        state.taken = taken.lines.len();
        // Not more than before, besides short errors.
        let _ = state.count(0);
        drop(state);
        if is_empty {
            return;
        }
        self.emptied.notify_waiters();
    }

    /// Waits until something was added. Safe to cancel.
    pub(super) async fn filled(&self) {
        self.filled.notified().await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_dropped_when_too_many_bytes_wait_and_their_calls_are_answered() {
        let outbox = Outbox::new(&ByteBudget::new(usize::MAX));
        let large = || HubReply::Result(format!("\"{}\"", "x".repeat(MAX_RESULTS / 4)));
        for id in ["1", "2", "3", "4", "5", "6"] {
            outbox.reply(id.into(), large());
        }
        let mut taken = Taken::default();
        outbox.take(&mut taken);
        assert_eq!(taken.answered.len(), 6);
        assert!(taken.lines.len() < MAX_RESULTS + 1_000, "{}", taken.lines.len());
        // What is read makes room.
        outbox.reply("7".into(), HubReply::Result("{}".to_owned()));
        let mut next = Taken::default();
        outbox.take(&mut next);
        let line = String::from_utf8(next.lines.front().to_vec()).unwrap();
        assert_eq!(line, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n");
    }

    #[test]
    fn results_that_are_not_read_share_the_memory_of_their_client() {
        let budget = ByteBudget::new(1024 * 1024);
        let outboxes = [(), ()].map(|()| Outbox::new(&budget));
        let large = || HubReply::Result(format!("\"{}\"", "x".repeat(600 * 1024)));
        outboxes[0].reply("1".into(), large());
        let (mut first, mut second) = (Taken::default(), Taken::default());
        outboxes[0].take(&mut first);
        assert!(first.lines.len() > 600 * 1024);
        outboxes[1].reply("2".into(), large());
        outboxes[1].take(&mut second);
        let line = String::from_utf8(second.lines.front().to_vec()).unwrap();
        assert!(line.contains("take 1 MiB of memory already"), "{line}");
        // What is written makes room.
        first = Taken::default();
        outboxes[0].take(&mut first);
        outboxes[1].reply("3".into(), large());
        outboxes[1].take(&mut second);
        assert!(second.lines.len() > 600 * 1024);
    }
}
