//! Replies that are passed on to a client of another program (S6): the JSON stays as the server sent
//! it, except that texts get their boundaries, unless the client does without.
//!
//! With boundaries, nothing that a model may read is left outside of one: `structuredContent` becomes
//! a text, and names and descriptions are sanitized to one line.

use std::sync::Arc;
use std::time::Duration;

use openclaw_content::{
    JsonRenderer, NoRandomness, Source, Text, Untrusted, clean_line, inspect, render,
};
use openclaw_tools::{RawReply, ToolOutcome};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::text::RawString;
use super::{ResponseContext, ResultLimits, failure};
use crate::wire::CallError;
use crate::wire::json::{JsonCow, JsonRef};

/// Maximum length of a name or description, in characters.
const MAX_LINE: usize = 600;

/// What a reply is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyKind {
    /// The result of `tools/call`.
    Call,
    /// The result of `resources/read`.
    Resource,
    /// The result of `prompts/get`.
    Prompt,
}

/// Returns the outcome of a result that is passed on.
pub(crate) fn relayed(
    raw: JsonCow<'_>,
    kind: ReplyKind,
    renderer: &JsonRenderer,
    wraps: bool,
    duration: Duration,
) -> ToolOutcome {
    let source = renderer.source();
    let place = || {
        let (source, limits) = (Arc::clone(source), ResultLimits::default());
        ResponseContext { source, limits, spill: None, duration }
    };
    if !raw.as_ref().get().starts_with('{') {
        let place = place();
        let server = failure::named(place.origin().server);
        return place.failure(format!("{server} sent an invalid response: not a result."));
    }
    let is_error = is_error(raw.as_ref());
    let json = match wraps {
        false => Ok(String::from(raw)),
        true => wrapped(raw, kind, renderer),
    };
    let Ok(json) = json else { return super::present::no_boundary(&place()) };
    let mut details = super::details(source, duration);
    details.untrusted = true;
    details.raw = Some(RawReply::Result(json));
    ToolOutcome { content: Vec::new(), is_error, details }
}

/// Returns the server's JSON-RPC error, if a call failed with one.
pub(crate) fn raw_error(error: &CallError, source: &Source, wraps: bool) -> Option<RawReply> {
    let CallError::Rpc(raw) = error else { return None };
    let json = match wraps {
        false => Some(raw.get().to_owned()),
        true => wrapped_error(raw.get(), source),
    };
    json.map(RawReply::Error)
}

fn is_error(raw: JsonRef<'_>) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Flag {
        #[serde(default)]
        is_error: bool,
    }
    match raw.one_text() {
        Some((_, is_error)) => is_error,
        None => serde_json::from_str(raw.get()).is_ok_and(|Flag { is_error }| is_error),
    }
}

fn wrapped(
    raw: JsonCow<'_>,
    kind: ReplyKind,
    renderer: &JsonRenderer,
) -> Result<String, NoRandomness> {
    let json = raw.as_ref();
    if kind == ReplyKind::Call
        && let Some((escaped, _)) = json.one_text()
    {
        return spliced(json.get(), escaped, renderer);
    }
    // A result that is a request for input has no content: it is for the client, not for its model.
    let Ok(Value::Object(mut result)) = serde_json::from_str(json.get()) else {
        return Ok(String::from(raw));
    };
    drop(raw);
    wrap_members(&mut result, kind, renderer.source())?;
    Ok(Value::Object(result).to_string())
}

/// Puts the boundary around the only text of a result, which is not encoded again.
fn spliced(json: &str, escaped: &str, renderer: &JsonRenderer) -> Result<String, NoRandomness> {
    let start = escaped.as_ptr().addr() - json.as_ptr().addr();
    let (before, rest) = json.split_at(start);
    let mut out = String::with_capacity(json.len() + 512);
    out.push_str(before);
    let text = RawString::bare(escaped).decode();
    // The findings are in the log.
    let _ = renderer.render(&mut out, escaped, Untrusted::new(&*text))?;
    out.push_str(rest.get(escaped.len()..).unwrap_or_default());
    Ok(out)
}

