//! Anthropic's Messages.

use serde_json::{Value, json};

use super::draft::{Draft, StreamStep};
use super::media::{ProviderPart, only_text, to_provider_parts};
use super::turns::{ProviderTurn, arguments, system};
use super::{Outgoing, number, set, text};
use crate::message::{Thought, ToolResult};
use crate::model::{ToolOffer, Usage};
use crate::settings::ApiKind;

/// The version of the API.
pub(super) const VERSION: &str = "2023-06-01";

/// Output limits by model name; the first match counts. `max_tokens` is a required field.
const MAX_OUTPUT: [(&str, u32); 13] = [
    ("fable", 128_000),
    ("mythos", 128_000),
    ("opus-4-5", 64_000),
    ("opus-4-6", 64_000),
    ("opus-4-7", 64_000),
    ("opus-4-8", 128_000),
    ("opus-4", 32_000),
    ("opus-5", 128_000),
    ("haiku-5", 128_000),
    ("claude-3-5", 8_192),
    ("claude-opus-3", 4_096),
    ("3-opus", 4_096),
    ("3-haiku", 4_096),
];
const USUAL_MAX_OUTPUT: u32 = 64_000;

/// The body of a request.
pub(super) fn body(out: &Outgoing<'_>) -> Value {
    let request = out.request;
    let known = MAX_OUTPUT.iter().find(|(family, _)| out.model.contains(family));
    let max_tokens = known.map_or(USUAL_MAX_OUTPUT, |(_, size)| *size);
    let mut messages: Vec<Value> = out.turns.iter().filter_map(message).collect();
    if let Some(last) = messages.last_mut() {
        mark(&mut last["content"]);
    }
    let mut body = json!({
        "model": out.model,
        "stream": true,
        "max_tokens": request.max_output_tokens.unwrap_or(max_tokens),
    });
    set(&mut body, "system", system(request));
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(|offer| tool(offer)).collect();
    }
    if out.must_use_tool() {
        body["tool_choice"] = json!({ "type": "any" });
    }
    body["messages"] = messages.into();
    set(&mut body, "temperature", request.temperature);
    if !request.stop_sequences.is_empty() {
        body["stop_sequences"] = json!(request.stop_sequences);
    }
    body
}

fn tool(tool: &ToolOffer) -> Value {
    json!({ "name": tool.name, "description": tool.description, "input_schema": *tool.schema })
}

/// Marks the end of the prefix that the provider is to cache.
fn mark(content: &mut Value) {
    if let Value::String(words) = content {
        *content = json!([{ "type": "text", "text": words }]);
    }
    let last = content.as_array_mut().and_then(|blocks| blocks.last_mut());
    if let Some(Value::Object(block)) = last {
        block.insert("cache_control".to_owned(), json!({ "type": "ephemeral" }));
    }
}

fn message(turn: &ProviderTurn<'_>) -> Option<Value> {
    match turn {
        ProviderTurn::User(pieces) => {
            let words = only_text(pieces).map(Value::from);
            let content = words.unwrap_or_else(|| pieces.iter().filter_map(block).collect());
            Some(json!({ "role": "user", "content": content }))
        }
        ProviderTurn::Assistant { thoughts: [], text, calls: [] } => {
            (!text.is_empty()).then(|| json!({ "role": "assistant", "content": text }))
        }
        ProviderTurn::Assistant { thoughts, text, calls } => {
            let mut content: Vec<Value> = thoughts.iter().filter_map(thought).collect();
            if !text.is_empty() {
                content.push(json!({ "type": "text", "text": text }));
            }
            content.extend(calls.iter().map(|call| {
                let input = arguments(call);
                json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input })
            }));
            (!content.is_empty()).then(|| json!({ "role": "assistant", "content": content }))
        }
        ProviderTurn::Results(results) => {
            let results: Vec<_> = results.iter().map(result).collect();
            Some(json!({ "role": "user", "content": results }))
        }
    }
}

