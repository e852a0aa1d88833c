//! Redacts secrets in what a server sends, on arrival: errors, and everything that describes the
//! server. A server knows its own credentials and may echo them, and from here these texts reach
//! logs, models, files and other programs.
//!
//! Content that was asked for is not changed: results of tools, resources and prompts. Neither are
//! identifiers, such as the name of a tool: the server would not recognize them. An entry of a list with a
//! credential in an identifier is left out ([`gives_away`]).

use std::borrow::Cow;

use openclaw_secrets::Redactor;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::wire::json::{JsonCow, JsonRef};

/// Members whose values identify something, in messages and in JSON schemas.
const IDENTIFIERS: &[&str] = &[
    "$anchor",
    "$id",
    "$ref",
    "$schema",
    "const",
    "cursor",
    "elicitationId",
    "enum",
    "format",
    "id",
    "jsonrpc",
    "method",
    "mimeType",
    "name",
    "nextCursor",
    "pattern",
    "progressToken",
    "protocolVersion",
    "requestId",
    "required",
    "role",
    "supportedVersions",
    "type",
    "uri",
    "uriTemplate",
];

/// The end of the member that describes the server program. Its `name` identifies nothing.
const SERVER_INFO: &str = "serverInfo";

/// Redacts a message or a list, except for its identifiers and the names of members.
pub(crate) fn message<'a>(json: &'a str, redactor: &Redactor) -> Cow<'a, str> {
    redacted(json, redactor, Extent::Described)
}

/// Whether an entry of a list still contains a credential after it was redacted: in an identifier, or in
/// the name of a member.
pub(crate) fn gives_away(json: &str, redactor: &Redactor) -> bool {
    if redactor.finds_credential(json) {
        return true;
    }
    // Any character may be escaped.
    if memchr::memchr(b'\\', json.as_bytes()).is_none() || redactor.is_empty() {
        return false;
    }
    // Nested too deeply to be read, and so to be used.
    serde_json::from_str::<Value>(json).is_ok_and(|value| contains(&value, redactor))
}

fn contains(value: &Value, redactor: &Redactor) -> bool {
    match value {
        Value::String(text) => redactor.finds_credential(text),
        Value::Array(items) => items.iter().any(|item| contains(item, redactor)),
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| redactor.finds_credential(name) || contains(value, redactor)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Redacts a request of a server, except for its identifiers and the names of members.
pub(crate) fn request(request: &mut Value, redactor: &Redactor) {
    if !redactor.is_empty() {
        redact(request, redactor, Extent::Described);
    }
}

/// Redacts a JSON-RPC error, except for the names of its own members.
pub(super) fn error(error: &RawValue, redactor: &Redactor) -> Box<RawValue> {
    match redacted(error.get(), redactor, Extent::Members) {
        Cow::Borrowed(_) => error.to_owned(),
        Cow::Owned(json) => RawValue::from_string(json).unwrap_or_default(),
    }
}

/// Redacts a tool result that reports an error.
pub fn result<'a>(result: JsonCow<'a>, redactor: &Redactor) -> JsonCow<'a> {
    if redactor.is_empty() || !is_error(result.as_ref()) {
        return result;
    }
    let clean = match message(result.as_ref().get(), redactor) {
        Cow::Borrowed(_) => None,
        Cow::Owned(json) => RawValue::from_string(json).ok(),
    };
    clean.map_or(result, |json| JsonCow::Owned(json.into()))
}

fn is_error(result: JsonRef<'_>) -> bool {
    #[derive(serde::Deserialize)]
    struct Outcome {
        #[serde(default, rename = "isError")]
        is_error: bool,
    }
    match result.one_text() {
        Some((_, is_error)) => is_error,
        // Usually it is missing or false, and the rest need not be parsed.
        None => {
            let json = result.get().as_bytes();
            let says_so = |at: usize| {
                let rest = json[at + r#""isError""#.len()..].iter();
                rest.copied().find(|byte| !byte.is_ascii_whitespace() && *byte != b':')
                    == Some(b't')
            };
            memchr::memmem::find_iter(json, r#""isError""#).any(says_so)
                && serde_json::from_str::<Outcome>(result.get()).is_ok_and(|it| it.is_error)
        }
    }
}

/// What is redacted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All values but identifiers.
    Described,
    /// The values of an object.
    Members,
    /// All values, and the names of members.
    Everything,
}

fn redacted<'a>(json: &'a str, redactor: &Redactor, extent: Extent) -> Cow<'a, str> {
    if redactor.is_empty() {
        return json.into();
    }
    let plain = redactor.redact(json);
    // Any character may be escaped.
    let may_be_hidden = || memchr::memmem::find(json.as_bytes(), br"\u").is_some();
    if matches!(plain, Cow::Borrowed(_)) && !may_be_hidden() {
        return plain;
    }
    match serde_json::from_str::<Value>(json) {
        Ok(mut value) => {
            let is_changed = redact(&mut value, redactor, extent);
            if is_changed { value.to_string().into() } else { json.into() }
        }
        // Nested too deeply, or invalid. The redacted text may be invalid, too, and is then dropped.
        Err(_) => plain,
    }
}