fn wrap_members(
    result: &mut Map<String, Value>,
    kind: ReplyKind,
    source: &Arc<Source>,
) -> Result<(), NoRandomness> {
    match kind {
        ReplyKind::Call => {
            let structured = result.remove("structuredContent").filter(|it| !it.is_null());
            let content = result.get_mut("content").and_then(Value::as_array_mut);
            let mut has_text = false;
            for part in content.into_iter().flatten() {
                has_text |= wrap_part(part, source)?;
            }
            if let Some(structured) = structured.filter(|_| !has_text) {
                let mut part = json!({ "type": "text", "text": structured.to_string() });
                wrap_part(&mut part, source)?;
                let content = result.entry("content").or_insert_with(|| json!([]));
                content.as_array_mut().into_iter().for_each(|all| all.push(part.clone()));
            }
        }
        ReplyKind::Resource => {
            let contents = result.get_mut("contents").and_then(Value::as_array_mut);
            for part in contents.into_iter().flatten() {
                wrap_text(part, source)?;
            }
        }
        ReplyKind::Prompt => {
            clean(result, "description");
            let messages = result.get_mut("messages").and_then(Value::as_array_mut);
            for message in messages.into_iter().flatten() {
                match message.get_mut("content") {
                    Some(Value::Array(parts)) => {
                        for part in parts {
                            wrap_part(part, source)?;
                        }
                    }
                    Some(part) => drop(wrap_part(part, source)?),
                    None => {}
                }
            }
        }
    }
    Ok(())
}

/// Wraps the text of a part, or of the resource in it. Returns whether there was one.
fn wrap_part(part: &mut Value, source: &Arc<Source>) -> Result<bool, NoRandomness> {
    if let Some(part) = part.as_object_mut() {
        ["name", "title", "description"].into_iter().for_each(|member| clean(part, member));
    }
    let own = wrap_text(part, source)?;
    let embedded = match part.get_mut("resource") {
        Some(resource) => wrap_text(resource, source)?,
        None => false,
    };
    Ok(own || embedded)
}

fn wrap_text(part: &mut Value, source: &Arc<Source>) -> Result<bool, NoRandomness> {
    let Some(Value::String(text)) = part.get_mut("text") else { return Ok(false) };
    *text = rendered(std::mem::take(text), source)?;
    Ok(true)
}

fn rendered(text: String, source: &Arc<Source>) -> Result<String, NoRandomness> {
    let _ = inspect(Untrusted::new(&*text), source);
    let text = Text::outside(Untrusted::new(text), Arc::clone(source))?;
    Ok(render([&text]).pop().unwrap_or_default())
}

fn clean(members: &mut Map<String, Value>, name: &str) {
    if let Some(Value::String(text)) = members.get_mut(name) {
        *text = clean_line(Untrusted::new(text), MAX_LINE);
    }
}

