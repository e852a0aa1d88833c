//! The conversation as a list of turns, before a wire format writes them.

use std::sync::Arc;

use openclaw_content::render;
use serde_json::{Map, Value, json};

use super::media::{ProviderPart, to_provider_parts};
use crate::message::{Message, Part, Thought, ToolResult, ToolUse};
use crate::model::ModelRequest;
use crate::settings::ApiKind;

/// A turn of the conversation.
pub(super) enum ProviderTurn<'m> {
    /// A user message; never empty.
    User(Vec<ProviderPart<'m>>),
    /// An answer of the model; every field may be empty.
    Assistant { thoughts: &'m [Thought], text: &'m str, calls: &'m [ToolUse] },
    /// Results, one for each call of the turn before.
    Results(&'m [ToolResult]),
}

/// Returns all turns. `name` is the model's full name: thoughts of other models are omitted.
pub(super) fn turns<'m>(
    kind: ApiKind,
    name: &str,
    messages: &'m [Arc<Message>],
) -> Vec<ProviderTurn<'m>> {
    let mut turns = Vec::with_capacity(messages.len());
    for message in messages {
        match &**message {
            Message::User { parts } => {
                let mut pieces = to_provider_parts(kind, parts);
                if pieces.is_empty() {
                    // Some providers reject an empty message.
                    pieces.push(ProviderPart::Text("(nothing)".to_owned()));
                }
                turns.push(ProviderTurn::User(pieces));
            }
            Message::Assistant { text, reasoning, tool_uses, parts } => {
                let reasoning = reasoning.as_ref().filter(|reasoning| reasoning.model == name);
                let thoughts = reasoning.map_or(&[][..], |reasoning| &reasoning.thoughts);
                let text = if text.trim().is_empty() { "" } else { text };
                turns.push(ProviderTurn::Assistant { thoughts, text, calls: tool_uses });
                turns.extend(shown(kind, "This is what you produced:", parts));
            }
            Message::Tool { results } => {
                turns.push(ProviderTurn::Results(results));
                // Anthropic accepts images as part of the result itself.
                for result in results.iter().filter(|_| kind != ApiKind::Anthropic) {
                    let words = format!("This came from the tool `{}`, as data:", result.name);
                    turns.extend(shown(kind, &words, &result.parts));
                }
            }
        }
    }
    turns
}

/// Returns the system prompt, if there is one.
pub(super) fn system(request: &ModelRequest) -> Option<String> {
    (!request.system.is_empty()).then(|| render(&request.system).join("\n\n"))
}

/// Returns the arguments of a call. Every provider requires an object, even if the model did not
/// write one.
pub(super) fn arguments(call: &ToolUse) -> Value {
    match serde_json::from_str(&call.arguments) {
        Ok(Value::Object(arguments)) => Value::Object(arguments),
        _ if call.arguments.trim().is_empty() => Value::Object(Map::new()),
        _ => json!({ "unreadable": call.arguments }),
    }
}

/// Returns a result as text, for formats whose results have no other form.
pub(super) fn words(result: &ToolResult) -> String {
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
    text
}

/// Returns a user turn with the parts that are not text, for formats that accept them nowhere else;
/// `words` names their source.
fn shown<'m>(kind: ApiKind, words: &str, parts: &'m [Part]) -> Option<ProviderTurn<'m>> {
    let shown = to_provider_parts(kind, parts.iter().filter(|part| part.as_text().is_none()));
    let words = ProviderPart::Text(words.to_owned());
    (!shown.is_empty()).then(|| ProviderTurn::User(std::iter::once(words).chain(shown).collect()))
}
