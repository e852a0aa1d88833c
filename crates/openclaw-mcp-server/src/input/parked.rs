//! Calls that wait for input which their client sends with its next request (2026-07-28), while the
//! server waits for the answer to a request of its own, as older servers do.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::ClientQuestion;

/// Maximum number of parked calls.
const MOST: usize = 256;
/// How long a call stays parked. The server's question has timed out by then.
const PATIENCE: Duration = Duration::from_secs(5 * 60);
/// The key of the one input that a parked call asks for.
const KEY: &str = "input";

/// The parked calls, by the state that their clients send back.
pub(crate) struct Parked<T>(Mutex<HashMap<String, (Instant, T)>>);

impl<T> Default for Parked<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Parked<T> {
    /// Parks a call. Returns the state for its client; `None` if there are too many, and the call
    /// is cancelled.
    pub(crate) fn park(&self, call: T) -> Option<String> {
        let mut bytes = [0; 16];
        // The state gives access to the call, so it must not be guessable.
        getrandom::fill(&mut bytes).ok()?;
        let state = format!("openclaw-hub:{:032x}", u128::from_be_bytes(bytes));
        drop(self.expired());
        let mut calls = self.lock();
        if calls.len() >= MOST {
            return None;
        }
        calls.insert(state.clone(), (Instant::now(), call));
        Some(state)
    }

    /// Takes a call that its client continues. Others know no such state.
    pub(crate) fn take(&self, state: &str, is_own: impl FnOnce(&T) -> bool) -> Option<T> {
        let mut calls = self.lock();
        is_own(&calls.get(state)?.1).then(|| calls.remove(state)).flatten().map(|(_, call)| call)
    }

    /// Takes the calls for which this holds.
    pub(crate) fn take_all(&self, mut is_meant: impl FnMut(&T) -> bool) -> Vec<T> {
        let taken = self.lock().extract_if(|_, (_, call)| is_meant(call)).collect::<Vec<_>>();
        taken.into_iter().map(|(_, (_, call))| call).collect()
    }

    /// Takes the calls that have been parked for too long.
    pub(crate) fn expired(&self) -> Vec<T> {
        let now = Instant::now();
        let is_late = |since: Instant| now.saturating_duration_since(since) >= PATIENCE;
        let expired = self.lock().extract_if(|_, (since, _)| is_late(*since)).collect::<Vec<_>>();
        expired.into_iter().map(|(_, (_, call))| call).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Instant, T)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The result that asks a client for input.
pub(crate) fn input_required(question: &ClientQuestion, state: &str) -> Value {
    let request = json!({ "method": question.method, "params": question.params });
    json!({
        "resultType": "input_required",
        "inputRequests": { KEY: request },
        "requestState": state,
    })
}

/// Takes the input that was asked for.
pub(crate) fn take_input(responses: &mut BTreeMap<String, Value>) -> Option<Value> {
    responses.remove(KEY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parked_call_is_taken_by_its_owner_only() {
        let parked = Parked::default();
        let [ours, theirs] = ["ours", "theirs"].map(|owner| parked.park(owner).unwrap());
        assert_eq!(parked.take(&ours, |owner| *owner == "theirs"), None);
        assert_eq!(parked.take(&ours, |owner| *owner == "ours"), Some("ours"));
        assert_eq!(parked.take(&ours, |_| true), None, "once");
        assert_eq!(parked.take_all(|owner| *owner == "ours"), Vec::<&str>::new());
        assert_eq!(parked.take_all(|owner| *owner == "theirs"), ["theirs"]);
        assert_eq!(parked.take(&theirs, |_| true), None);
    }
}
