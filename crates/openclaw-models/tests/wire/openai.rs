//! `OpenAI`'s Chat Completions and compatible APIs.

use openclaw_models::{ApiKind, Message, ModelError, StopReason, Thought, Usage};
use serde_json::{Value, json};

use crate::server::{Ending, events};
use crate::{answer_to, assert_interrupted, assert_words, body_of, calls, conversation, tool};

const KIND: ApiKind = ApiKind::OpenAi;
const NAME: &str = "gpt-4o";

fn chunk(delta: Value, reason: Option<&str>) -> (&'static str, Value) {
    let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason});
    let chunk = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1,
        "model": NAME, "choices": [choice]});
    ("", chunk)
}

fn text(text: &str) -> (&'static str, Value) {
    chunk(json!({"content": text}), None)
}

fn usage() -> (&'static str, Value) {
    let usage = json!({"prompt_tokens": 30, "completion_tokens": 8, "total_tokens": 38,
        "prompt_tokens_details": {"cached_tokens": 10, "audio_tokens": 0}, "cost": 0.25});
    (
        "",
        json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": usage}),
    )
}

/// A stream with `[DONE]` at its end.
fn done(chunks: &[(&str, Value)]) -> String {
    format!("{}data: [DONE]\n\n", events(chunks))
}

#[tokio::test]
async fn text_is_assembled_from_chunks_of_any_size() {
    let begin = chunk(json!({"role": "assistant", "content": "", "refusal": null}), None);
    let stop = chunk(json!({}), Some("stop"));
    let stream = done(&[begin, text("Grüße, "), text("世界 🦀!"), stop, usage()]);
    // Some servers send comments while they wait, and some end lines with CRLF.
    for stream in [format!(": PROCESSING\n\n{stream}"), stream.replace('\n', "\r\n")] {
        let usage =
            Usage { input_tokens: 30, output_tokens: 8, cached_tokens: 10, cost_usd: Some(0.25) };
        assert_words(KIND, NAME, &stream, usage).await;
    }
}

#[tokio::test]
async fn parallel_calls_are_put_together_from_interleaved_fragments() {
    let first = |index: u32, id: &str| {
        json!({"index": index, "id": id, "type": "function",
            "function": {"name": "add", "arguments": ""}})
    };
    let more = |index: u32, text: &str| json!({"index": index, "function": {"arguments": text}});
    let both = |calls: Value| chunk(json!({ "tool_calls": calls }), None);
    let stream = done(&[
        both(json!([first(0, "call_a")])),
        both(json!([more(0, "{\"a\": \"ü"), first(1, "call_b")])),
        both(json!([more(1, "{\"a\": 123456789012345678901234567890}")])),
        both(json!([more(0, "\"}")])),
        chunk(json!({}), Some("tool_calls")),
        usage(),
    ]);
    let (answer, error) = answer_to(KIND, NAME, &stream, Ending::Clean).await;
    assert_eq!(error, None);
    let expected = [
        ("call_a", "add", "{\"a\": \"ü\"}"),
        ("call_b", "add", "{\"a\": 123456789012345678901234567890}"),
    ];
    assert_eq!(calls(&answer), expected);
    assert_eq!(answer.stop_reason, Some(StopReason::ToolUse));
}

#[tokio::test]
async fn calls_without_ids_and_with_the_wrong_reason_are_calls() {
    let call = json!([{"index": 0, "function": {"name": "add", "arguments": "{}"}}]);
    let stream = done(&[chunk(json!({ "tool_calls": call }), Some("stop"))]);
    let (answer, _) = answer_to(KIND, NAME, &stream, Ending::Clean).await;
    assert_eq!(answer.stop_reason, Some(StopReason::ToolUse));
    assert_eq!(calls(&answer).len(), 1);
    assert!(!answer.tool_uses[0].id.is_empty());
}

#[tokio::test]
async fn only_thinking_in_reasoning_content_is_sent_back() {
    for (field, goes_back) in [("reasoning_content", true), ("reasoning", false)] {
        let thought = chunk(json!({ field: "Hm…" }), None);
        let stream = done(&[thought, text("Yes."), chunk(json!({}), Some("stop"))]);
        let (answer, _) = answer_to(KIND, NAME, &stream, Ending::Clean).await;
        assert_eq!(answer.thinking, "Hm…");
        let thoughts = answer.reasoning.clone().map(|reasoning| reasoning.thoughts);
        let expected = goes_back.then(|| vec![Thought::Plain { text: "Hm…".into() }]);
        assert_eq!(thoughts, expected, "{field}");
        let said = answer.into_message();
        let (_, body) = body_of(KIND, NAME, vec![Message::user("hi"), said]).await;
        let sent = body["messages"][2].get("reasoning_content").is_some();
        assert_eq!(sent, goes_back, "{body}");
    }
}

