//! Anthropic's Messages.

use openclaw_models::{ApiKind, Message, ModelError, StopReason, Thought, Usage};
use serde_json::{Value, json};

use crate::server::{Ending, Reply, Server, events};
use crate::{
    answer_to, asking, assert_interrupted, assert_words, body_of, calls, collect, conversation,
    model, tool,
};

const KIND: ApiKind = ApiKind::Anthropic;
const NAME: &str = "claude-sonnet-4-5";

fn start() -> (&'static str, Value) {
    let usage = json!({"input_tokens": 20, "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 5, "output_tokens": 1});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [],
        "model": NAME, "stop_reason": null, "stop_sequence": null, "usage": usage});
    ("message_start", json!({"type": "message_start", "message": message}))
}

fn block(index: u32, block: Value, deltas: &[Value]) -> Vec<(&'static str, Value)> {
    let start = json!({"type": "content_block_start", "index": index, "content_block": block});
    let stop = json!({"type": "content_block_stop", "index": index});
    let mut all = vec![("content_block_start", start)];
    all.extend(deltas.iter().map(|delta| {
        let delta = json!({"type": "content_block_delta", "index": index, "delta": delta});
        ("content_block_delta", delta)
    }));
    all.push(("content_block_stop", stop));
    all
}

fn text(text: &str) -> Value {
    json!({"type": "text_delta", "text": text})
}

