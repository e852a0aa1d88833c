//! The requests of a server that wait for our answer: so many, and no more. Each is a task of `rmcp`.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::Notify;

/// How many may wait.
const MOST: usize = 256;

/// The requests that wait.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    ids: Mutex<HashSet<RequestId>>,
    /// One of them waits no more.
    answered: Notify,
}

/// What becomes of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is taken on.
    Taken,
    /// One with its id waits already: there would be one answer for both.
    Twice,
    /// Too many wait.
    TooMany,
}

impl PendingRequests {
    /// Takes a request on, if it may be.
    pub(super) fn take(&self, id: &RequestId) -> Verdict {
        let mut ids = self.ids();
        if ids.contains(id) {
            return Verdict::Twice;
        }
        if ids.len() >= MOST {
            return Verdict::TooMany;
        }
        ids.insert(id.clone());
        Verdict::Taken
    }

    /// It was answered, or nobody wants an answer any more.
    pub(super) fn answered(&self, id: &RequestId) {
        if self.ids().remove(id) {
            self.answered.notify_waiters();
        }
    }

    /// None of them will be answered.
    pub(super) fn forget(&self) {
        self.ids().clear();
        self.answered.notify_waiters();
    }

    /// Waits until one more may be taken on. Safe to cancel.
    pub(super) async fn room(&self) {
        loop {
            let answered = self.answered.notified();
            if self.ids().len() < MOST {
                return;
            }
            answered.await;
        }
    }

    fn ids(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_requests_are_taken_on_and_an_answer_makes_room() {
        let asked = PendingRequests::default();
        let id = |number: usize| RequestId::Number(number.try_into().unwrap());
        for number in 0..MOST {
            assert_eq!(asked.take(&id(number)), Verdict::Taken);
        }
        assert_eq!(asked.take(&id(0)), Verdict::Twice);
        assert_eq!(asked.take(&id(MOST)), Verdict::TooMany);
        asked.answered(&id(7));
        asked.answered(&id(MOST));
        assert_eq!(asked.take(&id(MOST)), Verdict::Taken);
        assert_eq!(asked.take(&id(7)), Verdict::TooMany);
    }
}
