//! Messages for a client from other tasks: those of `rmcp`, and notifications.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// With more bytes than this waiting to be written, messages and calls wait, nothing is read from
/// the client, and notifications are dropped.
pub(super) const FULL: usize = 4 * 1024 * 1024;

/// Messages that the front takes and writes.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    state: Mutex<Taken>,
    filled: Notify,
    emptied: Notify,
}

/// The content of an outbox.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// Lines, each with its line break.
    pub(super) lines: Vec<u8>,
    /// The ids of the requests that they answer, as JSON.
    pub(super) answered: Vec<String>,
}

impl Outbox {
    /// Adds a line and waits until there is room for it. Safe to cancel.
    pub(super) async fn send(&self, line: &[u8], answers: Option<String>) {
        loop {
            let mut emptied = std::pin::pin!(self.emptied.notified());
            emptied.as_mut().enable();
            if self.state().lines.len() < FULL {
                break;
            }
            emptied.await;
        }
        let mut state = self.state();
        state.lines.extend_from_slice(line);
        state.lines.push(b'\n');
        state.answered.extend(answers);
        drop(state);
        self.filled.notify_one();
    }

    /// Adds a line if there is room for it.
    pub(super) fn offer(&self, line: &[u8]) {
        let mut state = self.state();
        if state.lines.len() < FULL {
            state.lines.extend_from_slice(line);
            state.lines.push(b'\n');
            drop(state);
            self.filled.notify_one();
        }
    }

    /// Takes everything.
    pub(super) fn take(&self) -> Option<Taken> {
        let mut state = self.state();
        if state.lines.is_empty() {
            return None;
        }
        let taken = std::mem::take(&mut *state);
        drop(state);
        self.emptied.notify_waiters();
        Some(taken)
    }

    /// Waits until something was added. Safe to cancel.
    pub(super) async fn filled(&self) {
        self.filled.notified().await;
    }

    fn state(&self) -> MutexGuard<'_, Taken> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
