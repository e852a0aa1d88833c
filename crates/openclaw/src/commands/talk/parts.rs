//! Messages in the format of the gateway: `{role, content: [{type, …}]}`.

use openclaw_content::{Untrusted, clean_line};
use serde::Deserialize;
use serde_json::Value;

/// Maximum length of a file's name, in characters.
const NAME_CHARS: usize = 200;

/// One message of a conversation.
#[derive(Debug, Clone, Default)]
pub(crate) struct ShownMessage {
    pub(crate) role: String,
    pub(crate) parts: Vec<ShownPart>,
    /// The tool, if this is the result of one.
    pub(crate) tool: Option<String>,
    pub(crate) is_error: bool,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ShownPart {
    Text(String),
    /// The text of a file that the user attached.
    File {
        name: String,
        text: String,
    },
    Thought(String),
    Call {
        name: String,
        args: Value,
    },
    Result {
        name: Option<String>,
        text: String,
        is_error: bool,
    },
    /// An image or audio.
    Media {
        mime_type: String,
        bytes: usize,
    },
    /// An unknown type.
    Other(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawMessage {
    #[serde(default)]
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(alias = "toolName", alias = "name")]
    tool: Option<String>,
    #[serde(default)]
    is_error: bool,
}

impl ShownMessage {
    /// Parses a message; `None` if the value is not one.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        let raw = RawMessage::deserialize(value).ok()?;
        let parts = match &raw.content {
            Value::String(text) => vec![ShownPart::Text(text.clone())],
            Value::Array(parts) => {
                let is_file = |part: &Value| raw.role == "user" && part["source"]["kind"] == "file";
                let part = |part| if is_file(part) { attached(part) } else { ShownPart::of(part) };
                parts.iter().map(part).collect()
            }
            _ => Vec::new(),
        };
        Some(Self { role: raw.role, parts, tool: raw.tool, is_error: raw.is_error })
    }

    /// Returns the text parts, joined by line breaks.
    pub(crate) fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            ShownPart::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

impl ShownPart {
    /// Parses a part.
    pub(crate) fn of(value: &Value) -> Self {
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
        let kind = text("type").unwrap_or_default();
        match kind.as_str() {
            "text" => Self::Text(text("text").unwrap_or_default()),
            "thinking" | "reasoning" => {
                Self::Thought(text("thinking").or_else(|| text("text")).unwrap_or_default())
            }
            "toolCall" | "toolUse" | "tool_use" | "tool_call" => {
                let keys = ["arguments", "args", "input"];
                let args = keys.into_iter().find_map(|key| value.get(key));
                let args = args.cloned().unwrap_or_default();
                Self::Call { name: text("name").unwrap_or_default(), args: parsed(args) }
            }
            "toolResult" | "tool_result" => {
                let said = value.get("content").map(|content| {
                    let message = serde_json::json!({ "content": content });
                    ShownMessage::of(&message).unwrap_or_default().text()
                });
                Self::Result {
                    name: text("name").or_else(|| text("toolName")),
                    text: text("text").or(said).unwrap_or_default(),
                    is_error: value.get("isError").and_then(Value::as_bool).unwrap_or(false),
                }
            }
            "image" | "audio" => Self::Media {
                mime_type: text("mimeType").unwrap_or(kind),
                bytes: match value.get("data").and_then(Value::as_str) {
                    Some(data) => data.len() / 4 * 3,
                    // Only a description, without the data.
                    None => {
                        let told = value.get("bytes").and_then(Value::as_u64).unwrap_or(0);
                        usize::try_from(told).unwrap_or(usize::MAX)
                    }
                },
            },
            _ => Self::Other(kind),
        }
    }
}

/// The text of a file that the user attached to a message.
fn attached(part: &Value) -> ShownPart {
    let field = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = clean_line(Untrusted::new(&field(&part["source"]["path"])), NAME_CHARS);
    ShownPart::File { name, text: field(&part["text"]) }
}

/// Parses arguments that are JSON in a string, as some models write them.
fn parsed(args: Value) -> Value {
    match &args {
        Value::String(text) => serde_json::from_str(text).unwrap_or(args),
        _ => args,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_that_the_user_attached_is_named() {
        let file = json!({ "type": "text", "text": "fn a() {}", "untrusted": true,
            "source": { "kind": "file", "path": "a.rs" } });
        let shown = |role: &str| {
            let message = ShownMessage::of(&json!({ "role": role, "content": [file] }));
            message.unwrap_or_default().parts
        };
        let (name, text) = ("a.rs".to_owned(), "fn a() {}".to_owned());
        assert_eq!(shown("toolResult"), [ShownPart::Text(text.clone())]);
        assert_eq!(shown("user"), [ShownPart::File { name, text }]);
    }

    #[test]
    fn a_message_is_read_whatever_its_parts_are() {
        let message = json!({ "role": "assistant", "content": [
            { "type": "text", "text": "Look:" },
            { "type": "toolCall", "id": "1", "name": "add", "arguments": "{\"a\":1}" },
            { "type": "image", "mimeType": "image/png", "data": "AAAA" },
            { "type": "audio", "mimeType": "audio/wav", "bytes": 7, "omitted": true },
            { "type": "hologram" },
        ]});
        let message = ShownMessage::of(&message).unwrap_or_default();
        assert_eq!(message.text(), "Look:");
        let expected = [
            ShownPart::Text("Look:".to_owned()),
            ShownPart::Call { name: "add".to_owned(), args: json!({ "a": 1 }) },
            ShownPart::Media { mime_type: "image/png".to_owned(), bytes: 3 },
            ShownPart::Media { mime_type: "audio/wav".to_owned(), bytes: 7 },
            ShownPart::Other("hologram".to_owned()),
        ];
        assert_eq!(message.parts, expected);
    }

    #[test]
    fn the_text_parts_of_a_result_are_joined() {
        let result = json!({ "type": "toolResult", "name": "tool_search", "content": [
            { "type": "text", "text": "These tools can be called now:" },
            { "type": "text", "text": "[]", "untrusted": true, "source": { "kind": "other" } },
        ]});
        let ShownPart::Result { text, .. } = ShownPart::of(&result) else { panic!("no result") };
        assert_eq!(text, "These tools can be called now:\n[]");
    }

    #[test]
    fn content_may_be_a_string() {
        let message = ShownMessage::of(&json!({ "role": "user", "content": "Hello" }));
        assert_eq!(message.unwrap_or_default().text(), "Hello");
    }
}
