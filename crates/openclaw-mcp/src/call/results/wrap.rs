//! Puts the texts of a result between boundaries. What could carry text past them is removed: members
//! and parts that the protocol does not have, and values of another type than it has.
//!
//! `_meta` stays: by the protocol, it is for programs.

use std::sync::Arc;

use openclaw_content::{NoRandomness, Source, Text, Untrusted, clean_line, inspect, render};
use serde_json::{Map, Value, json};

use super::input::clean_requests;
use super::relay::ReplyKind;
use openclaw_mcp_client::listing::app;

/// Maximum length of a name or description, in characters.
const MAX_LINE: usize = 600;
/// Maximum length of a URI, in characters.
const MAX_URI: usize = 4_000;
/// Maximum length of a type.
const MAX_WORD: usize = 100;

/// Why a result is not passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WrapError {
    /// It is not one of the protocol.
    NotAResult,
    /// There is no randomness for a boundary.
    NoBoundary,
}

impl From<NoRandomness> for WrapError {
    fn from(_: NoRandomness) -> Self {
        Self::NoBoundary
    }
}

/// Wraps the texts of a result.
pub(super) fn wrap_members(
    result: &mut Map<String, Value>,
    kind: ReplyKind,
    source: &Arc<Source>,
) -> Result<(), WrapError> {
    // It has no content. Its state goes back to the server.
    if result.get("resultType").is_some_and(|it| it == "input_required") {
        if let Some(requests) = result.get_mut("inputRequests") {
            clean_requests(requests)?;
        }
        retain(result, &["inputRequests", "requestState"]);
        return Ok(());
    }
    match kind {
        ReplyKind::Call => wrap_call(result, source),
        ReplyKind::Resource | ReplyKind::Page => {
            let mut contents = list(result, "contents")?;
            for part in &mut contents {
                let is_known = match part {
                    // Not for a model.
                    Value::Object(part) if kind == ReplyKind::Page && is_page(part) => {
                        retain(part, &["uri", "mimeType", "text"]);
                        true
                    }
                    Value::Object(part) => wrap_resource(part, source)?.is_some(),
                    _ => false,
                };
                if !is_known {
                    *part = Value::Null;
                }
            }
            contents.retain(Value::is_object);
            result.insert("contents".to_owned(), Value::Array(contents));
            retain(result, &["contents"]);
            Ok(())
        }
        ReplyKind::Prompt => {
            clean(result, "description", MAX_LINE);
            let mut messages = list(result, "messages")?;
            for message in messages.iter_mut().filter_map(Value::as_object_mut) {
                wrap_message(message, source)?;
            }
            messages.retain(Value::is_object);
            result.insert("messages".to_owned(), Value::Array(messages));
            retain(result, &["description", "messages"]);
            Ok(())
        }
    }
}

fn wrap_call(result: &mut Map<String, Value>, source: &Arc<Source>) -> Result<(), WrapError> {
    let structured = result.remove("structuredContent").filter(|it| !it.is_null());
    let has_content = result.contains_key("content") || structured.is_none();
    let mut content = if has_content { list(result, "content")? } else { Vec::new() };
    let mut has_text = false;
    for part in &mut content {
        has_text |= wrap_part(part, source)?;
    }
    if let Some(structured) = structured.filter(|_| !has_text) {
        content.push(text_part(structured.to_string(), source)?);
    }
    result.insert("content".to_owned(), Value::Array(content));
    if !result.get("isError").is_some_and(Value::is_boolean) {
        result.remove("isError");
    }
    retain(result, &["content", "isError"]);
    Ok(())
}

/// Takes a member that must be a list.
fn list(result: &mut Map<String, Value>, name: &str) -> Result<Vec<Value>, WrapError> {
    match result.remove(name) {
        Some(Value::Array(items)) => Ok(items),
        _ => Err(WrapError::NotAResult),
    }
}

/// Wraps a message of a prompt.
fn wrap_message(message: &mut Map<String, Value>, source: &Arc<Source>) -> Result<(), WrapError> {
    match message.get_mut("content") {
        Some(Value::Array(parts)) => {
            for part in parts {
                wrap_part(part, source)?;
            }
        }
        Some(part) => drop(wrap_part(part, source)?),
        None => {}
    }
    clean(message, "role", MAX_WORD);
    retain(message, &["role", "content"]);
    Ok(())
}

/// Wraps the text of a part, or of the resource in it. A part that the protocol does not have becomes a
/// text. Returns whether there is one.
fn wrap_part(part: &mut Value, source: &Arc<Source>) -> Result<bool, NoRandomness> {
    if let Value::Object(members) = part
        && let Some(has_text) = wrap_known(members, source)?
    {
        return Ok(has_text);
    }
    let text = match part.take() {
        Value::String(text) => text,
        other => other.to_string(),
    };
    *part = text_part(text, source)?;
    Ok(true)
}

