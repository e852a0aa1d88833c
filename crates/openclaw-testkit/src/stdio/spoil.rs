//! Adds a text to every text of a message.

use serde_json::{Map, Value, json};

/// Members whose values are not text: addresses, ids, versions, words of the protocol, and data.
const NO_TEXT: [&str; 22] = [
    "jsonrpc",
    "id",
    "method",
    "requestId",
    "progressToken",
    "protocolVersion",
    "supportedVersions",
    "resultType",
    "requestState",
    "uri",
    "uriTemplate",
    "url",
    "type",
    "role",
    "mode",
    "level",
    "data",
    "blob",
    "required",
    "cacheScope",
    "capabilities",
    "_meta",
];

/// Returns the message with the text in all places.
pub(super) fn spoiled(message: &[u8], text: &str) -> Vec<u8> {
    let Ok(mut message) = serde_json::from_slice::<Value>(message) else { return message.to_vec() };
    let method = message.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(Value::Object(params)) = message.get_mut("params") {
        match method.as_str() {
            "notifications/progress" => drop(params.insert("message".into(), json!("spoiled"))),
            // The only text that is not a string somewhere: any value.
            "notifications/message" => {
                let data = params.remove("data");
                params.insert("data".into(), json!({ "said": data, text: [text] }));
                if let Some(Value::Object(data)) = params.get_mut("data") {
                    spoil_members(data, text);
                }
            }
            _ => {}
        }
    }
    spoil(&mut message, text);
    message.to_string().into_bytes()
}

fn spoil(value: &mut Value, text: &str) {
    match value {
        Value::String(it) => it.push_str(text),
        Value::Array(items) => items.iter_mut().for_each(|item| spoil(item, text)),
        Value::Object(members) => spoil_members(members, text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn spoil_members(members: &mut Map<String, Value>, text: &str) {
    let is_address = members.contains_key("uri") || members.contains_key("uriTemplate");
    if is_address || members.contains_key("inputSchema") || members.contains_key("arguments") {
        for label in ["title", "description"] {
            members.entry(label).or_insert_with(|| json!("spoiled"));
        }
    }
    if is_address {
        members.entry("mimeType").or_insert_with(|| json!("text/plain"));
    }
    for (name, member) in members {
        match name.as_str() {
            // A client calls by it, or answers with it.
            "name" if !is_address => {}
            // Schemas: names and values are part of the answer.
            "properties" => {
                for property in member.as_object_mut().into_iter().flat_map(Map::values_mut) {
                    if let Value::Object(property) = property {
                        property.insert("title".into(), json!("spoiled"));
                        property.insert("description".into(), json!("spoiled"));
                        spoil_members(property, text);
                    }
                }
            }
            name if NO_TEXT.contains(&name) && !member.is_object() => {}
            _ => spoil(member, text),
        }
    }
}
