//! Requests from the server that are not answered yet. Their number is bounded, because each is a
//! task of `rmcp`.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::Notify;

/// Maximum number of pending requests.
const MOST: usize = 256;

/// The pending requests of a connection.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    ids: Mutex<HashSet<RequestId>>,
    /// One of them was answered.
    answered: Notify,
}

/// The outcome of [`PendingRequests::take`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The request is admitted.
    Taken,
    /// A request with this id is pending: both would share one response.
    Twice,
    /// The limit is reached.
    TooMany,
}

impl PendingRequests {
    /// Admits a request, if possible.
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

    /// Removes a request that was answered or cancelled.
    pub(super) fn answered(&self, id: &RequestId) {
        if self.ids().remove(id) {
            self.answered.notify_waiters();
        }
    }

    /// Removes all requests: none of them will be answered.
    pub(super) fn forget(&self) {
        self.ids().clear();
        self.answered.notify_waiters();
    }

    /// Waits until another request can be admitted. Safe to cancel.
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
    fn the_number_of_requests_is_bounded_and_a_response_makes_room() {
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
