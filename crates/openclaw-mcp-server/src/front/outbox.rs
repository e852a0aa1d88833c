//! Messages for a client from other tasks: those of `rmcp`, notifications, and replies to calls that
//! no future waits for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use openclaw_budget::{BudgetSpent, ByteBudget, BytePermit, FREE};
use tokio::sync::Notify;

use super::reply::{BUSY, HubReply};
use super::segments::Segments;
use crate::batch::{BatchReplies, BatchStep, OpenBatches, TOO_LARGE};

/// With more bytes than this waiting to be written, messages and calls wait, nothing is read from
/// the client, and notifications are dropped.
pub(crate) const FULL: usize = 4 * 1024 * 1024;

/// With more bytes than this, a client is behind with reading.
pub(crate) const BEHIND: usize = 256 * 1024;
/// With more bytes than this in the outbox, results are replaced by an error: calls that were started
/// before the client stopped reading must not fill the memory.
const MAX_RESULTS: usize = 64 * 1024 * 1024;
const DROPPED: &str = "the result was dropped: 64 MiB of other results wait for the client to read";

/// Messages that the front takes and writes.
#[derive(Debug)]
pub(crate) struct Outbox {
    state: Mutex<OutboxState>,
    filled: Notify,
    emptied: Notify,
}

#[derive(Debug)]
struct OutboxState {
    content: Taken,
    /// The batches whose requests are in progress (2025-03-26).
    batches: OpenBatches<Arc<str>>,
    /// Bytes that the front has taken, and not written yet.
    taken: usize,
    /// The memory of both.
    memory: BytePermit,
}

/// The content of an outbox.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// Lines, each with its line break.
    pub(crate) lines: Segments,
    /// The ids of the requests that they answer, as JSON.
    pub(crate) answered: Vec<Arc<str>>,
}

impl Taken {
    fn add(&mut self, line: &[u8]) {
        self.lines.push(line);
        self.lines.push(b"\n");
    }
}

impl OutboxState {
    /// Adds the reply to a request of a batch, and the line of all of them if it is the last one.
    fn add_to_batch(&mut self, id: &Arc<str>, reply: &[u8]) {
        let Self { content, batches, .. } = self;
        let too_large = || HubReply::error(BUSY, TOO_LARGE).into_message(id);
        if let BatchStep::Over(Some(line)) = batches.reply(id, reply, too_large) {
            content.add(&line);
        }
    }

    /// Adds the reply to a request.
    fn answer(&mut self, id: Arc<str>, reply: HubReply) {
        if self.batches.has(&id) {
            self.add_to_batch(&id, &reply.into_message(&id));
        } else {
            reply.write_line(&id, &mut self.content.lines);
        }
        self.content.answered.push(id);
    }

    /// Counts further bytes.
    fn count(&mut self, more: usize) -> Result<(), BudgetSpent> {
        self.memory.resize(self.taken + self.content.lines.len() + more)
    }
}

impl Outbox {
    /// Creates the outbox of a client with this memory.
    pub(crate) fn new(budget: &Arc<ByteBudget>) -> Self {
        let state = Mutex::new(OutboxState {
            content: Taken::default(),
            batches: OpenBatches::default(),
            taken: 0,
            memory: budget.permit(),
        });
        Self { state, filled: Notify::new(), emptied: Notify::new() }
    }

    /// Adds a line and waits until there is room for it. Safe to cancel.
    pub(crate) async fn send(&self, line: &[u8], answers: Option<Arc<str>>) {
        loop {
            let mut emptied = std::pin::pin!(self.emptied.notified());
            emptied.as_mut().enable();
            if self.state().content.lines.len() < FULL {
                break;
            }
            emptied.await;
        }
        let mut state = self.state();
        match (state.count(line.len()), answers) {
            (Err(spent), Some(id)) if line.len() > FREE => {
                state.answer(id, HubReply::busy(spent));
            }
            (_, Some(id)) if state.batches.has(&id) => {
                state.add_to_batch(&id, line);
                state.content.answered.push(id);
            }
            // Few: there is room.
            (_, answers) => {
                state.content.add(line);
                state.content.answered.extend(answers);
            }
        }
        drop(state);
        self.filled.notify_one();
    }

    /// Adds a line if there is room for it.
    pub(crate) fn offer(&self, line: &[u8]) {
        let mut state = self.state();
        if state.content.lines.len() < FULL && state.count(line.len()).is_ok() {
            state.content.add(line);
            drop(state);
            self.filled.notify_one();
        }
    }

    /// Adds the reply to a call, or an error if too many bytes wait already.
    pub(crate) fn reply(&self, id: Arc<str>, mut reply: HubReply) {
        let mut state = self.state();
        if state.content.lines.len() >= MAX_RESULTS {
            reply = HubReply::error(BUSY, DROPPED);
        } else if let Err(spent) = state.count(reply.len()) {
            reply = HubReply::busy(spent);
        }
        let is_in_batch = state.batches.has(&id);
        state.answer(id, reply);
        // One notification is enough for all that the front takes together.
        let is_first = state.content.answered.len() == 1 || is_in_batch;
        drop(state);
        if is_first {
            self.filled.notify_one();
        }
    }

    /// Moves everything to the end of `taken`, all of which counts until it is written.
    pub(crate) fn take(&self, taken: &mut Taken) {
        let mut state = self.state();
        let is_empty = state.content.lines.is_empty();
        if !is_empty {
            taken.answered.append(&mut state.content.answered);
            taken.lines.append(&mut state.content.lines);
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

    /// Adds a batch with these requests, and the replies that it has already.
    pub(crate) fn open_batch(&self, ids: Vec<Arc<str>>, replies: BatchReplies) {
        let mut state = self.state();
        let OutboxState { content, batches, .. } = &mut *state;
        if let Some(line) = batches.open(ids, replies) {
            content.add(&line);
            drop(state);
            self.filled.notify_one();
        }
    }

    /// Whether a request is in a batch.
    pub(crate) fn is_in_batch(&self, id: &Arc<str>) -> bool {
        self.state().batches.has(id)
    }

    /// Removes a request that gets no reply from its batch, if it is in one.
    pub(crate) fn withdraw(&self, id: &Arc<str>) {
        let mut state = self.state();
        let OutboxState { content, batches, .. } = &mut *state;
        if let BatchStep::Over(Some(line)) = batches.withdraw(id) {
            content.add(&line);
            drop(state);
            self.filled.notify_one();
        }
    }

    /// Waits until something was added. Safe to cancel.
    pub(crate) async fn filled(&self) {
        self.filled.notified().await;
    }

    fn state(&self) -> MutexGuard<'_, OutboxState> {
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
        let outbox = Outbox::new(&ByteBudget::new(usize::MAX));
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

    #[test]
    fn results_that_are_not_read_share_the_memory_of_their_client() {
        let budget = ByteBudget::new(1024 * 1024);
        let outboxes = [(), ()].map(|()| Outbox::new(&budget));
        let large = || result(format!("\"{}\"", "x".repeat(600 * 1024)));
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
