//! The calls that a server is processing: they determine which sessions a request from the server
//! concerns, and when its answer is no longer needed (T11).
//!
//! Not every server stops when a call is cancelled or times out. Until its response arrives after all, such
//! a call is one that a later request may belong to: without it, a request would be taken for one about the
//! call of another caller.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::CallInProgress;
use crate::wire::WorkId;

/// How long a call is remembered that ended without a response, if none arrives: servers need not respond to
/// a call that was cancelled.
const REMEMBERED: Duration = Duration::from_secs(30 * 60);
/// How many of them are remembered.
const MAX_ABANDONED: usize = 4_096;

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
    /// The calls that ended without a response, oldest first.
    abandoned: VecDeque<AbandonedCall>,
    /// When such a call was last forgotten for lack of room.
    forgotten: Option<Instant>,
    /// The last caller, which is usually the next one too.
    last: Option<Arc<CallInProgress>>,
    /// Number of requests waiting for calls to end: usually none, and then nothing is woken.
    questions: usize,
}

/// A call that the server may still process.
#[derive(Debug)]
struct AbandonedCall {
    number: WorkId,
    caller: Arc<CallInProgress>,
    since: Instant,
}

/// The calls in progress when the server sent a request.
pub(super) struct CallsInProgress {
    /// Their callers, newest first, and then those of calls that the server may still process.
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

    /// Removes a call that the server has responded to.
    pub(super) fn end(&self, number: WorkId) {
        self.remove(&mut self.calls(), number);
    }

    /// Removes a call that ended without a response, and remembers it.
    pub(super) fn abandon(&self, number: WorkId, now: Instant) {
        let mut calls = self.calls();
        let Some(caller) = self.remove(&mut calls, number) else { return };
        calls.forget_old(now);
        if calls.abandoned.len() == MAX_ABANDONED
            && let Some(oldest) = calls.abandoned.pop_front()
            && calls.abandoned.iter().all(|it| it.caller != oldest.caller)
        {
            calls.forgotten = Some(now);
        }
        calls.abandoned.push_back(AbandonedCall { number, caller, since: now });
    }

    fn remove(&self, calls: &mut Calls, number: WorkId) -> Option<Arc<CallInProgress>> {
        // Most calls end in the order of their start, so it is one of the first.
        let at = calls.open.iter().position(|(open, _)| *open == number);
        let removed = at.and_then(|at| calls.open.remove(at));
        if calls.questions > 0 {
            self.ended.notify_waiters();
        }
        removed.map(|(_, caller)| caller)
    }

    /// Whether there are calls that the server may still process.
    pub(super) fn has_abandoned(&self) -> bool {
        !self.calls().abandoned.is_empty()
    }

    /// Forgets the abandoned calls that the server has responded to.
    pub(super) fn settle(&self, responded: &[WorkId]) {
        if !responded.is_empty() {
            let mut calls = self.calls();
            calls.abandoned.retain(|it| !responded.contains(&it.number));
        }
    }

    /// Returns the calls that a request of the server may belong to: the one that is known, or else
    /// all in progress and all that it may still process.
    pub(super) fn about(&self, work: Option<WorkId>, now: Instant) -> CallsInProgress {
        let mut calls = self.calls();
        calls.forget_old(now);
        let calls = &*calls;
        let open = || {
            let open = calls.open.iter();
            open.filter(move |(number, _)| work.is_none_or(|work| work == *number))
        };
        let mut callers: Vec<CallInProgress> =
            open().rev().map(|(_, call)| (**call).clone()).collect();
        if work.is_none() {
            let abandoned: BTreeSet<_> = calls.abandoned.iter().map(|it| &*it.caller).collect();
            callers.extend(abandoned.into_iter().cloned());
            // Somebody, who is not known any more.
            let unknown = || CallInProgress { agent: String::new(), session: None };
            callers.extend(calls.forgotten.map(|_| unknown()));
        }
        CallsInProgress {
            callers,
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

impl Calls {
    /// Forgets the abandoned calls that have been remembered for long enough.
    fn forget_old(&mut self, now: Instant) {
        let is_old = |since: Instant| now.saturating_duration_since(since) >= REMEMBERED;
        while self.abandoned.front().is_some_and(|it| is_old(it.since)) {
            self.abandoned.pop_front();
        }
        self.forgotten = self.forgotten.filter(|since| !is_old(*since));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions(calls: &ServerCalls, work: Option<WorkId>, now: Instant) -> Vec<Option<String>> {
        calls.about(work, now).callers.into_iter().map(|caller| caller.session).collect()
    }

    fn some(session: &str) -> Option<String> {
        Some(session.to_owned())
    }

    #[test]
    fn a_request_may_belong_to_a_call_that_ended_without_a_response() {
        let calls = ServerCalls::default();
        let now = Instant::now();
        let ended = calls.begin("main", Some("a"));
        let open = calls.begin("main", Some("b"));
        calls.abandon(ended, now);
        assert_eq!(sessions(&calls, None, now), [some("b"), some("a")]);
        assert_eq!(sessions(&calls, Some(open), now), [some("b")], "it is known");
        calls.settle(&[ended]);
        assert_eq!(sessions(&calls, None, now), [some("b")], "the server has responded");
        calls.end(open);
        assert!(!calls.has_abandoned() && sessions(&calls, None, now).is_empty());
    }

    #[test]
    fn calls_without_a_response_are_remembered_for_a_bounded_time_and_in_a_bounded_number() {
        let calls = ServerCalls::default();
        let now = Instant::now();
        let abandon = |session: &str| calls.abandon(calls.begin("main", Some(session)), now);
        abandon("a");
        (0..MAX_ABANDONED).for_each(|_| abandon("b"));
        assert_eq!(sessions(&calls, None, now), [some("b"), None], "`a` may be anybody");
        assert_eq!(calls.calls().abandoned.len(), MAX_ABANDONED);
        let later = now + REMEMBERED;
        assert!(sessions(&calls, None, later).is_empty());
        assert!(!calls.has_abandoned());
    }
}