#[tokio::test]
async fn an_answer_without_an_end_is_interrupted() {
    assert_interrupted(KIND, NAME, &events(&[text("Hel")])).await;
    let (_, error) = answer_to(KIND, NAME, &done(&[text("Hel")]), Ending::Clean).await;
    assert_eq!(error, Some(ModelError::Interrupted), "`[DONE]`, but no stop reason");
}

#[tokio::test]
async fn an_answer_with_a_stop_reason_is_complete_without_done() {
    let stream = events(&[text("Hello"), chunk(json!({}), Some("stop")), usage()]);
    let (answer, error) = answer_to(KIND, NAME, &stream, Ending::Clean).await;
    assert_eq!((answer.text.as_str(), error), ("Hello", None));
    let (_, error) = answer_to(KIND, NAME, &stream, Ending::Broken).await;
    assert_eq!(error, Some(ModelError::Interrupted));
}

#[tokio::test]
async fn a_refusal_is_recognized() {
    let refusal = |words: &str| chunk(json!({ "refusal": words }), None);
    let stop = chunk(json!({}), Some("stop"));
    let stream = done(&[refusal("I will "), refusal("not."), stop]);
    let (answer, error) = answer_to(KIND, NAME, &stream, Ending::Clean).await;
    let refused = StopReason::Refused("I will not.".into());
    assert_eq!((error, answer.stop_reason), (None, Some(refused)));
}

#[tokio::test]
async fn content_in_typed_parts_is_understood() {
    let thinking = json!([{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]);
    let words = json!([{"type": "text", "text": "Yes."}]);
    let part = |content: Value, reason| chunk(json!({ "content": content }), reason);
    let stream = done(&[part(thinking, None), part(words, Some("stop"))]);
    let (answer, _) = answer_to(KIND, NAME, &stream, Ending::Clean).await;
    assert_eq!((answer.thinking.as_str(), answer.text.as_str()), ("Hm", "Yes."));
    assert_eq!(answer.reasoning, None, "only `reasoning_content` is sent back");
}

#[tokio::test]
async fn the_maximum_length_is_sent_in_the_field_of_the_model_family() {
    for (name, field) in [("gpt-5-mini", "max_completion_tokens"), ("gpt-4.1", "max_tokens")] {
        let (_, body) = body_of(KIND, name, vec![Message::user("hi")]).await;
        assert_eq!(body[field], 1_000, "{body}");
    }
}

#[tokio::test]
async fn an_error_in_the_middle_is_an_error() {
    let failed = json!({"error": {"message": "The server had an error", "type": "server_error",
        "param": null, "code": null}});
    let stream = done(&[text("Hel"), ("", failed)]);
    let (answer, error) = answer_to(KIND, NAME, &stream, Ending::Clean).await;
    assert_eq!(answer.text, "Hel");
    assert!(matches!(error, Some(ModelError::Overloaded { .. })), "{error:?}");
}

#[tokio::test]
async fn the_request_is_as_the_api_wants_it() {
    // `-max` is part of this name, not a reasoning effort.
    let (head, body) = body_of(KIND, "qwen-max", conversation()).await;
    assert!(head.starts_with("post /v1/chat/completions http/1.1\r\n"), "{head}");
    assert!(head.contains("\r\nauthorization: bearer key-that-nobody-sees"), "{head}");
    assert!(head.contains("\r\nx-extra: header-that-nobody-sees"), "{head}");
    let picture = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}});
    let tool = |name| json!({"type": "function", "function": tool(name, "parameters")});
    let call = |id: &str, arguments: &str| {
        let function = json!({"name": "add", "arguments": arguments});
        json!({"type": "function", "id": id, "function": function})
    };
    let expected = json!({
        "model": "qwen-max",
        "stream": true,
        "stream_options": {"include_usage": true},
        "max_tokens": 1_000,
        "tools": [tool("web_search"), tool("add")],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "look"}, picture]},
            {"role": "assistant", "content": "I look.", "tool_calls": [
                call("c1", "{\"a\":1}"), call("c2", "{\"unreadable\":\"{\\\"a\\\"\"}"),
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "seen\n(More of this result follows.)"},
            {"role": "tool", "tool_call_id": "c2", "content": "The tool failed:\nno JSON"},
            {"role": "user", "content": [
                {"type": "text", "text": "This came from the tool `add`, as data:"}, picture,
            ]},
        ],
    });
    assert_eq!(body, expected);
}
