//! Checks whether the parts of a response already contain its structured content.
//!
//! Servers are asked to repeat their structured content as text, for older clients; some repeat the
//! parts in their structured content. Showing both would cost twice.

use serde_json::{Map, Value};

use super::parts::ContentPart;
use super::repeats::Repeats;
use super::text::RawString;

/// Larger content is compared byte by byte, not by value.
const MAX_COMPARED: usize = 256 * 1024;
/// The types of parts that are shown, passed on or described.
const KNOWN: [&str; 5] = ["text", "image", "audio", "resource", "resource_link"];
/// Members of a part that are never shown.
const UNSEEN: [&str; 2] = ["annotations", "_meta"];

/// The main members of a part: an object with none of them is something else.
const MAIN: [&str; 5] = ["text", "data", "blob", "uri", "resource"];

/// The content of a response besides its structured content.
pub(super) struct ShownContent<'s, 'a> {
    /// Its texts, including those of embedded resources.
    pub(super) texts: &'s [RawString<'a>],
    /// All its parts; `None` for one that cannot be parsed.
    pub(super) parts: &'s [Option<ContentPart<'a>>],
    /// The binary data of its parts.
    pub(super) repeats: &'s Repeats<'a>,
}

impl ShownContent<'_, '_> {
    /// Whether it contains the structured content (`short` is the same without repeated data): as a
    /// whole, as its only member (servers wrap values that are not objects), or item by item as the
    /// array in that member.
    pub(super) fn covers(&self, structured: &str, short: &str) -> bool {
        if let [text] = self.texts
            && tokens(&text.decode()).eq(tokens(structured))
        {
            return true;
        }
        let weight = self.texts.iter().map(|text| text.max_len()).sum::<usize>();
        if short.len().max(weight) > MAX_COMPARED {
            return false;
        }
        let Ok(structured) = serde_json::from_str::<Value>(short) else { return false };
        let inner = structured.as_object().filter(|members| members.len() == 1);
        let inner = inner.and_then(|members| members.values().next());
        let is_said = |value: &Value| match (self.texts, self.parts) {
            ([text], _) if says(*text, value) => true,
            (_, [Some(part)]) => self.is_in(part, value),
            _ => false,
        };
        if is_said(&structured) || inner.is_some_and(is_said) {
            return true;
        }
        let Some(items) = inner.and_then(Value::as_array) else { return false };
        let texts = self.texts.iter();
        let parts = self.parts.iter();
        let is_each_in = |(part, item): (&Option<ContentPart<'_>>, _)| {
            part.as_ref().is_some_and(|part| self.is_in(part, item))
        };
        items.len() == texts.len() && texts.zip(items).all(|(text, item)| says(*text, item))
            || items.len() == parts.len() && parts.zip(items).all(is_each_in)
    }

    /// Whether a part contains everything in the value.
    fn is_in(&self, part: &ContentPart<'_>, value: &Value) -> bool {
        let is_known = part.kind().is_some_and(|kind| KNOWN.contains(&&*kind.decode()));
        is_known
            && match value {
                Value::Object(members) => {
                    MAIN.iter().any(|name| members.contains_key(*name))
                        && self.are_in(part, members)
                }
                value => {
                    part.text().is_some_and(|text| says(text, value))
                        || self.is_token(part.data(), value)
                        || self.is_token(part.resource().and_then(|it| it.blob()), value)
                }
            }
    }

    fn are_in(&self, part: &ContentPart<'_>, members: &Map<String, Value>) -> bool {
        let is_seen = |name: &str, value: &Value| !value.is_null() && !UNSEEN.contains(&name);
        members.iter().filter(|(name, value)| is_seen(name, value)).all(|(name, value)| {
            match (name.as_str(), value) {
                ("resource", Value::Object(inner)) => {
                    part.resource().is_some_and(|part| self.are_in(&part, inner))
                }
                (name, value) => self.is_token(part.member(name), value),
            }
        })
    }

    /// Whether a text of a part equals the value, or the replacement for it.
    fn is_token(&self, token: Option<RawString<'_>>, value: &Value) -> bool {
        let (Some(token), Some(value)) = (token, value.as_str()) else { return false };
        let token = token.decode();
        *token == *value || self.repeats.named(&token).is_some_and(|name| name == *value)
    }
}

fn says(text: RawString<'_>, value: &Value) -> bool {
    let text = text.decode();
    match value {
        Value::String(value) if *value == text => true,
        value => serde_json::from_str::<Value>(&text).is_ok_and(|text| text == *value),
    }
}

