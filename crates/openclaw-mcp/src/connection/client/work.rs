//! For whom a server works now: so it is known whom a question of it concerns, and when nobody waits for
//! the answer any more (T11).

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::CallInProgress;

/// The calls that a server works on.
#[derive(Debug, Default)]
pub(super) struct Work {
    calls: Mutex<Calls>,
    /// A call is over that a question may belong to.
    ended: Notify,
}

#[derive(Debug, Default)]
struct Calls {
    next: u64,
    /// Who makes each, in the order in which they began.
    open: Vec<(u64, Arc<CallInProgress>)>,
    /// Who made the last one: mostly the same makes the next.
    last: Option<Arc<CallInProgress>>,
    /// How many questions wait for the end of calls: mostly none, and then nothing is woken.
    questions: usize,
}

/// What a server works on at the time of a question.
pub(super) struct Occasion {
    /// For these sessions.
    pub(super) sessions: Vec<String>,
    /// Those who call, newest first.
    pub(super) callers: Vec<CallInProgress>,
    calls: Vec<u64>,
}

impl Work {
    /// A call begins; its number.
    pub(super) fn begin(&self, agent: &str, session: Option<&str>) -> u64 {
        let mut calls = self.calls();
        let is_same =
            |it: &&Arc<CallInProgress>| it.agent == agent && it.session.as_deref() == session;
        let call = match calls.last.as_ref().filter(is_same) {
            Some(last) => Arc::clone(last),
            None => {
                let (agent, session) = (agent.to_owned(), session.map(str::to_owned));
                Arc::clone(calls.last.insert(Arc::new(CallInProgress { agent, session })))
            }
        };
        let number = calls.next;
        calls.next += 1;
        calls.open.push((number, call));
        number
    }

    /// A call is over.
    pub(super) fn end(&self, number: u64) {
        let mut calls = self.calls();
        calls.open.retain(|(open, _)| *open != number);
        if calls.questions > 0 {
            self.ended.notify_waiters();
        }
    }

    /// What it works on now. Which of its calls it asks for is not told: it may be each of them.
    pub(super) fn now(&self) -> Occasion {
        let calls = self.calls();
        let sessions: BTreeSet<&String> =
            calls.open.iter().filter_map(|(_, call)| call.session.as_ref()).collect();
        Occasion {
            sessions: sessions.into_iter().cloned().collect(),
            callers: calls.open.iter().rev().map(|(_, call)| (**call).clone()).collect(),
            calls: calls.open.iter().map(|(number, _)| *number).collect(),
        }
    }

    /// Waits until all calls of an occasion are over. What a server asks by itself has no end of its own.
    pub(super) async fn over(&self, occasion: &Occasion) {
        if occasion.calls.is_empty() {
            return std::future::pending().await;
        }
        let _question = Question::of(self);
        loop {
            // Before the look: a call that ends after it wakes this.
            let ended = self.ended.notified();
            let is_one_of_them = |(open, _): &(u64, _)| occasion.calls.contains(open);
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

/// A question that waits for the end of calls.
struct Question<'a>(&'a Work);

impl<'a> Question<'a> {
    fn of(work: &'a Work) -> Self {
        work.calls().questions += 1;
        Self(work)
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        self.0.calls().questions -= 1;
    }
}