fn end(reason: &str) -> Vec<(&'static str, Value)> {
    let delta = json!({"type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 12}});
    vec![("message_delta", delta), ("message_stop", json!({"type": "message_stop"}))]
}

fn stream(blocks: Vec<Vec<(&'static str, Value)>>) -> String {
    let ping = ("ping", json!({"type": "ping"}));
    let all: Vec<_> = [start(), ping].into_iter().chain(blocks.into_iter().flatten()).collect();
    events(&all)
}

#[tokio::test]
async fn text_is_assembled_from_chunks_of_any_size() {
    let words = block(0, json!({"type": "text", "text": ""}), &[text("Grüße, "), text("世界 🦀!")]);
    let stream = stream(vec![words, end("end_turn")]);
    let usage = Usage { input_tokens: 25, output_tokens: 12, cached_tokens: 5, cost_usd: None };
    assert_words(KIND, NAME, &stream, usage).await;
}

#[tokio::test]
async fn calls_are_put_together_from_fragments() {
    let piece = |text: &str| json!({"type": "input_json_delta", "partial_json": text});
    let call = |index, id: &str, deltas: &[Value]| {
        let tool = json!({"type": "tool_use", "id": id, "name": "add", "input": {}});
        block(index, tool, deltas)
    };
    let first = call(0, "toolu_1", &[piece(""), piece("{\"a\": \"ü"), piece("\",  \"b\": 1.0}")]);
    let second = call(1, "toolu_2", &[]);
    let third = call(2, "toolu_3", &[piece("{\"a\": ")]);
    let stream = stream(vec![first, second, third, end("tool_use")]);
    let (answer, error) = answer_to(KIND, NAME, &stream, Ending::Clean).await;
    assert_eq!(error, None);
    let expected = [
        ("toolu_1", "add", "{\"a\": \"ü\",  \"b\": 1.0}"),
        ("toolu_2", "add", "{}"),
        ("toolu_3", "add", "{\"a\": "),
    ];
    assert_eq!(calls(&answer), expected);
    assert_eq!(answer.stop_reason, Some(StopReason::ToolUse));
}

#[tokio::test]
async fn thinking_is_shown_and_sent_back_unchanged() {
    let signed = block(
        0,
        json!({"type": "thinking", "thinking": "", "signature": ""}),
        &[
            json!({"type": "thinking_delta", "thinking": "Hm"}),
            json!({"type": "thinking_delta", "thinking": "…"}),
            json!({"type": "signature_delta", "signature": "c2ln"}),
        ],
    );
    let hidden = block(1, json!({"type": "redacted_thinking", "data": "xyz"}), &[]);
    let tool = json!({"type": "tool_use", "id": "t1", "name": "add", "input": {}});
    let stream = stream(vec![signed, hidden, block(2, tool, &[]), end("tool_use")]);
    let (answer, _) = answer_to(KIND, NAME, &stream, Ending::Clean).await;
    assert_eq!(answer.thinking, "Hm…");
    let thoughts = answer.reasoning.clone().unwrap().thoughts;
    let opaque = json!({"type": "redacted_thinking", "data": "xyz"});
    let signed = Thought::Signed { text: "Hm…".into(), signature: "c2ln".into() };
    assert_eq!(thoughts, [signed, Thought::Opaque { data: opaque.clone() }]);

    let said = answer.into_message();
    let (_, body) = body_of(KIND, NAME, vec![Message::user("hi"), said.clone()]).await;
    let content = &body["messages"][1]["content"];
    assert_eq!(content[0], json!({"type": "thinking", "thinking": "Hm…", "signature": "c2ln"}));
    assert_eq!(content[1], opaque);
    assert_eq!(content[2]["type"], "tool_use");

    let (_, body) = body_of(KIND, "claude-other", vec![Message::user("hi"), said]).await;
    assert_eq!(body["messages"][1]["content"][0]["type"], "tool_use", "not sent to other models");
}

#[tokio::test]
async fn an_answer_without_an_end_is_interrupted() {
    let begun = stream(vec![block(0, json!({"type": "text", "text": ""}), &[text("Hel")])]);
    assert_interrupted(KIND, NAME, &begun).await;
}

#[tokio::test]
async fn an_error_in_the_middle_is_an_error() {
    let failed = json!({"type": "error",
        "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let words = block(0, json!({"type": "text", "text": ""}), &[text("Hel")]);
    let stream = stream(vec![words, vec![("error", failed)]]);
    let (answer, error) = answer_to(KIND, NAME, &stream, Ending::Clean).await;
    assert_eq!(answer.text, "Hel");
    assert!(matches!(error, Some(ModelError::Overloaded { .. })), "{error:?}");
}

#[tokio::test]
async fn stop_reasons_are_distinguished() {
    for (reason, expected) in [
        ("max_tokens", StopReason::Length),
        ("refusal", StopReason::Refused("refusal".into())),
        ("pause_turn", StopReason::Other("pause_turn".into())),
    ] {
        let stream = stream(vec![end(reason)]);
        let (answer, _) = answer_to(KIND, NAME, &stream, Ending::Clean).await;
        assert_eq!(answer.stop_reason, Some(expected));
    }
}

#[tokio::test]
async fn the_request_is_as_the_api_wants_it() {
    let (head, body) = body_of(KIND, "some-max", conversation()).await;
    assert!(head.starts_with("post /v1/messages http/1.1\r\n"), "{head}");
    for header in [
        "x-api-key: key-that-nobody-sees",
        "anthropic-version: 2023-06-01",
        "x-extra: header-that-nobody-sees",
        "content-type: application/json",
    ] {
        assert!(head.lines().any(|line| line == header), "{header}: {head}");
    }
    let picture = json!({"type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}});
    let tool = |name| tool(name, "input_schema");
    let expected = json!({
        "model": "some-max",
        "stream": true,
        "max_tokens": 1_000,
        "system": "Be brief.",
        "tools": [tool("web_search"), tool("add")],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "look"}, picture]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}},
                {"type": "tool_use", "id": "c2", "name": "add", "input": {"unreadable": "{\"a\""}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1",
                    "content": [{"type": "text", "text": "seen"}, picture]},
                {"type": "tool_result", "tool_use_id": "c2", "is_error": true,
                    "content": [{"type": "text", "text": "no JSON"}],
                    "cache_control": {"type": "ephemeral"}},
            ]},
        ],
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn the_maximum_length_is_always_sent() {
    for (name, expected) in [
        ("claude-opus-4-1-20250805", 32_000),
        ("claude-sonnet-4-5", 64_000),
        ("claude-3-5-haiku-latest", 8_192),
        ("claude-3-haiku-20240307", 4_096),
        ("another", 64_000),
    ] {
        let server = Server::start(vec![Reply::error(400, "", &json!({}))]).await;
        let mut request = asking(vec![Message::user("hi")]);
        request.max_output_tokens = None;
        collect(&*model(&server, KIND, name), request).await;
        let body = server.sent().remove(0).body;
        assert_eq!(body["max_tokens"], expected, "{name}");
        let marked =
            json!([{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]);
        assert_eq!(body["messages"][0]["content"], marked);
    }
}

#[tokio::test]
async fn tools_of_the_provider_itself_are_not_calls() {
    let piece = json!({"type": "input_json_delta", "partial_json": "{}"});
    let tool = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    let words = block(1, json!({"type": "text", "text": ""}), &[text("Found.")]);
    let stream = stream(vec![block(0, tool, &[piece]), words, end("end_turn")]);
    let (answer, error) = answer_to(KIND, NAME, &stream, Ending::Clean).await;
    assert_eq!((answer.text.as_str(), error), ("Found.", None));
    assert!(answer.tool_uses.is_empty());
}