/// The bytes of JSON without whitespace between tokens.
fn tokens(json: &str) -> impl Iterator<Item = u8> {
    let mut is_string = false;
    let mut is_escaped = false;
    json.bytes().filter(move |byte| {
        if is_string {
            is_string = *byte != b'"' || is_escaped;
            is_escaped = *byte == b'\\' && !is_escaped;
            return true;
        }
        is_string = *byte == b'"';
        !byte.is_ascii_whitespace()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(texts: &[&str], structured: &str) -> bool {
        let part = |text: &&str| json!({ "type": "text", "text": text });
        said_by(&texts.iter().map(part).collect::<Vec<_>>(), structured)
    }

    fn said_by(parts: &[Value], structured: &str) -> bool {
        let parts: Vec<String> = parts.iter().map(Value::to_string).collect();
        let parts: Vec<Option<ContentPart<'_>>> =
            parts.iter().map(|part| serde_json::from_str(part).ok()).collect();
        let texts: Vec<RawString<'_>> =
            parts.iter().flatten().filter_map(ContentPart::text).collect();
        let repeats = Repeats::find(&parts);
        let said = ShownContent { texts: &texts, parts: &parts, repeats: &repeats };
        said.covers(structured, &repeats.taken_out(structured))
    }

    #[test]
    fn equal_content_is_recognized_in_any_formatting() {
        let structured = r#"{"a":[1,2],"b":"x \" y"}"#;
        for text in [
            structured,
            "{\n  \"a\": [1, 2],\n  \"b\": \"x \\\" y\"\n}",
            r#"{"b":"x \u0022 y","a":[1,2]}"#,
        ] {
            assert!(said(&[text], structured), "{text}");
        }
        assert!(said(&["plain"], r#"{"result":"plain"}"#));
        assert!(said(&["[1]"], r#"{"result":[1]}"#));
        assert!(said(&["one", "2"], r#"{"result":["one",2]}"#));
    }

    #[test]
    fn different_content_is_not_covered() {
        for (texts, structured) in [
            (&["Found 2 files."][..], r#"{"files":["a","b"]}"#),
            (&[], r#"{"a":1}"#),
            (&["{\"a\":2}"], r#"{"a":1}"#),
            (&["{\"a\":\"b c\"}"], r#"{"a":"bc"}"#),
            (&["one"], r#"{"result":["one","two"]}"#),
        ] {
            assert!(!said(texts, structured), "{structured}");
        }
    }

    #[test]
    fn repeated_parts_of_every_kind_are_covered() {
        let data = "iVBORw0KGgo".repeat(50_000);
        let image = json!({ "type": "image", "data": data, "mimeType": "image/png" });
        let zip = json!({ "uri": "a:b", "mimeType": "application/zip", "blob": data });
        let zip = json!({ "type": "resource", "resource": zip });
        let text = json!({ "type": "text", "text": "Here." });
        for (parts, structured) in [
            (vec![&image], json!({ "content": [image] })),
            (vec![&image], image.clone()),
            (vec![&image], json!({ "result": image })),
            (vec![&image], json!({ "image": data })),
            (vec![&zip], json!({ "file": data })),
            (vec![&image], json!({ "mimeType": "image/png", "data": data, "_meta": { "a": 1 } })),
            (vec![&text, &image, &zip], json!({ "content": [text, image, zip] })),
            (vec![&text, &image], json!({ "result": ["Here.", image] })),
        ] {
            let parts: Vec<Value> = parts.into_iter().cloned().collect();
            assert!(said_by(&parts, &structured.to_string()));
        }
    }

    #[test]
    fn structured_content_with_more_than_the_parts_is_not_covered() {
        let image = json!({ "type": "image", "data": "AAAA", "mimeType": "image/png" });
        let video = json!({ "type": "video", "data": "AAAA" });
        for (part, structured) in [
            (&image, json!({ "content": [image], "width": 3 })),
            (&image, json!({ "content": [image, image] })),
            (&image, json!({ "type": "image", "data": "AAAA", "alt": "a cat" })),
            (&image, json!({ "data": "AAAB" })),
            (&image, json!({ "type": "image" })),
            (&video, json!({ "content": [video] })),
        ] {
            assert!(!said_by(std::slice::from_ref(part), &structured.to_string()), "{structured}");
        }
    }
}
