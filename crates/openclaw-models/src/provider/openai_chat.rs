//! `OpenAI`'s Chat Completions and compatible APIs.

use serde_json::{Value, json};

use super::draft::{Draft, StreamStep};
use super::media::{ProviderPart, only_text};
use super::turns::{ProviderTurn, arguments, system, words};
use super::{Outgoing, number, set, text};
use crate::message::{Thought, ToolUse};
use crate::model::{ToolOffer, Usage};

/// Model families that reject `max_tokens` and take `max_completion_tokens`.
const RENAMED: [&str; 5] = ["gpt-5", "gpt-6", "o1", "o3", "o4"];

/// Writes the system prompt as the first message, and adds the messages of each turn.
pub(super) fn messages<'a>(
    out: &'a Outgoing<'_>,
    add: impl Fn(&mut Vec<Value>, &'a ProviderTurn<'_>),
) -> Vec<Value> {
    let mut messages = Vec::with_capacity(out.turns.len() + 1);
    messages.extend(system(out.request).map(|words| json!({ "role": "system", "content": words })));
    out.turns.iter().for_each(|turn| add(&mut messages, turn));
    messages
}

/// The body of a request.
pub(super) fn body(out: &Outgoing<'_>) -> Value {
    let request = out.request;
    let messages = messages(out, |messages, turn| match turn {
        ProviderTurn::User(pieces) => {
            let words = only_text(pieces).map(Value::from);
            let content = words.unwrap_or_else(|| pieces.iter().map(part).collect());
            messages.push(json!({ "role": "user", "content": content }));
        }
        ProviderTurn::Assistant { thoughts, text, calls } => {
            messages.extend(assistant_message(thoughts, text, calls));
        }
        ProviderTurn::Results(results) => messages.extend(results.iter().map(
            |result| json!({ "role": "tool", "tool_call_id": result.id, "content": words(result) }),
        )),
    });
    let mut body = json!({ "model": out.model, "stream": true });
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(|offer| tool(offer)).collect();
    }
    if out.must_use_tool() {
        body["tool_choice"] = "required".into();
    }
    body["messages"] = messages.into();
    body["stream_options"] = json!({ "include_usage": true });
    set(&mut body, "temperature", request.temperature);
    if !request.stop_sequences.is_empty() {
        body["stop"] = json!(request.stop_sequences);
    }
    if let Some(max_tokens) = request.max_output_tokens {
        let is_renamed = RENAMED.iter().any(|family| out.model.starts_with(family));
        let name = if is_renamed { "max_completion_tokens" } else { "max_tokens" };
        body[name] = max_tokens.into();
    }
    body
}

/// A tool definition; Ollama uses the same form.
pub(super) fn tool(tool: &ToolOffer) -> Value {
    let ToolOffer { name, description, schema } = tool;
    let function = json!({ "name": name, "description": description, "parameters": **schema });
    json!({ "type": "function", "function": function })
}

fn part(piece: &ProviderPart<'_>) -> Value {
    match piece {
        ProviderPart::Text(text) => json!({ "type": "text", "text": text }),
        ProviderPart::Image(mime_type, data) => {
            let url = format!("data:{mime_type};base64,{data}");
            json!({ "type": "image_url", "image_url": { "url": url } })
        }
        ProviderPart::Audio(mime_type, data) => {
            let format = if *mime_type == "audio/mpeg" { "mp3" } else { "wav" };
            json!({ "type": "input_audio", "input_audio": { "data": data, "format": format } })
        }
        ProviderPart::File(mime_type, name, data) => {
            let data = format!("data:{mime_type};base64,{data}");
            json!({ "type": "file", "file": { "filename": name, "file_data": data } })
        }
    }
}

fn assistant_message(thoughts: &[Thought], text: &str, calls: &[ToolUse]) -> Option<Value> {
    let plain = thoughts.iter().filter_map(|thought| match thought {
        Thought::Plain { text } => Some(text.as_str()),
        _ => None,
    });
    let plain: Vec<_> = plain.collect();
    if plain.is_empty() && text.is_empty() && calls.is_empty() {
        return None;
    }
    let mut message = json!({ "role": "assistant", "content": text });
    if !calls.is_empty() {
        let call = |call: &ToolUse| {
            let arguments = arguments(call).to_string();
            let function = json!({ "name": call.name, "arguments": arguments });
            json!({ "type": "function", "id": call.id, "function": function })
        };
        message["tool_calls"] = calls.iter().map(call).collect();
    }
    if !plain.is_empty() {
        message["reasoning_content"] = plain.join("\n").into();
    }
    Some(message)
}

/// Reads a chunk of the stream.
pub(super) fn read(chunk: &Value, draft: &mut Draft) -> StreamStep {
    if chunk.get("error").is_some_and(|error| !error.is_null()) {
        return StreamStep::Failed(chunk.clone());
    }
    let usage = &chunk["usage"];
    if usage["prompt_tokens"].is_u64() || usage["completion_tokens"].is_u64() {
        draft.usage = Some(Usage {
            input_tokens: number(usage, "/prompt_tokens"),
            output_tokens: number(usage, "/completion_tokens"),
            cached_tokens: number(usage, "/prompt_tokens_details/cached_tokens"),
            cost_usd: usage["cost"].as_f64(),
        });
    }
    let choice = &chunk["choices"][0];
    let delta = &choice["delta"];
    // Providers that send `reasoning_content` require it back; other fields are only displayed.
    let thought = text(delta, "/reasoning_content");
    draft.more_thought(thought);
    draft.thinking(if thought.is_empty() { text(delta, "/reasoning") } else { thought });
    match &delta["content"] {
        Value::String(words) => draft.text(words),
        // Mistral's reasoning models send typed parts.
        Value::Array(parts) => parts.iter().for_each(|part| match text(part, "/type") {
            "text" => draft.text(text(part, "/text")),
            "thinking" => {
                let inner = part["thinking"].as_array().into_iter().flatten();
                inner.for_each(|part| draft.thinking(text(part, "/text")));
                draft.thinking(text(part, "/thinking"));
            }
            _ => {}
        }),
        _ => {}
    }
    draft.refusal(text(delta, "/refusal"));
    for call in delta["tool_calls"].as_array().into_iter().flatten() {
        let (id, name) = (text(call, "/id"), text(call, "/function/name"));
        draft.calls.fragment(call["index"].as_u64(), id, name, &call["function"]["arguments"]);
    }
    if let Some(reason) = choice["finish_reason"].as_str() {
        draft.reason = Some(reason.to_owned());
    }
    StreamStep::More
}
