//! Requests from the server that are not answered yet. Their number and size are bounded, because
//! each is a task of `rmcp`.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::RoleClient;
use rmcp::model::{ClientNotification, JsonRpcMessage, RequestId, ServerNotification};
use rmcp::service::TxJsonRpcMessage;
use tokio::sync::Notify;

use super::inbox::{ClientRoleMessage, Queued};

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
    /// The size of each request that is being processed.
    by_id: HashMap<RequestId, usize>,
    /// Number of requests whose response is being sent. Their ids may be used again, and cannot be
    /// cancelled any more.
    answering: usize,
    /// Size of all of them together.
    bytes: usize,
}

/// A request whose response is being sent; must be passed to [`PendingRequests::answered`].
#[derive(Debug)]
pub(super) struct Answering {
    bytes: usize,
}

impl Requests {
    fn count(&self) -> usize {
        self.by_id.len() + self.answering
    }

    fn fits(&self, bytes: usize) -> bool {
        self.count() == 0 || self.count() < MOST && self.bytes + bytes <= MOST_BYTES
    }
}

/// The outcome of [`PendingRequests::take`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TakeOutcome {
    /// The request is admitted.
    Taken,
    /// A request with this id is pending: both would share one response.
    Twice,
    /// The limit is reached.
    TooMany,
}

impl PendingRequests {
    /// Admits a request, if possible.
    pub(super) fn take(&self, id: &RequestId, bytes: usize) -> TakeOutcome {
        let mut requests = self.requests();
        if requests.by_id.contains_key(id) {
            return TakeOutcome::Twice;
        }
        if !requests.fits(bytes) {
            return TakeOutcome::TooMany;
        }
        requests.bytes += bytes;
        requests.by_id.insert(id.clone(), bytes);
        TakeOutcome::Taken
    }

    /// Records that a message of `rmcp` is being sent. Returns the request that it answers, if any.
    pub(super) fn sending(&self, message: &TxJsonRpcMessage<RoleClient>) -> Option<Answering> {
        if is_initialized(message) {
            // `rmcp` ignores requests that arrived before.
            self.forget();
        }
        answers(message).and_then(|id| self.answering(id))
    }

    /// Records that the response to a request is being sent.
    fn answering(&self, id: &RequestId) -> Option<Answering> {
        let mut requests = self.requests();
        let bytes = requests.by_id.remove(id)?;
        requests.answering += 1;
        Some(Answering { bytes })
    }

    /// Removes a request whose response was sent.
    pub(super) fn answered(&self, Answering { bytes }: Answering) {
        let mut requests = self.requests();
        requests.answering -= 1;
        requests.bytes -= bytes;
        self.answered.notify_waiters();
    }

    /// If the message is a cancellation, removes the request that it cancels, unless its response
    /// is being sent.
    pub(super) fn heed(&self, message: &ClientRoleMessage) {
        let JsonRpcMessage::Notification(notification) = message else { return };
        if let Some(id) = cancels(&notification.notification) {
            self.cancelled(id);
        }
    }

    fn cancelled(&self, id: &RequestId) {
        let mut requests = self.requests();
        if let Some(bytes) = requests.by_id.remove(id) {
            requests.bytes -= bytes;
            self.answered.notify_waiters();
        }
    }

    /// Removes the requests that are being processed: none of them will be answered.
    fn forget(&self) {
        let mut requests = self.requests();
        let forgotten: usize = requests.by_id.drain().map(|(_, bytes)| bytes).sum();
        requests.bytes -= forgotten;
        self.answered.notify_waiters();
    }

    /// Whether less than half of the limit is used.
    pub(super) fn is_calm(&self) -> bool {
        let requests = self.requests();
        requests.count() < MOST / 2 && requests.bytes < MOST_BYTES / 2
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
    pub(super) request: ClientRoleMessage,
}

/// A message from the queue.
pub(super) enum QueuedMessage {
    Request(HeldRequest),
    Other(ClientRoleMessage),
}

impl From<Queued> for QueuedMessage {
    fn from(Queued { message, bytes, .. }: Queued) -> Self {
        match &message {
            JsonRpcMessage::Request(request) => {
                Self::Request(HeldRequest { id: request.id.clone(), bytes, request: message })
            }
            _ => Self::Other(message),
        }
    }
}

/// Returns the id of the server's request that a message answers.
fn answers(message: &TxJsonRpcMessage<RoleClient>) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    }
}

/// Returns whether a message completes the handshake.
fn is_initialized(message: &TxJsonRpcMessage<RoleClient>) -> bool {
    let JsonRpcMessage::Notification(notification) = message else { return false };
    matches!(notification.notification, ClientNotification::InitializedNotification(_))
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

    /// Answers a request.
    fn answer(asked: &PendingRequests, number: usize) {
        if let Some(answering) = asked.answering(&id(number)) {
            asked.answered(answering);
        }
    }

    #[test]
    fn the_number_of_requests_is_bounded_and_a_response_makes_room() {
        let asked = PendingRequests::default();
        for number in 0..MOST {
            assert_eq!(asked.take(&id(number), 1), TakeOutcome::Taken);
        }
        assert_eq!(asked.take(&id(0), 1), TakeOutcome::Twice);
        assert_eq!(asked.take(&id(MOST), 1), TakeOutcome::TooMany);
        answer(&asked, 7);
        answer(&asked, MOST);
        assert_eq!(asked.take(&id(MOST), 1), TakeOutcome::Taken);
        assert_eq!(asked.take(&id(7), 1), TakeOutcome::TooMany);
    }

    #[test]
    fn the_size_of_all_requests_is_bounded_but_one_always_fits() {
        let asked = PendingRequests::default();
        assert_eq!(asked.take(&id(1), 2 * MOST_BYTES), TakeOutcome::Taken);
        assert_eq!(asked.take(&id(2), 1), TakeOutcome::TooMany);
        answer(&asked, 1);
        assert_eq!(asked.take(&id(2), MOST_BYTES - 1), TakeOutcome::Taken);
        assert_eq!(asked.take(&id(3), 2), TakeOutcome::TooMany);
        assert_eq!(asked.take(&id(3), 1), TakeOutcome::Taken);
    }

    #[test]
    fn a_cancellation_makes_no_room_while_the_response_is_being_sent() {
        let asked = PendingRequests::default();
        for number in 0..MOST {
            asked.take(&id(number), 1);
        }
        let answering = asked.answering(&id(0)).unwrap();
        asked.cancelled(&id(0));
        assert_eq!(asked.take(&id(MOST), 1), TakeOutcome::TooMany);
        asked.answered(answering);
        assert_eq!(asked.take(&id(0), 1), TakeOutcome::Taken, "the id may be used again");
        asked.cancelled(&id(1));
        assert_eq!(asked.take(&id(MOST), 1), TakeOutcome::Taken);
    }
}