/// Wraps a part of the protocol, and returns whether it has a text; `None` if it is another one.
fn wrap_known(
    part: &mut Map<String, Value>,
    source: &Arc<Source>,
) -> Result<Option<bool>, NoRandomness> {
    let kind = part.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let has_text = match kind.as_str() {
        "text" => {
            if !wrap_text(part, source)? {
                return Ok(None);
            }
            retain(part, &["text"]);
            true
        }
        "image" | "audio" => {
            if !is_base64(part, "data") {
                return Ok(None);
            }
            clean(part, "mimeType", MAX_WORD);
            retain(part, &["data", "mimeType"]);
            false
        }
        "resource" => {
            let Some(Value::Object(resource)) = part.get_mut("resource") else { return Ok(None) };
            let Some(has_text) = wrap_resource(resource, source)? else { return Ok(None) };
            retain(part, &["resource"]);
            has_text
        }
        "resource_link" => {
            if !part.get("uri").is_some_and(Value::is_string) {
                return Ok(None);
            }
            clean(part, "uri", MAX_URI);
            clean(part, "mimeType", MAX_WORD);
            ["name", "title", "description"].iter().for_each(|name| clean(part, name, MAX_LINE));
            retain(part, &["uri", "name", "title", "description", "mimeType"]);
            false
        }
        _ => return Ok(None),
    };
    Ok(Some(has_text))
}

/// Wraps a resource, and returns whether it has a text; `None` if it is not one.
fn wrap_resource(
    resource: &mut Map<String, Value>,
    source: &Arc<Source>,
) -> Result<Option<bool>, NoRandomness> {
    let has_text = wrap_text(resource, source)?;
    if !resource.get("uri").is_some_and(Value::is_string)
        || !(has_text || is_base64(resource, "blob"))
    {
        return Ok(None);
    }
    clean(resource, "uri", MAX_URI);
    clean(resource, "mimeType", MAX_WORD);
    retain(resource, &["uri", "mimeType", if has_text { "text" } else { "blob" }]);
    Ok(Some(has_text))
}

fn is_page(part: &Map<String, Value>) -> bool {
    let text = |name: &str| part.get(name).and_then(Value::as_str);
    text("uri").is_some_and(|uri| app::is_page(&uri))
        && text("mimeType").is_some_and(app::is_page_type)
        && text("text").is_some()
}

fn wrap_text(part: &mut Map<String, Value>, source: &Arc<Source>) -> Result<bool, NoRandomness> {
    let Some(Value::String(text)) = part.get_mut("text") else { return Ok(false) };
    *text = rendered(std::mem::take(text), source)?;
    Ok(true)
}

fn text_part(text: String, source: &Arc<Source>) -> Result<Value, NoRandomness> {
    Ok(json!({ "type": "text", "text": rendered(text, source)? }))
}

/// Returns a text between boundaries.
pub(super) fn rendered(text: String, source: &Arc<Source>) -> Result<String, NoRandomness> {
    // The findings are in the log.
    let _ = inspect(Untrusted::new(&*text), source);
    let text = Text::outside(Untrusted::new(text), Arc::clone(source))?;
    Ok(render([&text]).pop().unwrap_or_default())
}

/// Sanitizes a label to one line. Another value than a text is removed.
fn clean(members: &mut Map<String, Value>, name: &str, max: usize) {
    if let Some(Value::String(text)) = members.get_mut(name) {
        *text = clean_line(Untrusted::new(text), max);
    } else {
        members.remove(name);
    }
}

/// Whether a member is base64, perhaps on several lines, which are joined.
fn is_base64(members: &mut Map<String, Value>, name: &str) -> bool {
    let Some(Value::String(data)) = members.get_mut(name) else { return false };
    if data.bytes().any(|byte| matches!(byte, b'\r' | b'\n')) {
        data.retain(|c| !matches!(c, '\r' | '\n'));
    }
    let digits = data.trim_end_matches('=');
    data.len() - digits.len() <= 2
        && digits.len() % 4 != 1
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

/// Keeps these members, and those that are not for a model.
fn retain(members: &mut Map<String, Value>, names: &[&str]) {
    members.retain(|name, value| match name.as_str() {
        name if names.contains(&name) => true,
        "_meta" => value.is_object(),
        "size" | "ttlMs" => value.is_number(),
        "type" | "resultType" | "cacheScope" => value.as_str().is_some_and(is_word),
        "annotations" => keep_annotations(value),
        _ => false,
    });
}

/// Removes what is not an annotation of the protocol. Returns whether any is left.
fn keep_annotations(annotations: &mut Value) -> bool {
    let Value::Object(members) = annotations else { return false };
    let is_role = |role: &Value| role == "user" || role == "assistant";
    members.retain(|name, value| match name.as_str() {
        "audience" => value.as_array().is_some_and(|roles| roles.iter().all(is_role)),
        "priority" => value.is_number(),
        "lastModified" => value.as_str().is_some_and(is_time),
        _ => false,
    });
    !members.is_empty()
}

fn is_word(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    text.len() <= MAX_WORD && text.bytes().all(is_part)
}

fn is_time(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_digit() || b":-+.TZ ".contains(&byte);
    text.len() <= MAX_WORD && text.bytes().all(is_part)
}
