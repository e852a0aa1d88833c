//! A conversation as models know it. It is kept as JSON: names here are a file format.

use openclaw_content::Text;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::stored::StoredMessage;

/// A piece of a message.
///
/// Words have an [origin](openclaw_content::Origin), and there is no way around that:
///
/// ```compile_fail
/// # use openclaw_models::Part;
/// Part::Text("what a server says".to_owned());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Part {
    /// Words.
    Text(Text),
    /// A picture.
    Image {
        /// What kind of picture: `image/png`.
        mime_type: String,
        /// Its bytes in base64.
        data: String,
    },
    /// A recording.
    Audio {
        /// What kind of recording: `audio/wav`.
        mime_type: String,
        /// Its bytes in base64.
        data: String,
    },
}

impl Part {
    /// Words of this program.
    pub fn ours(text: impl Into<String>) -> Self {
        Self::Text(Text::ours(text))
    }

    /// The words, if these are words.
    pub fn as_text(&self) -> Option<&Text> {
        match self {
            Self::Text(text) => Some(text),
            Self::Image { .. } | Self::Audio { .. } => None,
        }
    }
}

/// A call that a model wants made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolUse {
    /// What tells it from all other calls of the conversation.
    pub id: String,
    /// The tool's name, as it was offered. A model may make one up.
    pub name: String,
    /// The arguments as the model wrote them: JSON, if it kept to it.
    pub arguments: String,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// The call's id.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// What the model is told.
    pub parts: Vec<Part>,
    /// Whether the call failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// What a provider wants to see again with the next request, or it refuses to go on. To everybody else
/// it means nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reasoning {
    /// The model that thought so. No other is shown it: signatures hold for one model.
    pub model: String,
    /// The thoughts, in their order.
    pub thoughts: Vec<Thought>,
}

/// A piece of [`Reasoning`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Thought {
    /// Thinking in plain words.
    Plain {
        /// The words.
        text: String,
    },
    /// Thinking that its provider has signed.
    Signed {
        /// The words.
        text: String,
        /// The signature over them.
        signature: String,
    },
    /// A signature that belongs to a call.
    OfCall {
        /// The call's id.
        id: String,
        /// The signature.
        signature: String,
    },
    /// Something that only its provider can read.
    Opaque {
        /// What it sent.
        data: Value,
    },
}

/// A turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[serde(from = "StoredMessage")]
pub enum Message {
    /// What a person says.
    User {
        /// Words, pictures, recordings.
        parts: Vec<Part>,
    },
    /// What the model says.
    Assistant {
        /// Its words.
        #[serde(skip_serializing_if = "String::is_empty")]
        text: String,
        /// What its provider wants to see again.
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning: Option<Reasoning>,
        /// The calls that it wants made.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_uses: Vec<ToolUse>,
        /// What it produced besides words.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        parts: Vec<Part>,
    },
    /// What came of the calls.
    Tool {
        /// A result for every call.
        results: Vec<ToolResult>,
    },
}

impl Message {
    /// Words of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User { parts: vec![Part::Text(Text::user(text))] }
    }

    /// Words of the model.
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
    fn the_stored_form_stays_as_it_is() {
        let source = Source::mcp_tool("calc", "add");
        let outside = Text::outside(Untrusted::new("no".to_owned()), source).unwrap();
        let boundary =
            serde_json::to_value(&outside).unwrap()["origin"]["outside"]["boundary"].clone();
        let conversation = vec![
            Message::User {
                parts: vec![
                    Part::Text(Text::user("hello")),
                    Part::Image { mime_type: "image/png".into(), data: "AAAA".into() },
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
