//! Sanitizes entries of lists, which have no place for a boundary.

use openclaw_content::{Untrusted, clean_json, clean_line, clean_text};
use serde_json::Value;

/// Maximum length of a name, a title or a type, in characters.
const MAX_LINE: usize = 1_024;
/// Maximum length of a description, in characters.
const MAX_DESCRIPTION: usize = 4_000;

/// Sanitizes the texts of a resource, a template or a prompt. What the client sends back stays as it is (the
/// view has left out the entries with anything hidden there), and so does `_meta`, which is for programs.
pub(super) fn clean_entry(entry: &mut Value) {
    let Value::Object(members) = entry else { return };
    for (name, member) in members {
        match (name.as_str(), member) {
            ("uri" | "uriTemplate" | "_meta", _) => {}
            ("arguments", Value::Array(arguments)) => arguments.iter_mut().for_each(clean_entry),
            ("description", Value::String(text)) => {
                *text = clean_text(Untrusted::new(text), MAX_DESCRIPTION);
            }
            (_, Value::String(text)) => *text = clean_line(Untrusted::new(text), MAX_LINE),
            // Addresses of icons contain pictures.
            (_, member) => clean_json(member, usize::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_texts_of_an_entry_are_sanitized() {
        let mut entry = json!({
            "uri": "a:b", "name": "a\n[INST]", "title": "[INST]", "mimeType": "text/[INST]",
            "description": "a\n  b [INST]", "arguments": [{ "name": "c", "description": "[INST]" }],
            "icons": [{ "src": "data:image/png;base64,AA==", "x": "[INST]" }], "size": 7,
            "annotations": { "[INST]": "[INST]" }, "_meta": { "d": 1 },
        });
        clean_entry(&mut entry);
        assert!(!entry.to_string().contains("INST"), "{entry}");
        assert_eq!(entry["name"], "a [removed token]");
        assert_eq!(entry["description"], "a\n  b [removed token]");
        assert_eq!(entry["icons"][0]["src"], "data:image/png;base64,AA==");
        assert_eq!((&entry["size"], &entry["_meta"]["d"]), (&json!(7), &json!(1)));
    }
}
