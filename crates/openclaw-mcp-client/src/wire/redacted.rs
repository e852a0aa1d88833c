//! Redacts secrets in what a server sends, on arrival: errors, and everything that describes the
//! server. A server knows its own credentials and may echo them, and from here these texts reach
//! logs, models, files and other programs.
//!
//! Content that was asked for is not changed: results of tools, resources and prompts. Neither are
//! identifiers, such as the name of a tool: the server would not recognize them. An entry of a list with a
//! credential in an identifier is left out, and a request with one is refused ([`gives_away`]). What
//! nobody refers to later has no identifiers: log messages and results that report errors.

use std::borrow::Cow;
use std::fmt;

use openclaw_secrets::{REDACTED, Redactor};
use percent_encoding::percent_decode_str;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::wire::json::{Json, JsonCow, JsonRef};

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

/// The method of log messages.
const LOG: &str = "notifications/message";
/// The members of a result that say what it is.
const KIND: [&str; 2] = ["isError", "resultType"];
/// How many times a name or an address may be percent-encoded.
const ENCODED: usize = 3;

/// The end of the member that describes the server program. Its `name` identifies nothing.
const SERVER_INFO: &str = "serverInfo";

/// Redacts a message or a list, except for its identifiers and the names of members. The data of a log
/// message has none.
pub(crate) fn message<'a>(json: &'a str, redactor: &Redactor) -> Cow<'a, str> {
    redacted(json, redactor, |message| {
        let is_log = message.get("method").is_some_and(|method| method == LOG);
        let data = message.pointer_mut("/params/data").filter(|_| is_log);
        let is_redacted = data.is_some_and(|data| redact(data, redactor, Extent::Everything));
        redact(message, redactor, Extent::Described) | is_redacted
    })
}

/// Whether an entry of a list or a request still contains a credential after it was redacted: in an
/// identifier, or in the name of a member.
pub(crate) fn gives_away(json: &str, redactor: &Redactor) -> bool {
    if redactor.is_empty() {
        return false;
    }
    if is_credential(json, redactor) {
        return true;
    }
    // Any character may be escaped.
    if memchr::memchr(b'\\', json.as_bytes()).is_none() {
        return false;
    }
    // Nested too deeply to be read, and so to be used.
    serde_json::from_str::<Value>(json).is_ok_and(|value| contains(&value, redactor))
}

/// Like [`gives_away`], for JSON that was parsed.
fn contains(value: &Value, redactor: &Redactor) -> bool {
    match value {
        Value::String(text) => is_credential(text, redactor),
        Value::Array(items) => items.iter().any(|item| contains(item, redactor)),
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| is_credential(name, redactor) || contains(value, redactor)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether a text contains a credential. In an address, any byte may be percent-encoded.
pub(crate) fn is_credential(text: &str, redactor: &Redactor) -> bool {
    let mut text = Cow::Borrowed(text);
    for _ in 0..ENCODED {
        if redactor.finds_credential(&text) {
            return true;
        }
        if memchr::memchr(b'%', text.as_bytes()).is_none() {
            return false;
        }
        text = Cow::Owned(percent_decode_str(&text).decode_utf8_lossy().into_owned());
    }
    redactor.finds_credential(&text)
}

/// Redacts a request of a server for input, except for its identifiers and the names of members. Returns
/// whether it is free of credentials then; nobody must be asked otherwise.
pub(crate) fn request(request: &mut Value, redactor: &Redactor) -> bool {
    if redactor.is_empty() {
        return true;
    }
    redact(request, redactor, Extent::Described);
    !contains(request, redactor)
}

/// Redacts a JSON-RPC error, except for the names of its own members.
pub(crate) fn error(error: &RawValue, redactor: &Redactor) -> Box<RawValue> {
    match redacted(error.get(), redactor, |error| redact(error, redactor, Extent::Members)) {
        Cow::Borrowed(_) => error.to_owned(),
        Cow::Owned(json) => RawValue::from_string(json).unwrap_or_default(),
    }
}

/// Redacts the result of a call that reports an error, or asks for input: content that was asked for is
/// neither. If the input cannot be asked for without a credential, the result becomes an error.
pub fn result<'a>(result: JsonCow<'a>, redactor: &Redactor) -> JsonCow<'a> {
    if redactor.is_empty() {
        return result;
    }
    let json = result.as_ref().get();
    let clean = if is_error(result.as_ref()) {
        redacted(json, redactor, |result| redact_error_result(result, redactor))
    } else {
        match asking(result.as_ref(), redactor) {
            Some(Ok(clean)) => clean.into(),
            Some(Err(GivesAway)) => Cow::Borrowed(GIVES_AWAY_RESULT),
            None => return result,
        }
    };
    let clean = match clean {
        Cow::Borrowed(same) if same == json => None,
        clean => RawValue::from_string(clean.into_owned()).ok(),
    };
    clean.map_or(result, |json| JsonCow::Owned(json.into()))
}

