//! The end of a connection: why it came, and who waits for it.

use std::sync::OnceLock;

use tokio::sync::Notify;

use super::Closed;

/// Comes once. The first reason counts.
#[derive(Debug, Default)]
pub(super) struct Ending {
    reason: OnceLock<Closed>,
    came: Notify,
}

impl Ending {
    pub(super) fn set(&self, reason: Closed) {
        let _ = self.reason.set(reason);
        self.came.notify_waiters();
    }

    pub(super) fn reason(&self) -> Option<&Closed> {
        self.reason.get()
    }

    /// Waits for it. Safe to cancel.
    pub(super) async fn until(&self) -> Closed {
        loop {
            // Made before the look: otherwise the end could come between the two, unheard.
            let came = self.came.notified();
            if let Some(reason) = self.reason() {
                return reason.clone();
            }
            came.await;
        }
    }
}
