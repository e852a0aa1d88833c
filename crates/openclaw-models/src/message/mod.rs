//! The messages of a conversation. They are stored as JSON: names here are a file format.

mod stored;

use openclaw_content::Text;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use stored::StoredMessage;

/// A part of a message.
///
/// Text always has an [origin](openclaw_content::Origin):
///
/// ```compile_fail
/// # use openclaw_models::Part;
/// Part::Text("what a server says".to_owned());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Part {
    /// Text.
    Text(Text),
    /// An image.
    Image {
        /// The MIME type, such as `image/png`.
        mime_type: String,
        /// Its bytes in base64.
        data: String,
    },
    /// An audio recording.
    Audio {
        /// The MIME type, such as `audio/wav`.
        mime_type: String,
        /// Its bytes in base64.
        data: String,
    },
    /// A document or a video.
    File {
        /// The MIME type, such as `application/pdf`.
        mime_type: String,
        /// The file's name.
        name: String,
        /// Its bytes in base64.
        data: String,
        /// Its text, for models that cannot read the file.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<Text>,
    },
}

impl Part {
    /// Text of this program.
    pub fn ours(text: impl Into<String>) -> Self {
        Self::Text(Text::ours(text))
    }

    /// Returns the text, if this is text.
    pub fn as_text(&self) -> Option<&Text> {
        match self {
            Self::Text(text) => Some(text),
            Self::Image { .. } | Self::Audio { .. } | Self::File { .. } => None,
        }
    }
}

/// A tool call that a model requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolUse {
    /// The id, unique within the conversation.
    pub id: String,
    /// The tool's name, as it was offered. A model may invent one.
    pub name: String,
    /// The arguments as the model wrote them: usually, but not always, JSON.
    pub arguments: String,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// The call's id.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The content for the model.
    pub parts: Vec<Part>,
    /// Whether the call failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// Reasoning that a provider requires back with the next request, or it rejects the request. It has no
/// meaning to any other provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reasoning {
    /// The model that produced it. It is sent to no other model: signatures are valid for one model.
    pub model: String,
    /// The thoughts, in order.
    pub thoughts: Vec<Thought>,
}

/// A part of [`Reasoning`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Thought {
    /// Thinking in plain text.
    Plain {
        /// The text.
        text: String,
    },
    /// Thinking that its provider has signed.
    Signed {
        /// The text.
        text: String,
        /// The signature over the text.
        signature: String,
    },
    /// The signature of a call.
    OfCall {
        /// The call's id.
        id: String,
        /// The signature.
        signature: String,
    },
    /// Data that only its provider can read.
    Opaque {
        /// The data.
        data: Value,
    },
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[serde(from = "StoredMessage")]
pub enum Message {
    /// A message of the user.
    User {
        /// Text, images, audio.
        parts: Vec<Part>,
    },
    /// An answer of the model.
    Assistant {
        /// The text.
        #[serde(skip_serializing_if = "String::is_empty")]
        text: String,
        /// Reasoning that the provider requires back.
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning: Option<Reasoning>,
        /// The tool calls that it requests.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_uses: Vec<ToolUse>,
        /// Output other than text.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        parts: Vec<Part>,
    },
    /// The results of tool calls.
    Tool {
        /// A result for every call.
        results: Vec<ToolResult>,
    },
}

impl Message {
    /// Text of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User { parts: vec![Part::Text(Text::user(text))] }
    }

    /// Text of the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::Assistant {
            text: text.into(),
            reasoning: None,
            tool_uses: Vec::new(),
            parts: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use openclaw_content::{Source, Untrusted};
    use serde_json::json;

    use super::*;

    #[test]
    fn the_stored_form_is_stable() {
        let source = Source::mcp_tool("calc", "add");
        let outside = Text::outside(Untrusted::new("no".to_owned()), source).unwrap();
        let boundary =
            serde_json::to_value(&outside).unwrap()["origin"]["outside"]["boundary"].clone();
        let conversation = vec![
            Message::User {
                parts: vec![
                    Part::Text(Text::user("hello")),
                    Part::Image { mime_type: "image/png".into(), data: "AAAA".into() },
                    Part::File {
                        mime_type: "application/pdf".into(),
                        name: "a.pdf".into(),
                        data: "AAAA".into(),
                        text: Some(Text::user("page")),
                    },
                ],
            },
            Message::Assistant {
                text: "hm".into(),
                reasoning: Some(Reasoning {
                    model: "a/b".into(),
                    thoughts: vec![Thought::OfCall { id: "1".into(), signature: "s".into() }],
                }),
                tool_uses: vec![ToolUse {
                    id: "1".into(),
                    name: "add".into(),
                    arguments: "{\"a\": 1".into(),
                }],
                parts: Vec::new(),
            },
            Message::Tool {
                results: vec![ToolResult {
                    id: "1".into(),
                    name: "add".into(),
                    parts: vec![Part::ours("It failed:"), Part::Text(outside)],
                    is_error: true,
                }],
            },
            Message::assistant("done"),
        ];
        let stored = json!([
            {"role": "user", "parts": [
                {"type": "text", "text": "hello", "origin": "user"},
                {"type": "image", "mimeType": "image/png", "data": "AAAA"},
                {"type": "file", "mimeType": "application/pdf", "name": "a.pdf", "data": "AAAA",
                 "text": {"text": "page", "origin": "user"}},
            ]},
            {
                "role": "assistant",
                "text": "hm",
                "reasoning": {"model": "a/b", "thoughts": [
                    {"type": "ofCall", "id": "1", "signature": "s"},
                ]},
                "toolUses": [{"id": "1", "name": "add", "arguments": "{\"a\": 1"}],
            },
            {"role": "tool", "results": [{
                "id": "1",
                "name": "add",
                "parts": [
                    {"type": "text", "text": "It failed:", "origin": "ours"},
                    {"type": "text", "text": "no", "origin": {"outside": {
                        "source": {"kind": "mcp-tool", "server": "calc", "tool": "add"},
                        "boundary": boundary,
                    }}},
                ],
                "isError": true,
            }]},
            {"role": "assistant", "text": "done"},
        ]);
        assert_eq!(serde_json::to_value(&conversation).unwrap(), stored);
        assert_eq!(serde_json::from_value::<Vec<Message>>(stored).unwrap(), conversation);
    }
}
