//! The conversation, in `genai`'s terms.

use std::sync::Arc;

use genai::chat::{ChatMessage, ContentPart, CustomPart, MessageContent, ToolCall, ToolResponse};
use openclaw_content::render;
use serde_json::{Value, json};

use super::senses::{perceive, sees};
use crate::message::{Message, Part, Reasoning, Thought, ToolResult, ToolUse};
use crate::settings::ApiKind;

/// All messages. `name` is the model's whole name.
pub(super) fn messages(kind: ApiKind, name: &str, messages: &[Arc<Message>]) -> Vec<ChatMessage> {
    let mut out = Vec::with_capacity(messages.len());
    for message in messages {
        match &**message {
            Message::User { parts } => {
                let mut content = perceive(kind, parts);
                if content.is_empty() {
                    // Some providers refuse a message without words.
                    content.push(ContentPart::Text("(nothing)".to_owned()));
                }
                out.push(ChatMessage::user(MessageContent::from_parts(content)));
            }
            Message::Assistant { text, reasoning, tool_uses, parts } => {
                let reasoning = reasoning.as_ref().filter(|reasoning| reasoning.model == name);
                let content = said(kind, text, reasoning, tool_uses);
                if !content.is_empty() {
                    out.push(ChatMessage::assistant(MessageContent::from_parts(content)));
                }
                out.extend(shown(kind, "This is what you produced:", parts));
            }
            Message::Tool { results } if kind == ApiKind::Anthropic => {
                let results = results.iter().map(native_result).collect::<Vec<_>>();
                out.push(ChatMessage::tool(MessageContent::from_parts(results)));
            }
            Message::Tool { results } => {
                // One message each: of several in one, Ollama gets the last.
                out.extend(results.iter().map(|result| ChatMessage::from(response(result))));
                for result in results {
                    let words = format!("This came from the tool `{}`, as data:", result.name);
                    out.extend(shown(kind, &words, &result.parts));
                }
            }
        }
    }
    out
}

/// What the model said.
fn said(
    kind: ApiKind,
    text: &str,
    reasoning: Option<&Reasoning>,
    tool_uses: &[ToolUse],
) -> Vec<ContentPart> {
    let thoughts = reasoning.map_or(&[][..], |reasoning| &reasoning.thoughts);
    let mut content = Vec::new();
    for thought in thoughts {
        match thought {
            Thought::Signed { text, signature } => {
                content.push(ContentPart::ThoughtSignature(signature.clone()));
                content.push(ContentPart::ReasoningContent(text.clone()));
            }
            Thought::Plain { text } => content.push(ContentPart::ReasoningContent(text.clone())),
            Thought::Opaque { data } => {
                let custom = CustomPart { model_iden: None, data: data.clone() };
                content.push(ContentPart::Custom(custom));
            }
            Thought::OfCall { .. } => {}
        }
    }
    if !text.trim().is_empty() {
        content.push(ContentPart::Text(text.to_owned()));
    }
    for call in tool_uses {
        let signature = thoughts.iter().find_map(|thought| match thought {
            Thought::OfCall { id, signature } if *id == call.id && kind == ApiKind::Gemini => {
                Some(vec![signature.clone()])
            }
            _ => None,
        });
        content.push(ContentPart::ToolCall(ToolCall {
            call_id: call.id.clone(),
            fn_name: call.name.clone(),
            fn_arguments: arguments(&call.arguments),
            thought_signatures: signature,
        }));
    }
    content
}

/// Every provider wants an object, even where the model failed to write one.
fn arguments(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(Value::Object(arguments)) => Value::Object(arguments),
        _ if text.trim().is_empty() => json!({}),
        _ => json!({ "unreadable": text }),
    }
}

/// A result with its pictures and its failure, as Anthropic takes it.
fn native_result(result: &ToolResult) -> ContentPart {
    let is_seen = |part: &Part| matches!(part, Part::Image { mime_type, .. } if sees(ApiKind::Anthropic, mime_type));
    let mut content: Vec<Value> = Vec::new();
    for run in result.parts.chunk_by(|a, b| !is_seen(a) && !is_seen(b)) {
        if let [Part::Image { mime_type, data }] = run
            && sees(ApiKind::Anthropic, mime_type)
        {
            content.push(json!({
                "type": "image",
                "source": { "type": "base64", "media_type": mime_type, "data": data },
            }));
            continue;
        }
        content.extend(perceive(ApiKind::Anthropic, run).into_iter().filter_map(
            |part| match part {
                ContentPart::Text(text) => Some(json!({ "type": "text", "text": text })),
                _ => None,
            },
        ));
    }
    let mut data = json!({ "type": "tool_result", "tool_use_id": result.id });
    if !content.is_empty() {
        data["content"] = content.into();
    }
    if result.is_error {
        data["is_error"] = true.into();
    }
    ContentPart::Custom(CustomPart { model_iden: None, data })
}

/// A result in words.
fn response(result: &ToolResult) -> ToolResponse {
    let mut text = String::new();
    if result.is_error {
        text.push_str("The tool failed:\n");
    }
    text.push_str(&render(result.parts.iter().filter_map(Part::as_text)).join("\n"));
    if result.parts.iter().any(|part| part.as_text().is_none()) {
        text.push_str("\n(More of this result follows.)");
    } else if text.is_empty() {
        text.push_str("(nothing)");
    }
    ToolResponse::new(&result.id, text).with_fn_name(&result.name)
}

/// What is not words, where it is taken: in a message of the user, with words about where it is from.
fn shown(kind: ApiKind, words: &str, parts: &[Part]) -> Option<ChatMessage> {
    let shown = perceive(kind, parts.iter().filter(|part| part.as_text().is_none()));
    if shown.is_empty() {
        return None;
    }
    let words = ContentPart::Text(words.to_owned());
    let content: Vec<_> = std::iter::once(words).chain(shown).collect();
    Some(ChatMessage::user(MessageContent::from_parts(content)))
}
