//! Classifies a message without parsing more of it than necessary.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::calls::CallId;
use crate::wire::json::{JsonCursor, JsonRef};

/// Maximum number of messages in a batch: of two bytes each, a line could hold millions.
const MAX_BATCH: usize = 1_000;

/// The kind of a line, with what is needed to route it.
#[derive(Debug)]
pub(super) enum LineKind<'a> {
    /// A response to one of our calls.
    Answer(CallId, Result<JsonRef<'a>, &'a RawValue>),
    /// A response to one of our calls that is not valid JSON.
    Unreadable(CallId),
    /// A response to a request of `rmcp`, with the number of the request.
    ToRmcp(u64, Result<JsonRef<'a>, &'a RawValue>),
    /// An error without an id.
    Nameless(&'a RawValue),
    /// Progress of one of our calls.
    Progress(CallId),
    /// A batch of messages (2025-03-26).
    Batch(Vec<&'a RawValue>),
    /// Another message, for `rmcp`.
    Other,
    /// Not a message.
    Garbage,
}

/// The members of a message, unparsed.
#[derive(Deserialize)]
pub(super) struct MessageMembers<'a> {
    #[serde(borrow, default)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) params: Option<&'a RawValue>,
    // `null` is present, although it is not a valid result.
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Progress<'a> {
    #[serde(borrow, rename = "progressToken")]
    token: &'a RawValue,
}

/// The messages of a batch.
struct Batch<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Batch<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(BatchVisitor).map(Batch)
    }
}

struct BatchVisitor;

impl<'de> Visitor<'de> for BatchVisitor {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {MAX_BATCH} messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut batch: A) -> Result<Self::Value, A::Error> {
        let mut messages = Vec::new();
        while let Some(message) = batch.next_element()? {
            if messages.len() == MAX_BATCH {
                return Err(A::Error::invalid_length(MAX_BATCH + 1, &self));
            }
            messages.push(message);
        }
        Ok(messages)
    }
}

fn present<'de: 'a, 'a, D: serde::Deserializer<'de>>(
    value: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(value).map(Some)
}

/// Finds the id of the call that an invalid line responds to, so that the call fails immediately
/// instead of timing out.
fn broken(line: &[u8]) -> LineKind<'_> {
    let id = memchr::memmem::find(line, br#""id""#).and_then(|at| {
        let rest = line.get(at + 4..)?.iter().copied();
        let digits: String = rest
            .skip_while(|byte| matches!(byte, b' ' | b':' | b'"'))
            .take_while(u8::is_ascii_digit)
            .take(20)
            .map(char::from)
            .collect();
        CallId::of_number(digits.parse().ok()?)
    });
    id.map_or(LineKind::Garbage, LineKind::Unreadable)
}

/// Returns the number of an id. Some servers echo numbers as strings.
pub(super) fn number(id: &RawValue) -> Option<u64> {
    id.get().trim_matches('"').parse().ok()
}

/// Returns the id and the result of a response that has no other members. `None` means that the
/// line must be parsed in full.
fn usual_answer(line: &str) -> Option<(CallId, JsonRef<'_>)> {
    let mut id = None;
    let mut result = None;
    let mut walk = JsonCursor::over(line);
    walk.members(|walk, name| match name {
        "jsonrpc" => walk.string().map(drop),
        "id" if id.is_none() => {
            id = Some(walk.value()?.get().parse().ok()?);
            Some(())
        }
        "result" if result.is_none() => {
            result = Some(walk.result()?);
            Some(())
        }
        _ => None,
    })?;
    walk.is_at_end().then_some((CallId::of_number(id?)?, result?))
}

