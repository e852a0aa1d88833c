//! The states that clients of 2026-07-28 send back with the input that a result has asked for.
//!
//! A state is sealed: it names what it continues, and is accepted from the client that got it, for the
//! same request, for some time, and from no other process than the one that made it. Anything else is
//! refused, because a request that continues nothing would be made once more.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_lc_rs::hmac::{self, HMAC_SHA256};
use data_encoding::HEXLOWER;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

/// How long a state is accepted. A parked call ends earlier.
const LIFETIME: Duration = Duration::from_secs(60 * 60);
/// The beginning of every state.
const PREFIX: &str = "openclaw";

/// Why a state is refused, for the client.
pub(crate) const UNKNOWN_STATE: &str = "unknown `requestState`: it was altered, has expired, or \
    belongs to another request, client or process. Nothing was called.";

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
}

impl Default for StateSeal {
    fn default() -> Self {
        let mut bytes = [0; 32];
        let key = getrandom::fill(&mut bytes).ok().map(|()| hmac::Key::new(HMAC_SHA256, &bytes));
        Self { key, started: Instant::now() }
    }
}

impl StateSeal {
    /// Returns the state for a client; `None` if there is no randomness.
    pub(crate) fn seal(&self, continues: &Continues, origin: StateOrigin<'_>) -> Option<String> {
        let until = (self.started.elapsed() + LIFETIME).as_secs();
        let (kind, inner) = match continues {
            Continues::Parked(id) => ("call", id),
            Continues::Server(state) => ("server", state),
        };
        let sealed = format!("{until}.{kind}.{inner}");
        let tag = hmac::sign(self.key.as_ref()?, &signed(&sealed, origin));
        Some(format!("{PREFIX}.{}.{sealed}", HEXLOWER.encode(tag.as_ref())))
    }

    /// Returns what a state continues; `None` if it is not one for this request.
    pub(crate) fn open(&self, state: &str, origin: StateOrigin<'_>) -> Option<Continues> {
        let (prefix, rest) = state.split_once('.')?;
        let (tag, sealed) = rest.split_once('.').filter(|_| prefix == PREFIX)?;
        let tag = HEXLOWER.decode(tag.as_bytes()).ok()?;
        hmac::verify(self.key.as_ref()?, &signed(sealed, origin), &tag).ok()?;
        let (until, rest) = sealed.split_once('.')?;
        let (kind, inner) = rest.split_once('.')?;
        if self.started.elapsed().as_secs() >= until.parse().ok()? {
            return None;
        }
        match kind {
            "call" => Some(Continues::Parked(inner.to_owned())),
            "server" => Some(Continues::Server(inner.to_owned())),
            _ => None,
        }
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

/// What the tag of a state is made of. Each part has its length before it.
fn signed(sealed: &str, origin: StateOrigin<'_>) -> Vec<u8> {
    let StateOrigin { client, method, target, arguments } = origin;
    let arguments = canonical(&serde_json::from_str(arguments).unwrap_or_default());
    let client = client.to_string();
    let mut bytes = Vec::with_capacity(sealed.len() + target.len() + arguments.len() + 80);
    for part in [sealed, &client, method, target, &arguments] {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes
}

/// The same text for the same arguments, which a client may write differently.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<&String, String> =
                members.iter().map(|(name, value)| (name, canonical(value))).collect();
            format!("{members:?}")
        }
        Value::Array(items) => format!("{:?}", items.iter().map(canonical).collect::<Vec<_>>()),
        other => other.to_string(),
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
            assert_eq!(seal.open(&state, ORIGIN), Some(continues.clone()));
            let same =
                StateOrigin { arguments: "{ \"b\": [{\"d\":1, \"c\":2}], \"a\": 1 }", ..ORIGIN };
            assert_eq!(seal.open(&state, same), Some(continues));
            for other in [
                StateOrigin { client: 2, ..ORIGIN },
                StateOrigin { method: "prompts/get", ..ORIGIN },
                StateOrigin { target: "pay2", ..ORIGIN },
                StateOrigin { arguments: r#"{"a":1,"b":[{"c":2,"d":"1"}]}"#, ..ORIGIN },
            ] {
                assert_eq!(seal.open(&state, other), None, "{other:?}");
            }
            assert_eq!(StateSeal::default().open(&state, ORIGIN), None, "another process");
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
