//! The end of a connection: its reason, and a way to wait for it.

use std::sync::OnceLock;

use tokio::sync::Notify;

use super::Closed;

/// Set once; the first reason counts.
#[derive(Debug, Default)]
pub(super) struct CloseReason {
    reason: OnceLock<Closed>,
    came: Notify,
}

impl CloseReason {
    pub(super) fn set(&self, reason: Closed) {
        let _ = self.reason.set(reason);
        self.came.notify_waiters();
    }

    pub(super) fn reason(&self) -> Option<&Closed> {
        self.reason.get()
    }

    /// Waits until the reason is set. Safe to cancel.
    pub(super) async fn until(&self) -> Closed {
        loop {
            // Registered before the check: otherwise a notification between the two would be
            // missed.
            let came = self.came.notified();
            if let Some(reason) = self.reason() {
                return reason.clone();
            }
            came.await;
        }
    }
}
