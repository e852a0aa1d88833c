//! The calls that a server is processing: they determine which sessions a request from the server
//! concerns, and when its answer is no longer needed (T11).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::CallInProgress;
use crate::wire::WorkId;

/// The calls in progress on a server.
#[derive(Debug, Default)]
pub(super) struct ServerCalls {
    calls: Mutex<Calls>,
    /// A call ended that a request from the server may belong to.
    ended: Notify,
}

#[derive(Debug, Default)]
struct Calls {
    next: u64,
    /// The caller of each, in the order of their start.
    open: VecDeque<(WorkId, Arc<CallInProgress>)>,
    /// The last caller, which is usually the next one too.
    last: Option<Arc<CallInProgress>>,
    /// Number of requests waiting for calls to end: usually none, and then nothing is woken.
    questions: usize,
}

/// The calls in progress when the server sent a request.
pub(super) struct CallsInProgress {
    /// Their callers, newest first.
    pub(super) callers: Vec<CallInProgress>,
    calls: Vec<WorkId>,
}

impl ServerCalls {
    /// Registers a call and returns its number.
    pub(super) fn begin(&self, agent: &str, session: Option<&str>) -> WorkId {
        let mut calls = self.calls();
        let is_same =
            |it: &&Arc<CallInProgress>| it.agent == agent && it.session.as_deref() == session;
        let call = match calls.last.as_ref().filter(is_same) {
            Some(last) => Arc::clone(last),
            None => {
                let agent = agent.to_owned();
                let session = session.map(str::to_owned);
                Arc::clone(calls.last.insert(Arc::new(CallInProgress { agent, session })))
            }
        };
        let number = WorkId(calls.next);
        calls.next += 1;
        calls.open.push_back((number, call));
        number
    }

    /// Removes a call.
    pub(super) fn end(&self, number: WorkId) {
        let mut calls = self.calls();
        // Most calls end in the order of their start, so it is one of the first.
        if let Some(at) = calls.open.iter().position(|(open, _)| *open == number) {
            calls.open.remove(at);
        }
        if calls.questions > 0 {
            self.ended.notify_waiters();
        }
    }

    /// Returns the calls that a request of the server may belong to: the one that is known, or else
    /// all in progress.
    pub(super) fn about(&self, work: Option<WorkId>) -> CallsInProgress {
        let calls = self.calls();
        let open = || {
            let open = calls.open.iter();
            open.filter(move |(number, _)| work.is_none_or(|work| work == *number))
        };
        CallsInProgress {
            callers: open().rev().map(|(_, call)| (**call).clone()).collect(),
            calls: match work {
                // Also if it has ended meanwhile: so has its request.
                Some(work) => vec![work],
                None => open().map(|(number, _)| *number).collect(),
            },
        }
    }

    /// Waits until all calls of `occasion` have ended. Without calls, this never returns.
    pub(super) async fn over(&self, occasion: &CallsInProgress) {
        if occasion.calls.is_empty() {
            return std::future::pending().await;
        }
        let _question = PausedTimeout::new(self);
        loop {
            // Registered before the check: a call that ends after it wakes this task.
            let ended = self.ended.notified();
            let is_one_of_them = |(open, _): &(WorkId, _)| occasion.calls.contains(open);
            if !self.calls().open.iter().any(is_one_of_them) {
                return;
            }
            ended.await;
        }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a request that waits for calls to end.
struct PausedTimeout<'a>(&'a ServerCalls);

impl<'a> PausedTimeout<'a> {
    fn new(work: &'a ServerCalls) -> Self {
        work.calls().questions += 1;
        Self(work)
    }
}

impl Drop for PausedTimeout<'_> {
    fn drop(&mut self) {
        self.0.calls().questions -= 1;
    }
}