/// Redacts a value, and returns whether it has changed. Recursion is bounded by that of the parser.
fn redact(value: &mut Value, redactor: &Redactor, extent: Extent) -> bool {
    match value {
        Value::String(text) => match redactor.redact(text) {
            Cow::Borrowed(_) => false,
            Cow::Owned(clean) => {
                *text = clean;
                true
            }
        },
        Value::Array(items) => {
            let redact = |any: bool, item: &mut Value| redact(item, redactor, extent) | any;
            items.iter_mut().fold(false, redact)
        }
        Value::Object(members) => {
            let mut has_changed = false;
            for (name, value) in members.iter_mut() {
                let within = match extent {
                    Extent::Described if name.ends_with(SERVER_INFO) => Extent::Members,
                    Extent::Described if IDENTIFIERS.contains(&name.as_str()) => {
                        // In a schema, a property may have that name.
                        if !value.is_object() {
                            continue;
                        }
                        Extent::Described
                    }
                    Extent::Described => Extent::Described,
                    Extent::Members | Extent::Everything => Extent::Everything,
                };
                has_changed |= redact(value, redactor, within);
            }
            if extent == Extent::Everything
                && members.keys().any(|name| matches!(redactor.redact(name), Cow::Owned(_)))
            {
                let old = std::mem::take(members);
                let clean = |(name, value): (String, Value)| (redactor.redact(&name).into(), value);
                members.extend(old.into_iter().map(clean));
                has_changed = true;
            }
            has_changed
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knowing(values: &[&str]) -> Redactor {
        let redactor = Redactor::new();
        redactor.add_all(&values.iter().map(|it| (*it).into()).collect::<Vec<_>>());
        redactor
    }

    #[test]
    fn an_error_is_redacted_wherever_the_secret_is() {
        let raw = r#"{"code":-1,"message":"no hunter22","data":{"hunter22":["a","xhunter22y"],"name":"hunter\u0032\u0032"}}"#;
        let raw: Box<RawValue> = serde_json::from_str(raw).unwrap();
        let clean = error(&raw, &knowing(&["hunter22"]));
        assert_eq!(
            clean.get(),
            r#"{"code":-1,"message":"no [REDACTED]","data":{"[REDACTED]":["a","x[REDACTED]y"],"name":"[REDACTED]"}}"#
        );
        let clean = error(&raw, &knowing(&["message", "data"]));
        assert_eq!(clean.get(), raw.get(), "its own members are kept");
    }

    #[test]
    fn a_description_is_redacted_but_no_identifier() {
        let page = r#"{"tools":[{"name":"postgres_query","description":"as postgres","inputSchema":{"type":"object","properties":{"postgres":{"enum":["postgres"],"description":"postgres"},"name":{"type":"string","description":"postgres"}},"required":["postgres"]}}]}"#;
        assert_eq!(
            message(page, &knowing(&["postgres"])),
            r#"{"tools":[{"name":"postgres_query","description":"as [REDACTED]","inputSchema":{"type":"object","properties":{"postgres":{"enum":["postgres"],"description":"[REDACTED]"},"name":{"type":"string","description":"[REDACTED]"}},"required":["postgres"]}}]}"#
        );
        let hello = r#"{"jsonrpc":"2.0","id":1,"result":{"serverInfo":{"name":"a hunter22","version":"hunter22"},"instructions":"use hunter22"}}"#;
        assert_eq!(
            message(hello, &knowing(&["hunter22", "result"])),
            r#"{"jsonrpc":"2.0","id":1,"result":{"serverInfo":{"name":"a [REDACTED]","version":"[REDACTED]"},"instructions":"use [REDACTED]"}}"#
        );
    }

    #[test]
    fn an_entry_gives_a_credential_away_wherever_it_cannot_be_redacted() {
        let redactor = Redactor::new();
        redactor.add_credentials([&"hunter22-and-more".into()]);
        redactor.add(&"postgres".into());
        for (entry, gives_away) in [
            (r#"{"name":"hunter22-and-more"}"#, true),
            (r#"{"name":"hunter22\u002dand-more"}"#, true),
            (r#"{"name":"a","uri":"x://aHVudGVyMjItYW5kLW1vcmU="}"#, true),
            (r#"{"inputSchema":{"properties":{"hunter22-and-more":{}}}}"#, true),
            (r#"{"inputSchema":{"enum":["hunter22-and-more"]}}"#, true),
            (r#"{"_meta":{"hunter22-and-mor\u0065":1}}"#, true),
            (r#"{"name":"postgres","x":"\n"}"#, false),
            (r#"{"name":"a"}"#, false),
        ] {
            assert_eq!(super::gives_away(entry, &redactor), gives_away, "{entry}");
        }
    }

    #[test]
    fn only_a_result_that_reports_an_error_is_redacted() {
        let redactor = knowing(&["hunter22"]);
        let read =
            |json: &str| JsonCow::Owned(RawValue::from_string(json.to_owned()).unwrap().into());
        for (json, is_redacted) in [
            (r#"{"content":[{"type":"text","text":"hunter22"}],"isError":true}"#, true),
            (r#"{"content":[{"type":"text","text":"hunter22"}]}"#, false),
            (r#"{"content":[{"type":"text","text":"hunter22"}],"isError":false}"#, false),
            (r#"{"content":[],"structuredContent":{"a":"hunter22"},"isError" : true}"#, true),
            (r#"{"content":[],"structuredContent":{"a":"hunter22","isError":true}}"#, false),
        ] {
            let clean = result(read(json), &redactor);
            assert_eq!(!clean.as_ref().get().contains("hunter22"), is_redacted, "{json}");
        }
    }

    #[test]
    fn what_cannot_be_parsed_is_redacted_as_text() {
        let deep = format!("{}\"hunter22\"{}", "[".repeat(500), "]".repeat(500));
        assert!(!message(&deep, &knowing(&["hunter22"])).contains("hunter22"));
    }
}
