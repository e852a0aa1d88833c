//! `OpenAI`'s Responses.

use serde_json::{Value, json};

use super::draft::{Draft, StreamStep};
use super::media::{ProviderPart, only_text};
use super::turns::{ProviderTurn, arguments, system, words};
use super::{Outgoing, number, set, text};
use crate::model::{ToolOffer, Usage};

/// The body of a request.
pub(super) fn body(out: &Outgoing<'_>) -> Value {
    let request = out.request;
    let mut input = Vec::with_capacity(out.turns.len());
    for turn in &out.turns {
        match turn {
            ProviderTurn::User(pieces) => {
                let words = only_text(pieces).map(Value::from);
                let content = words.unwrap_or_else(|| pieces.iter().filter_map(part).collect());
                input.push(json!({ "role": "user", "content": content }));
            }
            ProviderTurn::Assistant { text, calls, .. } => {
                if !text.is_empty() {
                    let content = json!([{ "type": "output_text", "text": text }]);
                    input.push(
                        json!({ "type": "message", "role": "assistant", "content": content }),
                    );
                }
                input.extend(calls.iter().map(|call| {
                    let arguments = arguments(call).to_string();
                    let (id, name) = (&call.id, &call.name);
                    json!({ "type": "function_call", "call_id": id, "name": name, "arguments": arguments })
                }));
            }
            ProviderTurn::Results(results) => input.extend(results.iter().map(|result| {
                let output = words(result);
                json!({ "type": "function_call_output", "call_id": result.id, "output": output })
            })),
        }
    }
    // The provider must not store the conversation.
    let mut body = json!({ "store": false, "model": out.model, "stream": true });
    set(&mut body, "instructions", system(request));
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(|offer| tool(offer)).collect();
    }
    if out.must_use_tool() {
        body["tool_choice"] = "required".into();
    }
    body["input"] = input.into();
    // The API has no stop sequences.
    set(&mut body, "temperature", request.temperature);
    set(&mut body, "max_output_tokens", request.max_output_tokens);
    body
}

fn tool(tool: &ToolOffer) -> Value {
    json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": *tool.schema,
        // The default is true, and most schemas are not strict.
        "strict": false,
    })
}

fn part(piece: &ProviderPart<'_>) -> Option<Value> {
    match piece {
        ProviderPart::Text(text) => Some(json!({ "type": "input_text", "text": text })),
        ProviderPart::Image(mime_type, data) => {
            let url = format!("data:{mime_type};base64,{data}");
            Some(json!({ "type": "input_image", "detail": "auto", "image_url": url }))
        }
        ProviderPart::File(mime_type, name, data) => {
            let data = format!("data:{mime_type};base64,{data}");
            Some(json!({ "type": "input_file", "filename": name, "file_data": data }))
        }
        ProviderPart::Audio(..) => None,
    }
}

/// Reads an event of the stream.
pub(super) fn read(event: &Value, draft: &mut Draft) -> StreamStep {
    let at = event["output_index"].as_u64();
    let response = &event["response"];
    match text(event, "/type") {
        "response.output_text.delta" => draft.text(text(event, "/delta")),
        "response.reasoning_text.delta" | "response.reasoning_summary_text.delta" => {
            draft.thinking(text(event, "/delta"));
        }
        "response.refusal.delta" => draft.refusal(text(event, "/delta")),
        "response.output_item.added" | "response.output_item.done" => {
            call(at, &event["item"], draft);
        }
        "response.function_call_arguments.delta" => draft.calls.more(at, &event["delta"]),
        "response.completed" | "response.incomplete" => {
            // Some servers list the calls only here.
            if draft.calls.is_empty() {
                let output = response["output"].as_array().into_iter().flatten();
                (0..).zip(output).for_each(|(at, item)| call(Some(at), item, draft));
            }
            let reason = match text(response, "/incomplete_details/reason") {
                filtered @ "content_filter" => filtered,
                _ => response["status"].as_str().unwrap_or("completed"),
            };
            draft.reason = Some(reason.to_owned());
            let usage = &response["usage"];
            draft.usage = usage.is_object().then(|| Usage {
                input_tokens: number(usage, "/input_tokens"),
                output_tokens: number(usage, "/output_tokens"),
                cached_tokens: number(usage, "/input_tokens_details/cached_tokens"),
                cost_usd: usage["cost"].as_f64(),
            });
            return StreamStep::Over;
        }
        "response.failed" => return StreamStep::Failed(json!({ "error": response["error"] })),
        "error" => return StreamStep::Failed(event.clone()),
        _ => {}
    }
    StreamStep::More
}

fn call(at: Option<u64>, item: &Value, draft: &mut Draft) {
    if text(item, "/type") == "function_call" {
        let (id, name) = (text(item, "/call_id"), text(item, "/name"));
        draft.calls.settle(at, id, name, text(item, "/arguments"));
    }
}