/// Classifies a line.
pub(super) fn peek(line: &[u8]) -> LineKind<'_> {
    let first = line.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'[') {
        return serde_json::from_slice(line)
            .map_or(LineKind::Garbage, |Batch(batch)| LineKind::Batch(batch));
    }
    // A cheap check first: some servers print a lot.
    if memchr::memchr(b'{', line).is_none() {
        return LineKind::Garbage;
    }
    // From `&str`, UTF-8 is validated once; from bytes, again for each member.
    let envelope: Result<MessageMembers<'_>, _> = match std::str::from_utf8(line) {
        Ok(text) => match usual_answer(text) {
            Some((id, result)) => return LineKind::Answer(id, Ok(result)),
            None => serde_json::from_str(text),
        },
        Err(_) => serde_json::from_slice(line),
    };
    let Ok(envelope) = envelope else { return broken(line) };
    // The method takes precedence: a request from the server may use an id that is also one of
    // ours.
    if let Some(method) = envelope.method {
        let progress = (method == "notifications/progress").then_some(envelope.params).flatten();
        let progress =
            progress.and_then(|params| serde_json::from_str::<Progress<'_>>(params.get()).ok());
        return match progress.and_then(|progress| CallId::parse(progress.token)) {
            Some(id) => LineKind::Progress(id),
            None => LineKind::Other,
        };
    }
    let answer = match (envelope.result, envelope.error) {
        (Some(result), _) => Ok(JsonRef::from(result)),
        (None, Some(error)) => Err(error),
        // With the id of a call, it is a response: the call fails immediately instead of timing out.
        (None, None) => match envelope.id.and_then(CallId::parse) {
            Some(id) => return LineKind::Answer(id, Err(RawValue::NULL)),
            None => return LineKind::Garbage,
        },
    };
    match (envelope.id.filter(|id| id.get() != "null"), answer) {
        (None, Err(error)) => LineKind::Nameless(error),
        (None, Ok(_)) => LineKind::Garbage,
        (Some(id), answer) => match (CallId::parse(id), number(id)) {
            (Some(id), _) => LineKind::Answer(id, answer),
            (None, Some(number)) => LineKind::ToRmcp(number, answer),
            (None, None) => LineKind::Other,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: u64 = (1 << 40) + 7;

    #[test]
    fn messages_are_classified() {
        let ours = format!(r#"{{"jsonrpc":"2.0","id":{OURS},"result":{{"a":1}}}}"#);
        assert!(
            matches!(peek(ours.as_bytes()), LineKind::Answer(_, Ok(result)) if result.get() == r#"{"a":1}"#)
        );
        let failed = format!(r#"{{"id":"{OURS}","error":{{"code":1}}}}"#);
        assert!(matches!(peek(failed.as_bytes()), LineKind::Answer(_, Err(_))));
        let request = format!(r#"{{"id":{OURS},"method":"roots/list"}}"#);
        assert!(matches!(peek(request.as_bytes()), LineKind::Other), "a request may reuse our id");
        let progress = format!(
            r#"{{"method":"notifications/progress","params":{{"progressToken":{OURS},"progress":1}}}}"#
        );
        assert!(matches!(peek(progress.as_bytes()), LineKind::Progress(_)));
        assert!(matches!(peek(br#"{"id":1,"result":{}}"#), LineKind::ToRmcp(1, Ok(_))));
        assert!(matches!(peek(br#"{"id":"abc","result":{}}"#), LineKind::Other));
        assert!(matches!(peek(br#"{"id":null,"error":{}}"#), LineKind::Nameless(_)));
        assert!(
            matches!(peek(br#" [{"id":1,"result":{}}]"#), LineKind::Batch(parts) if parts.len() == 1)
        );
    }

    #[test]
    fn an_invalid_response_is_matched_to_its_call() {
        for rest in ["\"result\":{\"n\":NaN}}", "\"result\":{\"content\":[", "\"result\":nul"] {
            let line = format!(r#"{{"jsonrpc":"2.0","id": {OURS},{rest}"#);
            assert!(matches!(peek(line.as_bytes()), LineKind::Unreadable(_)), "{line}");
        }
        let null = format!(r#"{{"jsonrpc":"2.0","id":{OURS},"result":null}}"#);
        assert!(
            matches!(peek(null.as_bytes()), LineKind::Answer(_, Ok(result)) if result.get() == "null")
        );
        assert!(matches!(peek(br#"{"id":7,"result":{"#), LineKind::Garbage));
        for rest in ["", r#","error":null"#] {
            let neither = format!(r#"{{"jsonrpc":"2.0","id":{OURS}{rest}}}"#);
            assert!(matches!(peek(neither.as_bytes()), LineKind::Answer(_, Err(_))), "{neither}");
        }
    }

    #[test]
    fn garbage_is_recognised() {
        for garbage in [
            "",
            "hello",
            "{",
            "[",
            "42",
            "{}",
            r#"{"id":5}"#,
            "\u{feff}{}",
            "null",
            r#"{"result":{}}"#,
        ] {
            assert!(matches!(peek(garbage.as_bytes()), LineKind::Garbage), "{garbage:?}");
        }
        assert!(matches!(peek(&[0xff, 0xfe]), LineKind::Garbage));
        let batch = |messages: usize| format!("[1{}]", ",1".repeat(messages - 1));
        assert!(matches!(peek(batch(MAX_BATCH).as_bytes()), LineKind::Batch(_)));
        assert!(matches!(peek(batch(MAX_BATCH + 1).as_bytes()), LineKind::Garbage), "too many");
    }
}
