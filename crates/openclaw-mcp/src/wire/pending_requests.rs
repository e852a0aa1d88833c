//! Requests from the server that are not answered yet. Their number and size are bounded, because
//! each is a task of `rmcp`.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, RequestId, ServerNotification};
use rmcp::service::TxJsonRpcMessage;
use tokio::sync::Notify;

use super::inbox::{Message, Queued};

/// Maximum number of pending requests.
const MOST: usize = 256;
/// Maximum size of all pending requests together, in bytes.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// The pending requests of a connection.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    requests: Mutex<Requests>,
    /// One of them was answered.
    answered: Notify,
}

#[derive(Debug, Default)]
struct Requests {
    by_id: HashMap<RequestId, Pending>,
    bytes: usize,
}

#[derive(Debug)]
struct Pending {
    bytes: usize,
    /// Its response is being sent: a cancellation has no effect any more.
    is_answering: bool,
}

impl Requests {
    fn fits(&self, bytes: usize) -> bool {
        let fits = self.by_id.len() < MOST && self.bytes + bytes <= MOST_BYTES;
        fits || self.by_id.is_empty()
    }

    fn remove(&mut self, id: &RequestId) -> bool {
        let removed = self.by_id.remove(id);
        self.bytes -= removed.as_ref().map_or(0, |pending| pending.bytes);
        removed.is_some()
    }
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
    pub(super) fn take(&self, id: &RequestId, bytes: usize) -> Verdict {
        let mut requests = self.requests();
        if requests.by_id.contains_key(id) {
            return Verdict::Twice;
        }
        if !requests.fits(bytes) {
            return Verdict::TooMany;
        }
        requests.bytes += bytes;
        requests.by_id.insert(id.clone(), Pending { bytes, is_answering: false });
        Verdict::Taken
    }

    /// Records that the response to a request is being sent.
    pub(super) fn answering(&self, id: &RequestId) {
        if let Some(pending) = self.requests().by_id.get_mut(id) {
            pending.is_answering = true;
        }
    }

    /// Removes a request whose response was sent.
    pub(super) fn answered(&self, id: &RequestId) {
        if self.requests().remove(id) {
            self.answered.notify_waiters();
        }
    }

    /// Removes a request that the server cancelled, unless its response is being sent.
    fn cancelled(&self, id: &RequestId) {
        let mut requests = self.requests();
        if requests.by_id.get(id).is_some_and(|pending| !pending.is_answering) {
            requests.remove(id);
            self.answered.notify_waiters();
        }
    }

    /// Removes all requests: none of them will be answered.
    pub(super) fn forget(&self) {
        *self.requests() = Requests::default();
        self.answered.notify_waiters();
    }

    /// Whether less than half of the limit is used.
    pub(super) fn is_calm(&self) -> bool {
        let requests = self.requests();
        requests.by_id.len() < MOST / 2 && requests.bytes < MOST_BYTES / 2
    }

    /// Waits until another request of this size can be admitted. Safe to cancel.
    pub(super) async fn room(&self, bytes: usize) {
        loop {
            let answered = self.answered.notified();
            if self.requests().fits(bytes) {
                return;
            }
            answered.await;
        }
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is not admitted yet.
pub(super) struct HeldRequest {
    pub(super) id: RequestId,
    pub(super) bytes: usize,
    pub(super) request: Message,
}

impl HeldRequest {
    /// Takes a request from the queue. Other messages are returned, and cancellations recorded.
    pub(super) fn unless_other(queued: Queued, asked: &PendingRequests) -> Result<Self, Message> {
        let Queued { message, bytes, .. } = queued;
        match &message {
            JsonRpcMessage::Request(request) => {
                Ok(Self { id: request.id.clone(), bytes, request: message })
            }
            JsonRpcMessage::Notification(notification) => {
                if let Some(id) = cancels(&notification.notification) {
                    asked.cancelled(id);
                }
                Err(message)
            }
            _ => Err(message),
        }
    }
}

/// Returns the id of the server's request that a message answers.
pub(super) fn answers(message: &TxJsonRpcMessage<RoleClient>) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    }
}

/// Returns the id of the request that a notification cancels.
fn cancels(notification: &ServerNotification) -> Option<&RequestId> {
    match notification {
        ServerNotification::CancelledNotification(cancelled) => {
            cancelled.params.request_id.as_ref()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> RequestId {
        RequestId::Number(number.try_into().unwrap())
    }

    #[test]
    fn the_number_of_requests_is_bounded_and_a_response_makes_room() {
        let asked = PendingRequests::default();
        for number in 0..MOST {
            assert_eq!(asked.take(&id(number), 1), Verdict::Taken);
        }
        assert_eq!(asked.take(&id(0), 1), Verdict::Twice);
        assert_eq!(asked.take(&id(MOST), 1), Verdict::TooMany);
        asked.answered(&id(7));
        asked.answered(&id(MOST));
        assert_eq!(asked.take(&id(MOST), 1), Verdict::Taken);
        assert_eq!(asked.take(&id(7), 1), Verdict::TooMany);
    }

    #[test]
    fn the_size_of_all_requests_is_bounded_but_one_always_fits() {
        let asked = PendingRequests::default();
        assert_eq!(asked.take(&id(1), 2 * MOST_BYTES), Verdict::Taken);
        assert_eq!(asked.take(&id(2), 1), Verdict::TooMany);
        asked.answered(&id(1));
        assert_eq!(asked.take(&id(2), MOST_BYTES - 1), Verdict::Taken);
        assert_eq!(asked.take(&id(3), 2), Verdict::TooMany);
        assert_eq!(asked.take(&id(3), 1), Verdict::Taken);
    }

    #[test]
    fn a_cancellation_makes_no_room_while_the_response_is_being_sent() {
        let asked = PendingRequests::default();
        for number in 0..MOST {
            asked.take(&id(number), 1);
        }
        asked.answering(&id(0));
        asked.cancelled(&id(0));
        assert_eq!(asked.take(&id(MOST), 1), Verdict::TooMany);
        asked.cancelled(&id(1));
        assert_eq!(asked.take(&id(MOST), 1), Verdict::Taken);
    }
}
