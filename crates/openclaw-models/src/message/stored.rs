//! Reads stored messages, including those of earlier versions, which stored no origins.

use openclaw_content::{StoredText, Unlabelled};
use serde::Deserialize;

use super::{Message, Part, Reasoning, ToolResult, ToolUse};

/// A stored message.
#[derive(Deserialize)]
#[serde(tag = "role", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum StoredMessage {
    User {
        parts: Vec<StoredPart>,
    },
    Assistant {
        #[serde(default)]
        text: String,
        #[serde(default)]
        reasoning: Option<Reasoning>,
        #[serde(default)]
        tool_uses: Vec<ToolUse>,
        #[serde(default)]
        parts: Vec<StoredPart>,
    },
    Tool {
        results: Vec<StoredResult>,
    },
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum StoredPart {
    Text(StoredText),
    Image { mime_type: String, data: String },
    Audio { mime_type: String, data: String },
    File { mime_type: String, name: String, data: String, text: Option<StoredText> },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredResult {
    id: String,
    name: String,
    parts: Vec<StoredPart>,
    #[serde(default)]
    is_error: bool,
}

impl From<StoredMessage> for Message {
    fn from(stored: StoredMessage) -> Self {
        match stored {
            StoredMessage::User { parts } => Self::User { parts: settle(parts, Unlabelled::User) },
            StoredMessage::Assistant { text, reasoning, tool_uses, parts } => {
                let parts = settle(parts, Unlabelled::Ours);
                Self::Assistant { text, reasoning, tool_uses, parts }
            }
            StoredMessage::Tool { results } => {
                let settled =
                    results.into_iter().map(|StoredResult { id, name, parts, is_error }| {
                        ToolResult { id, name, parts: settle(parts, Unlabelled::Ours), is_error }
                    });
                Self::Tool { results: settled.collect() }
            }
        }
    }
}

fn settle(parts: Vec<StoredPart>, unlabelled: Unlabelled) -> Vec<Part> {
    let settle = |part: StoredPart| match part {
        StoredPart::Text(text) => text.settle(unlabelled).into_iter().map(Part::Text).collect(),
        StoredPart::Image { mime_type, data } => vec![Part::Image { mime_type, data }],
        StoredPart::Audio { mime_type, data } => vec![Part::Audio { mime_type, data }],
        StoredPart::File { mime_type, name, data, text } => {
            let text = text.and_then(|text| text.settle(unlabelled).into_iter().next());
            vec![Part::File { mime_type, name, data, text }]
        }
    };
    parts.into_iter().flat_map(settle).collect()
}

#[cfg(test)]
mod tests {
    use openclaw_content::{Boundary, Source, Text};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_without_origins_is_settled_by_its_role_and_its_boundaries() {
        let (boundary, source) =
            (Boundary::from_random_bytes([7; 8]), Source::mcp_tool("demo", "echo"));
        let wrapped = format!("{}hi{}", boundary.header(&source), boundary.footer());
        let user = json!({"role": "user", "parts": [{"type": "text", "text": "hello"}]});
        let user: Message = serde_json::from_value(user).unwrap();
        assert_eq!(user, Message::user("hello"));
        let tool = json!({"role": "tool", "results": [{"id": "1", "name": "echo", "parts": [
            {"type": "text", "text": wrapped},
            {"type": "text", "text": "The rest is left out."},
        ]}]});
        let Message::Tool { results } = serde_json::from_value(tool).unwrap() else {
            panic!("a tool's message")
        };
        let [Part::Text(theirs), Part::Text(ours)] = &results[0].parts[..] else {
            panic!("two texts")
        };
        assert_eq!((theirs.expose(), theirs.source()), ("hi", Some(&source)));
        assert_eq!(ours, &Text::ours("The rest is left out."));
    }
}
