//! Requests that wait for their responses.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::error::{ErrorShape, detail};
use crate::method::Method;
use crate::runs::{ACCEPTED, RunAccepted};

type PendingReply = Result<Box<RawValue>, ErrorShape>;

/// All pending requests of a connection.
#[derive(Debug, Default)]
pub(super) struct Pending(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    next: u64,
    waiting: HashMap<String, PendingRequest>,
    is_lost: bool,
}

#[derive(Debug)]
struct PendingRequest {
    sender: oneshot::Sender<PendingReply>,
    /// Whether a response that only accepts the request comes first.
    has_early_response: bool,
}

/// A pending request. It is removed from the table on drop.
#[derive(Debug)]
pub(super) struct Waiting<'a> {
    pending: &'a Pending,
    id: String,
    answer: oneshot::Receiver<PendingReply>,
}

impl Pending {
    /// Registers a request; fails once the connection is lost.
    pub(super) fn open(&self, method: &str) -> Result<Waiting<'_>, ErrorShape> {
        let mut table = self.lock();
        if table.is_lost {
            return Err(lost());
        }
        table.next += 1;
        let id = table.next.to_string();
        let (sender, answer) = oneshot::channel();
        let has_early_response = method == Method::Agent.name();
        table.waiting.insert(id.clone(), PendingRequest { sender, has_early_response });
        Ok(Waiting { pending: self, id, answer })
    }

    /// Completes a request. Responses to unknown ids are dropped.
    pub(super) fn answer(&self, id: &str, answer: PendingReply) {
        let mut table = self.lock();
        let Some(waiting) = table.waiting.get(id) else { return };
        if waiting.has_early_response && answer.as_ref().is_ok_and(|it| is_accepted(it)) {
            return;
        }
        if let Some(waiting) = table.waiting.remove(id) {
            let _ = waiting.sender.send(answer);
        }
    }

    /// Marks the connection as lost and fails all pending requests.
    pub(super) fn lose(&self) {
        let mut table = self.lock();
        table.is_lost = true;
        let waiting = std::mem::take(&mut table.waiting);
        drop(table);
        for waiting in waiting.into_values() {
            let _ = waiting.sender.send(Err(lost()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting<'_> {
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) async fn answer(mut self) -> PendingReply {
        (&mut self.answer).await.unwrap_or_else(|_| Err(lost()))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.pending.lock().waiting.remove(&self.id);
    }
}

fn is_accepted(payload: &RawValue) -> bool {
    serde_json::from_str(payload.get()).is_ok_and(|RunAccepted { status, .. }| status == ACCEPTED)
}

fn lost() -> ErrorShape {
    ErrorShape::unavailable("the connection to the gateway was lost")
        .with_detail(detail::CONNECTION_LOST)
}
