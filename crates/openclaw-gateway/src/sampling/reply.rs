//! The result of `sampling/createMessage`.

use openclaw_content::{Untrusted, clean_line};
use openclaw_models::{Completion, Part, StopReason, ToolUse};
use serde_json::{Value, json};

/// Maximum characters of a provider's own stop reason.
const REASON: usize = 40;

/// Converts the model's answer to the result.
///
/// Only a server that offered tools, and so knows 2025-11-25, gets several blocks.
///
/// # Errors
/// Fails if the model refused to answer.
pub(super) fn result(
    answer: Completion,
    model: &str,
    stop_sequences: &[String],
    has_tools: bool,
) -> Result<Value, &'static str> {
    let Completion { mut text, tool_uses, parts, stop_reason, .. } = answer;
    let is_stopped = cut(&mut text, stop_sequences);
    let stop_reason = match stop_reason {
        _ if is_stopped => "stopSequence".to_owned(),
        Some(StopReason::Done) | None => "endTurn".to_owned(),
        Some(StopReason::ToolUse) => "toolUse".to_owned(),
        Some(StopReason::Length) => "maxTokens".to_owned(),
        Some(StopReason::StopSequence) => "stopSequence".to_owned(),
        Some(StopReason::Refused(_)) if text.trim().is_empty() => {
            return Err("the model refused to answer");
        }
        Some(StopReason::Refused(_)) => "refusal".to_owned(),
        Some(StopReason::Other(reason)) => clean_line(Untrusted::new(&reason), REASON),
    };
    let mut blocks = Vec::new();
    let media = parts.iter().filter_map(media);
    if !text.is_empty() {
        blocks.push(json!({ "type": "text", "text": text }));
    }
    blocks.extend(media);
    if has_tools && !is_stopped {
        blocks.extend(tool_uses.into_iter().map(tool_use));
    }
    if blocks.is_empty() {
        blocks.push(json!({ "type": "text", "text": "" }));
    }
    let content = match has_tools && blocks.len() > 1 {
        true => Value::Array(blocks),
        false => blocks.swap_remove(0),
    };
    Ok(json!({
        "role": "assistant",
        "content": content,
        "model": model,
        "stopReason": stop_reason,
    }))
}

/// Number of characters of text in a result.
pub(super) fn chars(result: &Value) -> usize {
    let of = |block: &Value| block["text"].as_str().map_or(0, |text| text.chars().count());
    match &result["content"] {
        Value::Array(blocks) => blocks.iter().map(of).sum(),
        block => of(block),
    }
}

/// Truncates the text at a stop sequence, since not every provider supports them. Returns whether
/// it did.
fn cut(text: &mut String, stop_sequences: &[String]) -> bool {
    let found = stop_sequences.iter().filter_map(|stop| text.find(stop)).min();
    if let Some(at) = found {
        text.truncate(at);
    }
    found.is_some()
}

fn media(part: &Part) -> Option<Value> {
    match part {
        Part::Image { mime_type, data } => {
            Some(json!({ "type": "image", "mimeType": mime_type, "data": data }))
        }
        Part::Audio { mime_type, data } => {
            Some(json!({ "type": "audio", "mimeType": mime_type, "data": data }))
        }
        // A sampling result has no files.
        Part::Text(_) | Part::File { .. } => None,
    }
}

fn tool_use(ToolUse { id, name, arguments }: ToolUse) -> Value {
    // The model's arguments may be invalid JSON.
    let input = serde_json::from_str::<serde_json::Map<String, Value>>(&arguments);
    json!({ "type": "tool_use", "id": id, "name": name, "input": input.unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, stop: StopReason) -> Completion {
        Completion { text: text.to_owned(), stop_reason: Some(stop), ..Completion::default() }
    }

    #[test]
    fn stop_reasons_are_mapped_to_the_protocol() {
        for (stop, expected) in [
            (StopReason::Done, "endTurn"),
            (StopReason::Length, "maxTokens"),
            (StopReason::ToolUse, "toolUse"),
            (StopReason::StopSequence, "stopSequence"),
            (StopReason::Other("pause\u{1b}[2J".to_owned()), "pause[2J"),
        ] {
            let result = result(said("hello", stop), "offline", &[], false).unwrap();
            assert_eq!(
                result,
                json!({
                    "role": "assistant", "content": { "type": "text", "text": "hello" },
                    "model": "offline", "stopReason": expected,
                })
            );
        }
        let refused = said(" ", StopReason::Refused("safety".to_owned()));
        assert!(result(refused, "offline", &[], false).is_err());
    }

    #[test]
    fn an_answer_ends_before_the_first_stop_sequence_also_where_the_provider_knows_none() {
        let stops = ["END".to_owned(), "two".to_owned()];
        let result = result(said("one two END", StopReason::Done), "m", &stops, false).unwrap();
        assert_eq!(result["content"]["text"], "one ");
        assert_eq!(result["stopReason"], "stopSequence");
        assert_eq!(chars(&result), 4);
    }

    #[test]
    fn tool_uses_go_to_the_server_that_offered_tools_and_to_no_other() {
        let call = |arguments: &str| ToolUse {
            id: "1".to_owned(),
            name: "weather".to_owned(),
            arguments: arguments.to_owned(),
        };
        let answer = Completion {
            tool_uses: vec![call(r#"{"city": "Bern"}"#), call("no json")],
            ..said("Let me see.", StopReason::ToolUse)
        };
        let with = result(answer.clone(), "m", &[], true).unwrap();
        assert_eq!(
            with["content"],
            json!([
                { "type": "text", "text": "Let me see." },
                { "type": "tool_use", "id": "1", "name": "weather", "input": { "city": "Bern" } },
                { "type": "tool_use", "id": "1", "name": "weather", "input": {} },
            ])
        );
        let without = result(answer, "m", &[], false).unwrap();
        assert_eq!(without["content"], json!({ "type": "text", "text": "Let me see." }));
    }
}
