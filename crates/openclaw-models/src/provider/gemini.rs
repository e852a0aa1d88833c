//! Google's `generateContent`.

use serde_json::{Map, Value, json};

use super::draft::{Draft, StreamStep};
use super::media::ProviderPart;
use super::turns::{ProviderTurn, arguments, system, words};
use super::{Outgoing, number, set, text};
use crate::message::{Part, Thought, ToolResult, ToolUse};
use crate::model::{ToolOffer, Usage};

/// Gemini 3 requires a signature on the first call of a turn; it accepts this value if there is none.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// The id of a call for which Gemini sent none.
pub(super) fn call_id(name: &str, number: usize) -> String {
    format!("call#{name}#{number}")
}

/// The id that Gemini gave a call. One of ours is not sent back: Gemini matches such calls by order.
fn given_id(id: &str) -> Option<&str> {
    let number = id.strip_prefix("call#").and_then(|rest| rest.rsplit_once('#'));
    let is_ours = number.is_some_and(|(name, number)| {
        !name.is_empty() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    (!is_ours && !id.is_empty()).then_some(id)
}

/// The body of a request.
pub(super) fn body(out: &Outgoing<'_>) -> Value {
    let request = out.request;
    let mut contents = Vec::with_capacity(out.turns.len());
    for turn in &out.turns {
        let (role, parts): (_, Vec<Value>) = match turn {
            ProviderTurn::User(pieces) => ("user", pieces.iter().map(part).collect()),
            ProviderTurn::Assistant { thoughts, text, calls } => {
                let mut parts = Vec::new();
                if !text.is_empty() {
                    parts.push(json!({ "text": text }));
                }
                let is_strict = out.model.contains("gemini-3");
                parts.extend((0..).zip(*calls).map(|(nth, call)| {
                    let missing = (is_strict && nth == 0).then_some(NO_SIGNATURE);
                    call_part(call, signature(thoughts, call).or(missing))
                }));
                ("model", parts)
            }
            ProviderTurn::Results(results) => ("user", results.iter().map(result).collect()),
        };
        if !parts.is_empty() {
            contents.push(json!({ "role": role, "parts": parts }));
        }
    }
    let mut body = json!({});
    if let Some(system) = system(request) {
        body["systemInstruction"] = json!({ "parts": [{ "text": system }] });
    }
    if !request.tools.is_empty() {
        let tools: Vec<_> = request.tools.iter().map(|offer| tool(offer)).collect();
        body["tools"] = json!([{ "functionDeclarations": tools }]);
    }
    if out.must_use_tool() {
        body["toolConfig"] = json!({ "functionCallingConfig": { "mode": "ANY" } });
    }
    body["contents"] = contents.into();
    let mut config = Map::new();
    if let Some(temperature) = request.temperature {
        config.insert("temperature".to_owned(), temperature.into());
    }
    if !request.stop_sequences.is_empty() {
        config.insert("stopSequences".to_owned(), json!(request.stop_sequences));
    }
    if let Some(max_tokens) = request.max_output_tokens {
        config.insert("maxOutputTokens".to_owned(), max_tokens.into());
    }
    if !config.is_empty() {
        body["generationConfig"] = config.into();
    }
    body
}

fn tool(tool: &ToolOffer) -> Value {
    let mut declaration = json!({ "name": tool.name, "description": tool.description });
    // Gemini rejects an object without properties.
    let properties = tool.schema.get("properties").and_then(Value::as_object);
    if properties.is_some_and(|properties| !properties.is_empty()) {
        declaration["parameters"] = (*tool.schema).clone();
    }
    declaration
}

fn part(piece: &ProviderPart<'_>) -> Value {
    match piece {
        ProviderPart::Text(text) => json!({ "text": text }),
        ProviderPart::Image(mime_type, data)
        | ProviderPart::Audio(mime_type, data)
        | ProviderPart::File(mime_type, _, data) => {
            json!({ "inline_data": { "mime_type": mime_type, "data": data } })
        }
    }
}

fn signature<'t>(thoughts: &'t [Thought], call: &ToolUse) -> Option<&'t str> {
    thoughts.iter().find_map(|thought| match thought {
        Thought::OfCall { id, signature } if *id == call.id => Some(signature.as_str()),
        _ => None,
    })
}

fn call_part(call: &ToolUse, signature: Option<&str>) -> Value {
    let mut part = json!({ "functionCall": { "name": call.name, "args": arguments(call) } });
    set(&mut part["functionCall"], "id", given_id(&call.id));
    set(&mut part, "thoughtSignature", signature);
    part
}

fn result(result: &ToolResult) -> Value {
    let response = json!({ "name": result.name, "content": words(result) });
    let mut response = json!({ "name": result.name, "response": response });
    set(&mut response, "id", given_id(&result.id));
    json!({ "functionResponse": response })
}

/// Reads a message of the stream.
pub(super) fn read(piece: &Value, draft: &mut Draft) -> StreamStep {
    if piece.get("error").is_some_and(|error| !error.is_null()) {
        return StreamStep::Failed(piece.clone());
    }
    let usage = &piece["usageMetadata"];
    if usage.is_object() {
        let sum = |one: &str, other: &str| number(usage, one).saturating_add(number(usage, other));
        draft.usage = Some(Usage {
            input_tokens: sum("/promptTokenCount", "/toolUsePromptTokenCount"),
            output_tokens: sum("/candidatesTokenCount", "/thoughtsTokenCount"),
            cached_tokens: number(usage, "/cachedContentTokenCount"),
            cost_usd: None,
        });
    }
    if let Some(reason) = piece.pointer("/promptFeedback/blockReason") {
        draft.refusal(reason.as_str().unwrap_or_default());
        draft.reason = Some("refusal".to_owned());
        return StreamStep::Over;
    }
    let candidate = &piece["candidates"][0];
    for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
        let call = &part["functionCall"];
        if call.is_object() {
            let (id, name) = (text(call, "/id"), text(call, "/name"));
            draft.calls.whole(id, name, &call["args"], text(part, "/thoughtSignature"));
        } else if part["thought"].as_bool() == Some(true) {
            draft.thinking(text(part, "/text"));
        } else {
            draft.text(text(part, "/text"));
        }
        if let Some(part) = inline(&part["inlineData"]) {
            draft.part(part);
        }
    }
    match candidate["finishReason"].as_str() {
        Some(reason) => {
            draft.reason = Some(reason.to_owned());
            StreamStep::Over
        }
        None => StreamStep::More,
    }
}

/// Returns an image or an audio recording.
fn inline(inline: &Value) -> Option<Part> {
    let mime_type = inline.get("mimeType")?.as_str()?.to_owned();
    let data = inline.get("data")?.as_str()?.to_owned();
    match mime_type.split('/').next() {
        Some("image") => Some(Part::Image { mime_type, data }),
        Some("audio") => Some(Part::Audio { mime_type, data }),
        _ => None,
    }
}
