//! A look at a message that goes no deeper than it must.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::calls::CallId;
use crate::wire::json::{JsonRef, Walk};

/// What a line holds, as far as the wire must know.
#[derive(Debug)]
pub(super) enum Line<'a> {
    /// An answer to one of our calls.
    Answer(CallId, Result<JsonRef<'a>, &'a RawValue>),
    /// What was to be an answer to one of our calls, and is no JSON.
    Unreadable(CallId),
    /// An answer to a request of `rmcp`, by its number.
    ToRmcp(u64, Result<JsonRef<'a>, &'a RawValue>),
    /// An error that does not say what it is about.
    Nameless(&'a RawValue),
    /// The server tells of progress with one of our calls.
    Progress(CallId),
    /// Several messages in one (2025-03-26).
    Batch(Vec<&'a RawValue>),
    /// Another message: for `rmcp`.
    Other,
    /// Not a message at all.
    Garbage,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    // `null` is an answer, too, if a wrong one.
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

fn present<'de: 'a, 'a, D: serde::Deserializer<'de>>(
    value: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(value).map(Some)
}

/// The call that a broken line was to answer, as far as that can be told: whoever waits for it need not
/// wait in vain.
fn broken(line: &[u8]) -> Line<'_> {
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
    id.map_or(Line::Garbage, Line::Unreadable)
}

/// The number that an id is. Some servers echo numbers as strings.
pub(super) fn number(id: &RawValue) -> Option<u64> {
    id.get().trim_matches('"').parse().ok()
}

/// The id and the result of an answer that has no other members. `None` means that the full reader must look
/// at the line.
fn usual_answer(line: &str) -> Option<(CallId, JsonRef<'_>)> {
    let (mut id, mut result) = (None, None);
    let mut walk = Walk::over(line);
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

/// Looks at a line.
pub(super) fn peek(line: &[u8]) -> Line<'_> {
    let first = line.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'[') {
        return serde_json::from_slice(line).map_or(Line::Garbage, Line::Batch);
    }
    // Whatever else it is: some servers print without end.
    if memchr::memchr(b'{', line).is_none() {
        return Line::Garbage;
    }
    // Text is looked at once for being such; in bytes, each of its parts would be.
    let envelope: Result<Envelope<'_>, _> = match std::str::from_utf8(line) {
        Ok(text) => match usual_answer(text) {
            Some((id, result)) => return Line::Answer(id, Ok(result)),
            None => serde_json::from_str(text),
        },
        Err(_) => serde_json::from_slice(line),
    };
    let Ok(envelope) = envelope else { return broken(line) };
    // The method comes first: a request of the server may use an id that is one of ours, too.
    if let Some(method) = envelope.method {
        let progress = (method == "notifications/progress").then_some(envelope.params).flatten();
        let progress =
            progress.and_then(|params| serde_json::from_str::<Progress<'_>>(params.get()).ok());
        return match progress.and_then(|progress| CallId::parse(progress.token)) {
            Some(id) => Line::Progress(id),
            None => Line::Other,
        };
    }
    let answer = match (envelope.result, envelope.error) {
        (Some(result), _) => Ok(JsonRef::from(result)),
        (None, Some(error)) => Err(error),
        (None, None) => return Line::Garbage,
    };
    match (envelope.id.filter(|id| id.get() != "null"), answer) {
        (None, Err(error)) => Line::Nameless(error),
        (None, Ok(_)) => Line::Garbage,
        (Some(id), answer) => match (CallId::parse(id), number(id)) {
            (Some(id), _) => Line::Answer(id, answer),
            (None, Some(number)) => Line::ToRmcp(number, answer),
            (None, None) => Line::Other,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: u64 = (1 << 40) + 7;

    #[test]
    fn messages_are_told_apart() {
        let ours = format!(r#"{{"jsonrpc":"2.0","id":{OURS},"result":{{"a":1}}}}"#);
        assert!(
            matches!(peek(ours.as_bytes()), Line::Answer(_, Ok(result)) if result.get() == r#"{"a":1}"#)
        );
        let failed = format!(r#"{{"id":"{OURS}","error":{{"code":1}}}}"#);
        assert!(matches!(peek(failed.as_bytes()), Line::Answer(_, Err(_))));
        let request = format!(r#"{{"id":{OURS},"method":"roots/list"}}"#);
        assert!(matches!(peek(request.as_bytes()), Line::Other), "a request may reuse our id");
        let progress = format!(
            r#"{{"method":"notifications/progress","params":{{"progressToken":{OURS},"progress":1}}}}"#
        );
        assert!(matches!(peek(progress.as_bytes()), Line::Progress(_)));
        assert!(matches!(peek(br#"{"id":1,"result":{}}"#), Line::ToRmcp(1, Ok(_))));
        assert!(matches!(peek(br#"{"id":"abc","result":{}}"#), Line::Other));
        assert!(matches!(peek(br#"{"id":null,"error":{}}"#), Line::Nameless(_)));
        assert!(
            matches!(peek(br#" [{"id":1,"result":{}}]"#), Line::Batch(parts) if parts.len() == 1)
        );
    }

    #[test]
    fn an_answer_that_cannot_be_read_ends_its_call() {
        for rest in ["\"result\":{\"n\":NaN}}", "\"result\":{\"content\":[", "\"result\":nul"] {
            let line = format!(r#"{{"jsonrpc":"2.0","id": {OURS},{rest}"#);
            assert!(matches!(peek(line.as_bytes()), Line::Unreadable(_)), "{line}");
        }
        let null = format!(r#"{{"jsonrpc":"2.0","id":{OURS},"result":null}}"#);
        assert!(
            matches!(peek(null.as_bytes()), Line::Answer(_, Ok(result)) if result.get() == "null")
        );
        assert!(matches!(peek(br#"{"id":7,"result":{"#), Line::Garbage));
    }

    #[test]
    fn garbage_is_recognised_as_such() {
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
            assert!(matches!(peek(garbage.as_bytes()), Line::Garbage), "{garbage:?}");
        }
        assert!(matches!(peek(&[0xff, 0xfe]), Line::Garbage));
    }
}
