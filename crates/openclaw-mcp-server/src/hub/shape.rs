//! The members of listed entries that are for programs and users: icons, annotations, sizes and
//! `_meta`. What does not have the form of the protocol is removed, or a client would reject the list.

use openclaw_mcp_client::listing::app;
use serde_json::{Map, Value};

/// Maximum number of icons of an entry, and size of the address of one: most contain the picture.
const MAX_ICONS: usize = 16;
const MAX_ICON: usize = 64 * 1024;
/// Maximum length of a word.
const MAX_WORD: usize = 100;
/// Maximum size of `_meta`.
const MAX_META: usize = 64 * 1024;
/// What the address of an icon begins with.
const ICONS: [&str; 3] = ["https://", "http://", "data:image/"];

/// Removes what does not have the form of the protocol from an entry of any list.
pub(super) fn shape(entry: &mut Map<String, Value>) {
    entry.retain(|name, value| match name.as_str() {
        "icons" => keep_icons(value),
        "annotations" => keep_annotations(value),
        "size" => value.is_u64(),
        "_meta" => keep_meta(value),
        // As most servers write it.
        "arguments" => value.as_array().is_none_or(|arguments| !arguments.is_empty()),
        _ => true,
    });
}

fn keep_meta(meta: &mut Value) -> bool {
    let is_small = serde_json::to_string(meta).is_ok_and(|json| json.len() <= MAX_META);
    let Value::Object(members) = meta else { return false };
    app::clean_meta(members);
    is_small && !members.is_empty()
}

fn keep_icons(icons: &mut Value) -> bool {
    let Value::Array(all) = icons else { return false };
    all.retain_mut(keep_icon);
    all.truncate(MAX_ICONS);
    !all.is_empty()
}

fn keep_icon(icon: &mut Value) -> bool {
    let Value::Object(members) = icon else { return false };
    // It was one string in a draft.
    if let Some(size @ Value::String(_)) = members.get_mut("sizes") {
        *size = Value::Array(vec![size.take()]);
    }
    members.retain(|name, value| match name.as_str() {
        "src" => value.as_str().is_some_and(is_icon),
        "mimeType" => value.as_str().is_some_and(is_word),
        "sizes" => value
            .as_array()
            .is_some_and(|sizes| sizes.iter().all(|size| size.as_str().is_some_and(is_word))),
        "theme" => value == "light" || value == "dark",
        _ => false,
    });
    members.contains_key("src")
}

fn is_icon(address: &str) -> bool {
    address.len() <= MAX_ICON
        && address.bytes().all(|byte| byte.is_ascii_graphic())
        && ICONS.iter().any(|start| address.starts_with(start))
}

/// Of tools and of resources: the names differ.
fn keep_annotations(annotations: &mut Value) -> bool {
    let Value::Object(members) = annotations else { return false };
    let is_role = |role: &Value| role == "user" || role == "assistant";
    members.retain(|name, value| match name.as_str() {
        "title" => value.is_string(),
        "readOnlyHint" | "destructiveHint" | "idempotentHint" | "openWorldHint" => {
            value.is_boolean()
        }
        "audience" => value.as_array().is_some_and(|roles| roles.iter().all(is_role)),
        "priority" => value.is_number(),
        "lastModified" => value.as_str().is_some_and(is_word),
        _ => false,
    });
    !members.is_empty()
}

fn is_word(text: &str) -> bool {
    text.len() <= MAX_WORD && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shaped(mut entry: Value) -> Value {
        shape(entry.as_object_mut().unwrap());
        entry
    }

    #[test]
    fn what_has_the_form_of_the_protocol_is_kept() {
        let entry = json!({
            "name": "a", "size": 7,
            "icons": [{ "src": "data:image/png;base64,AA==", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark" }],
            "annotations": { "audience": ["user"], "priority": 0.5, "lastModified": "2026-01-01T00:00:00Z" },
            "_meta": { "ui": { "resourceUri": "ui://a", "visibility": ["app"] }, "x": 1 },
        });
        assert_eq!(shaped(entry.clone()), entry);
        let tool = json!({ "annotations": { "title": "A", "readOnlyHint": true } });
        assert_eq!(shaped(tool.clone()), tool);
    }

    #[test]
    fn what_a_client_would_reject_is_removed() {
        for entry in [
            json!({ "icons": {} }),
            json!({ "icons": [{ "src": 7 }, "x", { "src": "javascript:x" }, { "src": "https://a b" }] }),
            json!({ "icons": [{ "src": format!("data:image/png;base64,{}", "A".repeat(MAX_ICON)) }] }),
            json!({ "annotations": "x" }),
            json!({ "annotations": { "priority": "high", "audience": ["all"], "readOnlyHint": "yes" } }),
            json!({ "size": -1 }),
            json!({ "arguments": [] }),
            json!({ "size": "7" }),
            json!({ "_meta": [] }),
            json!({ "_meta": { "x": "x".repeat(MAX_META) } }),
            json!({ "_meta": { "ui/resourceUri": "https://a" } }),
        ] {
            assert_eq!(shaped(entry.clone()), json!({}), "{entry}");
        }
        let icon = json!({ "icons": [{ "src": "https://a/b.png", "sizes": "48x48", "theme": "red", "x": 1 }] });
        let kept = json!({ "icons": [{ "src": "https://a/b.png", "sizes": ["48x48"] }] });
        assert_eq!(shaped(icon), kept);
    }
}
