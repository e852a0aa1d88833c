//! For whom a server works now: so it is known whom a question of it concerns, and when nobody waits for
//! the answer any more (T11).

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::watch;

use super::CallInProgress;

/// The calls that a server works on.
#[derive(Debug, Default)]
pub(super) struct Work(watch::Sender<Calls>);

#[derive(Debug, Default)]
struct Calls {
    next: u64,
    /// Who makes each, in the order in which they began.
    open: BTreeMap<u64, CallInProgress>,
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
        let call = CallInProgress { agent: agent.to_owned(), session: session.map(str::to_owned) };
        let mut number = 0;
        self.0.send_modify(|calls| {
            number = calls.next;
            calls.next += 1;
            calls.open.insert(number, call);
        });
        number
    }

    /// A call is over.
    pub(super) fn end(&self, number: u64) {
        self.0.send_modify(|calls| drop(calls.open.remove(&number)));
    }

    /// What it works on now. Which of its calls it asks for is not told: it may be each of them.
    pub(super) fn now(&self) -> Occasion {
        let calls = self.0.borrow();
        let sessions: BTreeSet<&String> =
            calls.open.values().filter_map(|call| call.session.as_ref()).collect();
        Occasion {
            sessions: sessions.into_iter().cloned().collect(),
            callers: calls.open.values().rev().cloned().collect(),
            calls: calls.open.keys().copied().collect(),
        }
    }

    /// Waits until all calls of an occasion are over. What a server asks by itself has no end of its own.
    pub(super) async fn over(&self, occasion: &Occasion) {
        if occasion.calls.is_empty() {
            return std::future::pending().await;
        }
        let is_over =
            |calls: &Calls| !occasion.calls.iter().any(|call| calls.open.contains_key(call));
        // The sender is ours: it cannot be gone.
        let _ = self.0.subscribe().wait_for(is_over).await;
    }
}