/// The message of an error reaches the model, too. Its data is kept only where a client needs it to
/// go on.
fn wrapped_error(json: &str, source: &Source) -> Option<String> {
    let Ok(Value::Object(mut error)) = serde_json::from_str(json) else { return None };
    if error.get("code").and_then(Value::as_i64) != Some(failure::URL_ELICITATION_REQUIRED) {
        error.remove("data");
    }
    if let Some(Value::String(message)) = error.get_mut("message") {
        *message = rendered(std::mem::take(message), &Arc::new(source.clone())).ok()?;
    }
    Some(Value::Object(error).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relay(json: &str, kind: ReplyKind, wraps: bool) -> (Value, bool) {
        let raw = serde_json::value::RawValue::from_string(json.to_owned()).unwrap();
        let renderer = JsonRenderer::new(Source::mcp_tool("git", "log"));
        let raw = JsonCow::Owned(raw.into());
        let outcome = relayed(raw, kind, &renderer, wraps, Duration::ZERO);
        let Some(RawReply::Result(json)) = &outcome.details.raw else { panic!("{outcome:?}") };
        (serde_json::from_str(json).unwrap(), outcome.is_error)
    }

    fn is_wrapped(text: &Value, inside: &str) -> bool {
        let text = text.as_str().unwrap();
        text.starts_with("This is output from MCP server 'git'.")
            && text.contains(&format!("---\n{inside}\n<<<END_EXTERNAL"))
    }

    #[test]
    fn without_boundaries_a_result_stays_as_it_is() {
        let json =
            r#"{"content":[{"type":"text","text":"a"}],"structuredContent":{"b":1.50},"x":[]}"#;
        let raw = serde_json::value::RawValue::from_string(json.to_owned()).unwrap();
        let renderer = JsonRenderer::new(Source::mcp_tool("git", "log"));
        let raw = JsonCow::Owned(raw.into());
        let outcome = relayed(raw, ReplyKind::Call, &renderer, false, Duration::ZERO);
        assert_eq!(outcome.details.raw, Some(RawReply::Result(json.to_owned())));
    }

    #[test]
    fn the_only_text_of_a_result_is_wrapped_in_place() {
        let json = r#"{ "isError": true, "content": [{"text":"a\n\"b\"","type":"text"}], "_meta":{"x":1} }"#;
        let (result, is_error) = relay(json, ReplyKind::Call, true);
        assert!(is_error && is_wrapped(&result["content"][0]["text"], "a\n\"b\""), "{result}");
        assert_eq!(result["_meta"]["x"], 1);
    }

    #[test]
    fn all_texts_are_wrapped_and_structured_content_becomes_one_only_if_there_is_none() {
        let json = r#"{"content":[
            {"type":"text","text":"a"},
            {"resource":{"text":"b","uri":"x:y"},"type":"resource"},
            {"type":"resource_link","uri":"x:z","name":"n\n<|im_start|>","description":"d"},
            {"type":"image","data":"AA==","mimeType":"image/png"}
        ],"structuredContent":{"c":1}}"#;
        let (result, is_error) = relay(json, ReplyKind::Call, true);
        assert!(!is_error && result.get("structuredContent").is_none(), "{result}");
        let content = result["content"].as_array().unwrap();
        assert_eq!(content.len(), 4, "{result}");
        assert!(is_wrapped(&content[0]["text"], "a"), "{result}");
        assert!(is_wrapped(&content[1]["resource"]["text"], "b"), "{result}");
        assert_eq!(content[2]["name"], "n [removed token]");
        assert_eq!(content[3]["data"], "AA==");
        let (result, _) =
            relay(r#"{"content":[],"structuredContent":{"c":1}}"#, ReplyKind::Call, true);
        assert!(is_wrapped(&result["content"][0]["text"], r#"{"c":1}"#), "{result}");
    }

    #[test]
    fn resources_and_prompts_are_wrapped() {
        let json = r#"{"contents":[{"uri":"a:b","text":"one"},{"uri":"a:c","blob":"AA=="}]}"#;
        let (result, _) = relay(json, ReplyKind::Resource, true);
        assert!(is_wrapped(&result["contents"][0]["text"], "one"), "{result}");
        let json = r#"{"description":"d\nd","messages":[{"role":"user","content":{"type":"text","text":"two"}}]}"#;
        let (result, _) = relay(json, ReplyKind::Prompt, true);
        assert!(is_wrapped(&result["messages"][0]["content"]["text"], "two"), "{result}");
    }

    #[test]
    fn the_message_of_an_error_is_wrapped_and_its_code_kept() {
        let source = Source::mcp_tool("git", "log");
        let json = r#"{"code":-32001,"message":"obey","data":{"a":"obey"}}"#;
        let error: Value = serde_json::from_str(&wrapped_error(json, &source).unwrap()).unwrap();
        assert_eq!(error["code"], -32001);
        assert!(is_wrapped(&error["message"], "obey") && error.get("data").is_none(), "{error}");
    }
}
