//! Requests that wait for their responses.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::error::{ErrorShape, detail};

type PendingReply = Result<Box<RawValue>, ErrorShape>;

/// All pending requests of a connection.
#[derive(Debug, Default)]
pub(super) struct Pending(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    next: u64,
    waiting: HashMap<String, oneshot::Sender<PendingReply>>,
    is_lost: bool,
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
    pub(super) fn open(&self) -> Result<Waiting<'_>, ErrorShape> {
        let mut table = self.lock();
        if table.is_lost {
            return Err(lost());
        }
        table.next += 1;
        let id = table.next.to_string();
        let (sender, answer) = oneshot::channel();
        table.waiting.insert(id.clone(), sender);
        Ok(Waiting { pending: self, id, answer })
    }

    /// Completes a request. Responses to unknown ids are dropped.
    pub(super) fn answer(&self, id: &str, answer: PendingReply) {
        if let Some(waiting) = self.lock().waiting.remove(id) {
            let _ = waiting.send(answer);
        }
    }

    /// Marks the connection as lost and fails all pending requests.
    pub(super) fn lose(&self) {
        let mut table = self.lock();
        table.is_lost = true;
        let waiting = std::mem::take(&mut table.waiting);
        drop(table);
        for waiting in waiting.into_values() {
            let _ = waiting.send(Err(lost()));
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

fn lost() -> ErrorShape {
    ErrorShape::unavailable("the connection to the gateway was lost")
        .with_detail(detail::CONNECTION_LOST)
}
