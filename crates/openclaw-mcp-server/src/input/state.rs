//! The states that clients of 2026-07-28 send back with the input that a result has asked for.
//!
//! A state is sealed: it names what it continues, and is accepted from the client that got it, for the
//! same request, once, for some time, and from no other process than the one that made it. Anything else
//! is refused, because a request that continues nothing would be made once more.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac::{self, HMAC_SHA256, Tag};
use data_encoding::HEXLOWER;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::digest::json_digest;

/// How long a state is accepted. A parked call ends earlier.
const LIFETIME: Duration = Duration::from_secs(60 * 60);
/// The beginning of every state.
const PREFIX: &str = "openclaw";
/// The length of a tag in a state.
const TAG: usize = 64;
/// Maximum number of states of servers that can be sent back: of a client, and of all.
const MAX_OF_CLIENT: usize = 1_024;
const MAX_OF_ALL: usize = 16 * 1_024;

/// Why a state is refused, for the client.
pub(crate) const UNKNOWN_STATE: &str = "unknown `requestState`: it was altered or used, has expired, or \
    belongs to another request, client or process. Nothing was called.";

/// Why a state that is not a string is refused.
pub(crate) const BAD_STATE: &str =
    "invalid `requestState`: it must be a string. Nothing was called.";

/// What a state continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Continues {
    /// The parked call with this id.
    Parked(String),
    /// A request of a server, which has this state of its own.
    Server(String),
}

/// The request that a state belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StateOrigin<'a> {
    /// The number of the client.
    pub(crate) client: u64,
    /// The method.
    pub(crate) method: &'a str,
    /// The name of the tool or prompt, or the URI of the resource.
    pub(crate) target: &'a str,
    /// The arguments: one JSON object.
    pub(crate) arguments: &'a str,
}

/// Seals states with a key of this process.
pub(crate) struct StateSeal {
    /// `None` if there is no randomness; then nothing is sealed.
    key: Option<hmac::Key>,
    started: Instant,
    /// The number of the next state.
    next: AtomicU64,
    unused: Mutex<UnusedStates>,
}

impl Default for StateSeal {
    fn default() -> Self {
        let mut bytes = [0; 32];
        let key = getrandom::fill(&mut bytes).ok().map(|()| hmac::Key::new(HMAC_SHA256, &bytes));
        let (next, unused) = (AtomicU64::default(), Mutex::default());
        Self { key, started: Instant::now(), next, unused }
    }
}

impl StateSeal {
    /// Returns the state for a client; `None` if there is no randomness.
    pub(crate) fn seal(&self, continues: &Continues, origin: StateOrigin<'_>) -> Option<String> {
        let until = (self.started.elapsed() + LIFETIME).as_secs();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (kind, inner) = match continues {
            Continues::Parked(id) => ("call", id),
            Continues::Server(state) => ("server", state),
        };
        let sealed = format!("{until}.{number}.{kind}.{inner}");
        let tag = tag(self.key.as_ref()?, &sealed, origin);
        // A parked call is continued once anyway.
        if matches!(continues, Continues::Server(_)) {
            let now = self.started.elapsed().as_secs();
            self.unused().add(origin.client, StateNumber { number, until }, now);
        }
        Some(format!("{PREFIX}.{}.{sealed}", HEXLOWER.encode(tag.as_ref())))
    }

    /// Returns what a state continues; `None` if it is not one for this request. That of a server is
    /// accepted once: its tool would run twice.
    pub(crate) fn open(&self, state: &str, origin: StateOrigin<'_>) -> Option<Continues> {
        let (prefix, rest) = state.split_once('.')?;
        let (given, sealed) = rest.split_once('.').filter(|_| prefix == PREFIX)?;
        let given = HEXLOWER.decode(Some(given).filter(|it| it.len() == TAG)?.as_bytes()).ok()?;
        let tag = tag(self.key.as_ref()?, sealed, origin);
        verify_slices_are_equal(tag.as_ref(), &given).ok()?;
        let (until, rest) = sealed.split_once('.')?;
        let (number, rest) = rest.split_once('.')?;
        let (kind, inner) = rest.split_once('.')?;
        if self.started.elapsed().as_secs() >= until.parse().ok()? {
            return None;
        }
        match kind {
            "call" => Some(Continues::Parked(inner.to_owned())),
            "server" => {
                let is_unused = self.unused().take(origin.client, number.parse().ok()?);
                is_unused.then(|| Continues::Server(inner.to_owned()))
            }
            _ => None,
        }
    }

