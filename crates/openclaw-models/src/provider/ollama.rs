//! Ollama's own API.

use serde_json::{Map, Value, json};

use super::draft::{Draft, StreamStep};
use super::media::ProviderPart;
use super::turns::{ProviderTurn, arguments, words};
use super::{Outgoing, number, openai_chat, text};
use crate::message::ToolUse;
use crate::model::Usage;

/// The body of a request. The API has no tool choice.
pub(super) fn body(out: &Outgoing<'_>) -> Value {
    let request = out.request;
    let messages = openai_chat::messages(out, |messages, turn| match turn {
        ProviderTurn::User(pieces) => messages.push(user(pieces)),
        ProviderTurn::Assistant { text, calls, .. } => {
            messages.extend(assistant_message(text, calls));
        }
        ProviderTurn::Results(results) => {
            let message = |words: String| json!({ "role": "tool", "content": words });
            messages.extend(results.iter().map(|result| message(words(result))));
        }
    });
    let mut body = json!({ "model": out.model, "stream": true });
    let mut options = Map::new();
    if let Some(temperature) = request.temperature {
        options.insert("temperature".to_owned(), temperature.into());
    }
    if let Some(max_tokens) = request.max_output_tokens {
        options.insert("num_predict".to_owned(), max_tokens.into());
    }
    if !request.stop_sequences.is_empty() {
        options.insert("stop".to_owned(), json!(request.stop_sequences));
    }
    if !options.is_empty() {
        body["options"] = options.into();
    }
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(|offer| openai_chat::tool(offer)).collect();
    }
    body["messages"] = messages.into();
    body
}

/// A user message: text and images are separate fields.
fn user(pieces: &[ProviderPart<'_>]) -> Value {
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for piece in pieces {
        match piece {
            ProviderPart::Text(text) => texts.push(text.as_str()),
            ProviderPart::Image(_, data) => images.push(*data),
            ProviderPart::Audio(..) | ProviderPart::File(..) => {}
        }
    }
    let mut message = json!({ "role": "user", "content": texts.join("\n\n") });
    if !images.is_empty() {
        message["images"] = json!(images);
    }
    message
}

fn assistant_message(text: &str, calls: &[ToolUse]) -> Option<Value> {
    let mut message = json!({ "role": "assistant" });
    if !text.is_empty() {
        message["content"] = text.into();
    }
    if !calls.is_empty() {
        let call = |call: &ToolUse| json!({ "function": { "name": call.name, "arguments": arguments(call) } });
        message["tool_calls"] = calls.iter().map(call).collect();
    }
    (!text.is_empty() || !calls.is_empty()).then_some(message)
}

/// Reads a line of the stream.
pub(super) fn read(line: &Value, draft: &mut Draft) -> StreamStep {
    if line.get("error").is_some_and(|error| !error.is_null()) {
        return StreamStep::Failed(line.clone());
    }
    let message = &line["message"];
    draft.thinking(text(message, "/thinking"));
    draft.text(text(message, "/content"));
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let function = &call["function"];
        draft.calls.whole(text(call, "/id"), text(function, "/name"), &function["arguments"], "");
    }
    if line["done"].as_bool() != Some(true) {
        return StreamStep::More;
    }
    // Older versions give no reason.
    draft.reason = Some(line["done_reason"].as_str().unwrap_or("stop").to_owned());
    if line["prompt_eval_count"].is_u64() || line["eval_count"].is_u64() {
        draft.usage = Some(Usage {
            input_tokens: number(line, "/prompt_eval_count"),
            output_tokens: number(line, "/eval_count"),
            cached_tokens: number(line, "/prompt_eval_cached_count"),
            cost_usd: None,
        });
    }
    StreamStep::Over
}