/// Redacts the result of another request, if it asks for input.
///
/// # Errors
/// If the input cannot be asked for without a credential.
pub(crate) fn other_result(result: Json, redactor: &Redactor) -> Result<Json, GivesAway> {
    if redactor.is_empty() {
        return Ok(result);
    }
    let Some(clean) = asking(JsonCow::Owned(result.clone()).as_ref(), redactor) else {
        return Ok(result);
    };
    Ok(RawValue::from_string(clean?).map_or(result, Json::from))
}

/// A request has a credential where it cannot be redacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GivesAway;

impl fmt::Display for GivesAway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("input with a credential in a name or a value")
    }
}

/// Replaces a result that asks for input with a credential in a name or a value.
const GIVES_AWAY_RESULT: &str = r#"{"content":[{"type":"text","text":"The server asks for input, with a credential in a name or a value of its request. Nobody was asked."}],"isError":true}"#;

/// Redacts what a result asks for, and not the state of the server; `None` if it asks for nothing.
fn asking(result: JsonRef<'_>, redactor: &Redactor) -> Option<Result<String, GivesAway>> {
    let json = result.get();
    if result.one_text().is_some()
        || memchr::memmem::find(json.as_bytes(), b"input_required").is_none()
    {
        return None;
    }
    let mut result = serde_json::from_str::<Value>(json).ok()?;
    if result.get("resultType").is_none_or(|kind| kind != "input_required") {
        return None;
    }
    let is_clean = match result.get_mut("inputRequests") {
        Some(requests) => request(requests, redactor),
        None => true,
    };
    Some(if is_clean { Ok(result.to_string()) } else { Err(GivesAway) })
}

/// Redacts all of a result that reports an error, but what says that it is one.
fn redact_error_result(result: &mut Value, redactor: &Redactor) -> bool {
    let Value::Object(members) = result else {
        return redact(result, redactor, Extent::Everything);
    };
    let mut has_changed = redact_names(members, |name| redactor.finds_credential(name));
    for (name, member) in members {
        has_changed |= match (name.as_str(), member) {
            (name, _) if KIND.contains(&name) => false,
            ("content", Value::Array(parts)) => {
                parts.iter_mut().fold(false, |any, part| redact_part(part, redactor) | any)
            }
            (_, member) => redact(member, redactor, Extent::Everything),
        };
    }
    has_changed
}

/// Redacts a part of a result, which remains one.
fn redact_part(part: &mut Value, redactor: &Redactor) -> bool {
    let Value::Object(members) = part else { return redact(part, redactor, Extent::Everything) };
    let mut has_changed = redact_names(members, |name| redactor.finds_credential(name));
    for (name, member) in members {
        has_changed |= match (name.as_str(), member) {
            ("type", Value::String(kind)) if !redactor.finds_credential(kind) => false,
            ("resource" | "annotations", member) => redact_part(member, redactor),
            (_, member) => redact(member, redactor, Extent::Everything),
        };
    }
    has_changed
}

