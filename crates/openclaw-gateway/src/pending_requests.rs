//! Requests that wait for the answer of a user, by id.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

use openclaw_protocol::{ErrorCode, ErrorShape};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Pending requests `Q` that are answered with `A`.
#[derive(Debug)]
pub(crate) struct OpenRequests<Q, A> {
    open: Mutex<BTreeMap<String, Open<Q, A>>>,
    next: AtomicU64,
}

#[derive(Debug)]
struct Open<Q, A> {
    asked: Q,
    answer: oneshot::Sender<A>,
    /// The callers that cannot answer it.
    passed: BTreeSet<u64>,
}

/// The error for an id without a pending request.
pub(crate) fn not_pending() -> ErrorShape {
    ErrorShape::new(ErrorCode::ApprovalNotFound, "no pending request with this id")
}

impl<Q, A> Default for OpenRequests<Q, A> {
    fn default() -> Self {
        Self { open: Mutex::default(), next: AtomicU64::new(0) }
    }
}

impl<Q: Clone, A> OpenRequests<Q, A> {
    /// Returns a unique number.
    pub(crate) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Adds a request, which can be answered from now on.
    pub(crate) fn open(&self, id: String, asked: Q) -> oneshot::Receiver<A> {
        let (answer, answered) = oneshot::channel();
        self.open.lock().insert(id, Open { asked, answer, passed: BTreeSet::new() });
        answered
    }

    /// Removes a request.
    pub(crate) fn close(&self, id: &str) {
        self.open.lock().remove(id);
    }

    /// Number of pending requests.
    pub(crate) fn count(&self) -> usize {
        self.open.lock().len()
    }

    /// The pending requests.
    pub(crate) fn list(&self) -> Vec<Q> {
        self.open.lock().values().map(|open| open.asked.clone()).collect()
    }

    /// Answers a request. An invalid answer leaves it open.
    pub(crate) fn answer(
        &self,
        id: &str,
        answer: impl FnOnce(&Q) -> Result<A, ErrorShape>,
    ) -> Result<(), ErrorShape> {
        let asked = self.open.lock().get(id).ok_or_else(not_pending)?.asked.clone();
        // Not under the lock: validating may take a moment.
        let answer = answer(&asked)?;
        let waiting = self.open.lock().remove(id).ok_or_else(not_pending)?;
        // If the receiver is gone, the answer is too late.
        waiting.answer.send(answer).map_err(|_| not_pending())
    }

    /// Records that a caller cannot answer a request.
    pub(crate) fn pass(&self, id: &str, caller: u64) -> Result<(), ErrorShape> {
        self.open.lock().get_mut(id).ok_or_else(not_pending)?.passed.insert(caller);
        Ok(())
    }

    /// Whether a caller has said that it cannot answer a request.
    pub(crate) fn has_passed(&self, id: &str, caller: u64) -> bool {
        self.open.lock().get(id).is_some_and(|open| open.passed.contains(&caller))
    }

    /// Whether any caller has said so.
    pub(crate) fn is_passed(&self, id: &str) -> bool {
        self.open.lock().get(id).is_some_and(|open| !open.passed.is_empty())
    }
}