fn thought(thought: &Thought) -> Option<Value> {
    match thought {
        Thought::Signed { text, signature } => {
            Some(json!({ "type": "thinking", "thinking": text, "signature": signature }))
        }
        Thought::Opaque { data } => Some(data.clone()),
        Thought::Plain { .. } | Thought::OfCall { .. } => None,
    }
}

/// A tool result. Unlike in other formats, pictures and the error flag are part of it.
fn result(result: &ToolResult) -> Value {
    let content = to_provider_parts(ApiKind::Anthropic, &result.parts);
    let content: Vec<_> = content.iter().filter_map(block).collect();
    let mut data = json!({ "type": "tool_result", "tool_use_id": result.id });
    if !content.is_empty() {
        data["content"] = content.into();
    }
    if result.is_error {
        data["is_error"] = true.into();
    }
    data
}

fn block(piece: &ProviderPart<'_>) -> Option<Value> {
    match piece {
        ProviderPart::Text(text) => Some(json!({ "type": "text", "text": text })),
        ProviderPart::Image(mime_type, data) => {
            let source = json!({ "type": "base64", "media_type": mime_type, "data": data });
            Some(json!({ "type": "image", "source": source }))
        }
        ProviderPart::File(mime_type, name, data) => {
            let source = json!({ "type": "base64", "media_type": mime_type, "data": data });
            Some(json!({ "type": "document", "title": name, "source": source }))
        }
        ProviderPart::Audio(..) => None,
    }
}

/// Reads an event of the stream.
pub(super) fn read(event: &Value, draft: &mut Draft) -> StreamStep {
    let at = event["index"].as_u64();
    match text(event, "/type") {
        "message_start" => count(&event["message"]["usage"], draft),
        "content_block_start" => {
            let block = &event["content_block"];
            match text(block, "/type") {
                "text" => draft.text(text(block, "/text")),
                "thinking" => {
                    draft
                        .thought(Thought::Signed { text: String::new(), signature: String::new() });
                    think(text(block, "/thinking"), draft);
                    draft.more_signature(text(block, "/signature"));
                }
                "redacted_thinking" => draft.thought(Thought::Opaque { data: block.clone() }),
                "tool_use" => {
                    draft.calls.fragment(
                        at,
                        text(block, "/id"),
                        text(block, "/name"),
                        &Value::Null,
                    );
                }
                _ => {}
            }
        }
        "content_block_delta" => match text(event, "/delta/type") {
            "text_delta" => draft.text(text(event, "/delta/text")),
            "thinking_delta" => think(text(event, "/delta/thinking"), draft),
            "signature_delta" => draft.more_signature(text(event, "/delta/signature")),
            "input_json_delta" => draft.calls.more(at, &event["delta"]["partial_json"]),
            _ => {}
        },
        "message_delta" => {
            count(&event["usage"], draft);
            let reason = event.pointer("/delta/stop_reason").and_then(Value::as_str);
            draft.reason = reason.map(str::to_owned).or(draft.reason.take());
        }
        "message_stop" => return StreamStep::Over,
        "error" => return StreamStep::Failed(event.clone()),
        _ => {}
    }
    StreamStep::More
}

fn think(words: &str, draft: &mut Draft) {
    draft.more_thought(words);
    draft.thinking(words);
}

/// Updates the token counts. `input_tokens` excludes what was read from the cache and written to it. The
/// input is reported in `message_start` and the output in `message_delta`; some servers report both there.
fn count(usage: &Value, draft: &mut Draft) {
    let cached = number(usage, "/cache_read_input_tokens");
    let written = number(usage, "/cache_creation_input_tokens");
    let input = usage["input_tokens"].as_u64();
    let output = usage["output_tokens"].as_u64();
    if input.is_none() && output.is_none() && cached + written == 0 {
        return;
    }
    let known = draft.usage.get_or_insert(Usage::default());
    if let Some(input) = input {
        known.input_tokens = input.saturating_add(cached).saturating_add(written);
    }
    known.output_tokens = output.unwrap_or(known.output_tokens);
    if cached + written > 0 {
        known.cached_tokens = cached;
    }
}