    fn unused(&self) -> std::sync::MutexGuard<'_, UnusedStates> {
        self.unused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Seals the state of a result that asks for input: it is a server's own.
    pub(crate) fn seal_result(&self, result: &mut Value, origin: StateOrigin<'_>) {
        let Some(members) = result.as_object_mut() else { return };
        if let Some(state) = members.remove("requestState")
            && let Value::String(state) = state
            && let Some(sealed) = self.seal(&Continues::Server(state), origin)
        {
            members.insert("requestState".to_owned(), Value::String(sealed));
        }
    }
}

/// Returns the tag of a state. Each part that it is made of has its length before it.
fn tag(key: &hmac::Key, sealed: &str, origin: StateOrigin<'_>) -> Tag {
    let StateOrigin { client, method, target, arguments } = origin;
    let (client, arguments) = (client.to_be_bytes(), json_digest(arguments));
    let mut context = hmac::Context::with_key(key);
    for part in [sealed.as_bytes(), &client, method.as_bytes(), target.as_bytes(), &arguments] {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    context.sign()
}

/// The number of a state, and when it expires.
#[derive(Debug, Clone, Copy)]
struct StateNumber {
    number: u64,
    until: u64,
}

/// The states of servers that were not sent back yet, by client, the oldest first. Beyond the limits, the
/// oldest one of whoever has the most is dropped, and refused later.
#[derive(Debug, Default)]
struct UnusedStates(HashMap<u64, VecDeque<StateNumber>>);

impl UnusedStates {
    fn add(&mut self, client: u64, state: StateNumber, now: u64) {
        self.0.retain(|_, states| {
            let expired = states.iter().take_while(|it| it.until <= now).count();
            states.drain(..expired);
            !states.is_empty()
        });
        let is_full = self.0.values().map(VecDeque::len).sum::<usize>() >= MAX_OF_ALL;
        let most = self.0.iter().max_by_key(|(_, states)| states.len()).map(|(most, _)| *most);
        let own = self.0.entry(client).or_default();
        // Two requests that end together may be in either order.
        let at = own.partition_point(|it| it.number < state.number);
        own.insert(at, state);
        if own.len() > MAX_OF_CLIENT {
            own.pop_front();
        } else if let Some(states) = most.filter(|_| is_full).and_then(|it| self.0.get_mut(&it)) {
            states.pop_front();
        }
    }

    /// Removes a state. Returns whether it was there.
    fn take(&mut self, client: u64, number: u64) -> bool {
        let Some(states) = self.0.get_mut(&client) else { return false };
        let found = states.binary_search_by_key(&number, |it| it.number);
        found.ok().and_then(|at| states.remove(at)).is_some()
    }
}

/// The parts of a request besides its name and arguments by which a client answers, as JSON members
/// without braces.
pub(crate) fn answer_members(responses: Option<&RawValue>, state: Option<&str>) -> String {
    let responses = responses.map(|it| format!("\"inputResponses\":{}", it.get()));
    let state = state.map(|it| format!("\"requestState\":{}", Value::from(it)));
    [responses, state].into_iter().flatten().collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ORIGIN: StateOrigin<'_> = StateOrigin {
        client: 1,
        method: "tools/call",
        target: "pay",
        arguments: r#"{"a":1,"b":[{"c":2,"d":1}]}"#,
    };

    #[tokio::test(start_paused = true)]
    async fn a_state_is_accepted_for_its_request_only_and_not_for_ever() {
        let seal = StateSeal::default();
        for continues in
            [Continues::Parked("7".to_owned()), Continues::Server("a.b\n\"".to_owned())]
        {
            let state = seal.seal(&continues, ORIGIN).unwrap();
            for other in [
                StateOrigin { client: 2, ..ORIGIN },
                StateOrigin { method: "prompts/get", ..ORIGIN },
                StateOrigin { target: "pay2", ..ORIGIN },
                StateOrigin { arguments: r#"{"a":1,"b":[{"c":2,"d":"1"}]}"#, ..ORIGIN },
            ] {
                assert_eq!(seal.open(&state, other), None, "{other:?}");
            }
            assert_eq!(StateSeal::default().open(&state, ORIGIN), None, "another process");
            let same =
                StateOrigin { arguments: "{ \"b\": [{\"d\":1, \"c\":2}], \"a\": 1 }", ..ORIGIN };
            assert_eq!(seal.open(&state, same), Some(continues));
        }
        let state = seal.seal(&Continues::Parked("7".to_owned()), ORIGIN).unwrap();
        tokio::time::advance(LIFETIME).await;
        assert_eq!(seal.open(&state, ORIGIN), None);
    }

    #[test]
    fn an_altered_state_is_refused_wherever_it_is_altered() {
        let seal = StateSeal::default();
        let state = seal.seal(&Continues::Server("s".to_owned()), ORIGIN).unwrap();
        for at in 0..state.len() {
            let mut altered = state.clone().into_bytes();
            altered[at] ^= 1;
            let altered = String::from_utf8(altered).unwrap();
            assert_eq!(seal.open(&altered, ORIGIN), None, "{altered}");
        }
        for altered in ["", "openclaw", "openclaw.", &state[1..], &format!("{state}-TAMPERED")] {
            assert_eq!(seal.open(altered, ORIGIN), None, "{altered}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_state_of_a_server_is_accepted_once() {
        let seal = StateSeal::default();
        let of = |client| StateOrigin { client, ..ORIGIN };
        let state = |client| seal.seal(&Continues::Server("s".to_owned()), of(client)).unwrap();
        let (first, second) = (state(1), state(1));
        for state in [&second, &first] {
            assert!(seal.open(state, ORIGIN).is_some());
            assert_eq!(seal.open(state, ORIGIN), None);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn states_are_bounded_and_a_client_that_has_many_loses_its_own() {
        let seal = StateSeal::default();
        let of = |client| StateOrigin { client, ..ORIGIN };
        let state = |client| seal.seal(&Continues::Server("s".to_owned()), of(client)).unwrap();
        let modest = state(0);
        let own: Vec<_> = (0..=MAX_OF_CLIENT).map(|_| state(1)).collect();
        assert_eq!(seal.open(&own[0], of(1)), None, "the oldest was dropped");
        assert!(seal.open(&own[1], of(1)).is_some());
        for client in 2..40 {
            (0..MAX_OF_CLIENT).for_each(|_| drop(state(client)));
        }
        let count = || seal.unused().0.values().map(VecDeque::len).sum::<usize>();
        assert_eq!(count(), MAX_OF_ALL);
        assert!(seal.open(&modest, of(0)).is_some());
        tokio::time::advance(LIFETIME).await;
        drop(state(1));
        assert_eq!(count(), 1, "those that have expired are dropped");
    }

    #[test]
    fn only_a_state_that_a_result_has_is_sealed() {
        let seal = StateSeal::default();
        let mut result = json!({ "resultType": "input_required", "inputRequests": {} });
        let before = result.clone();
        seal.seal_result(&mut result, ORIGIN);
        assert_eq!(result, before);
        result["requestState"] = json!("theirs");
        seal.seal_result(&mut result, ORIGIN);
        let state = result["requestState"].as_str().unwrap();
        assert_eq!(seal.open(state, ORIGIN), Some(Continues::Server("theirs".to_owned())));
        result["requestState"] = json!(5);
        seal.seal_result(&mut result, ORIGIN);
        assert_eq!(result, before);
    }
}
