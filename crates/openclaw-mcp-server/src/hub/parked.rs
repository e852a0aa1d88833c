//! Calls that wait for input which their client sends with its next request (2026-07-28), while the
//! server waits for the answer to a request of its own, as older servers do.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::running::Running;

/// Maximum number of parked calls.
const MOST: usize = 256;
/// How long a call stays parked. The server's question has timed out by then.
const PATIENCE: Duration = Duration::from_secs(5 * 60);

/// The parked calls, by the state that their clients send back.
#[derive(Default)]
pub(super) struct Parked(Mutex<HashMap<String, (Instant, Running)>>);

impl Parked {
    /// Parks a call. Returns the state for its client; `None` if there are too many, and the call
    /// is cancelled.
    pub(super) fn park(&self, call: Running) -> Option<String> {
        let mut bytes = [0; 16];
        // The state gives access to the call, so it must not be guessable.
        getrandom::fill(&mut bytes).ok()?;
        let state = format!("openclaw-hub:{:032x}", u128::from_be_bytes(bytes));
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        calls.retain(|_, (since, _)| now.saturating_duration_since(*since) < PATIENCE);
        if calls.len() >= MOST {
            return None;
        }
        calls.insert(state.clone(), (now, call));
        Some(state)
    }

    /// Takes a call that its client continues.
    pub(super) fn take(&self, state: &str) -> Option<Running> {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.remove(state).map(|(_, call)| call)
    }
}