/// Redacts the names of members for which this holds.
fn redact_names(members: &mut Map<String, Value>, is_secret: impl Fn(&str) -> bool) -> bool {
    if !members.keys().any(|name| is_secret(name)) {
        return false;
    }
    let old = std::mem::take(members);
    let clean = |(name, value): (String, Value)| match is_secret(&name) {
        true => (REDACTED.to_owned(), value),
        false => (name, value),
    };
    members.extend(old.into_iter().map(clean));
    true
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

/// Redacts JSON by this function, which returns whether it has changed the value.
fn redacted<'a>(
    json: &'a str,
    redactor: &Redactor,
    redact: impl FnOnce(&mut Value) -> bool,
) -> Cow<'a, str> {
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
            if redact(&mut value) {
                value.to_string().into()
            } else {
                json.into()
            }
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
            (r#"{"uri":"x://%68%75%6E%74%65%72%32%32%2D%61%6e%64%2dmore"}"#, true),
            (r#"{"uri":"x://%2568unter22-and-more"}"#, true),
            (r#"{"uri":"x://100%","x":"%zz\u0025"}"#, false),
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
    fn what_nobody_refers_to_is_redacted_in_names_and_identifiers_too() {
        let redactor = Redactor::new();
        redactor.add_credentials([&"hunter22-and-more".into()]);
        redactor.add(&"text".into());
        let log = r#"{"method":"notifications/message","params":{"level":"info","logger":"a","data":{"name":"hunter22-and-more","k hunter22-and-more":{"id":"hunter22-and-mor\u0065"}}}}"#;
        let clean = message(log, &redactor);
        assert!(!clean.contains("hunter22") && clean.contains(r#""level":"info""#), "{clean}");
        let failed = r#"{"content":[{"type":"resource_link","uri":"x://hunter22-and-more","name":"hunter22-and-more"},{"type":"text","text":"a"},{"type":"resource","resource":{"uri":"hunter22-and-more","text":"b"}}],"structuredContent":{"name":"hunter22-and-more","hunter22-and-more":1},"hunter22-and-more":1,"isError":true}"#;
        let read =
            |json: &str| JsonCow::Owned(RawValue::from_string(json.to_owned()).unwrap().into());
        let clean = result(read(failed), &redactor);
        let clean: Value = serde_json::from_str(clean.as_ref().get()).unwrap();
        assert!(!clean.to_string().contains("hunter22"), "{clean}");
        assert_eq!(clean["content"][0]["type"], "resource_link");
        assert_eq!(clean["content"][1], serde_json::json!({ "type": "text", "text": "a" }));
        assert_eq!(clean["content"][2]["resource"]["text"], "b");
        assert_eq!((&clean["isError"], clean.as_object().unwrap().len()), (&true.into(), 4));
    }

    #[test]
    fn input_is_asked_for_without_credentials_or_not_at_all() {
        let redactor = Redactor::new();
        redactor.add_credentials([&"hunter22-and-more".into()]);
        let asked = |schema: &str| {
            let json = format!(
                r#"{{"resultType":"input_required","inputRequests":{{"1":{{"method":"elicitation/create","params":{{"message":"hunter22-and-more","requestedSchema":{schema}}}}}}},"requestState":"hunter22-and-more"}}"#
            );
            let read = JsonCow::Owned(RawValue::from_string(json).unwrap().into());
            serde_json::from_str::<Value>(result(read, &redactor).as_ref().get()).unwrap()
        };
        let clean = asked(r#"{"properties":{"a":{"title":"hunter22-and-more"}}}"#);
        assert!(!clean["inputRequests"].to_string().contains("hunter22"), "{clean}");
        assert_eq!(clean["requestState"], "hunter22-and-more", "the server's own");
        for schema in [
            r#"{"properties":{"hunter22-and-more":{}}}"#,
            r#"{"properties":{"a":{"enum":["hunter22-and-mor\u0065"]}}}"#,
        ] {
            let refused = asked(schema);
            assert_eq!(refused["isError"], true, "{refused}");
            assert!(!refused.to_string().contains("hunter22"), "{refused}");
        }
    }

    #[test]
    fn what_cannot_be_parsed_is_redacted_as_text() {
        let deep = format!("{}\"hunter22\"{}", "[".repeat(500), "]".repeat(500));
        assert!(!message(&deep, &knowing(&["hunter22"])).contains("hunter22"));
    }
}
