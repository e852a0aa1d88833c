//! `OpenAI`'s Responses.

use openclaw_models::{ApiKind, ModelError, StopReason, Usage};
use serde_json::{Value, json};

use crate::server::{Ending, events};
use crate::{answer_to, assert_interrupted, assert_words, body_of, calls, conversation};

const KIND: ApiKind = ApiKind::OpenAiResponses;
const NAME: &str = "gpt-4.1";

fn event(kind: &'static str, mut more: Value) -> (&'static str, Value) {
    more["type"] = kind.into();
    (kind, more)
}

fn text(text: &str) -> (&'static str, Value) {
    let more = json!({"item_id": "m", "output_index": 0, "content_index": 0, "delta": text});
    event("response.output_text.delta", more)
}

fn closed(kind: &'static str, status: &str, error: Value) -> (&'static str, Value) {
    let usage = json!({"input_tokens": 30, "input_tokens_details": {"cached_tokens": 10},
        "output_tokens": 8, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 38});
    event(
        kind,
        json!({"response": {"id": "resp_1", "object": "response", "status": status, "error": error,
            "model": NAME, "output": [], "usage": usage}}),
    )
}

#[tokio::test]
async fn text_is_assembled_from_chunks_of_any_size() {
    let begin = event("response.created", json!({"response": {"id": "resp_1"}}));
    let end = closed("response.completed", "completed", Value::Null);
    let stream = events(&[begin, text("Grüße, "), text("世界 🦀!"), end]);
    let usage = Usage { input_tokens: 30, output_tokens: 8, cached_tokens: 10, cost_usd: None };
    assert_words(KIND, NAME, &stream, usage).await;
}

#[tokio::test]
async fn calls_are_put_together_from_fragments() {
    let item = |id: &str, arguments: &str| {
        json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "add",
            "arguments": arguments})
    };
    let added = |index: u32, id: &str| {
        event("response.output_item.added", json!({"output_index": index, "item": item(id, "")}))
    };
    let more = |index: u32, text: &str| {
        let more = json!({"output_index": index, "delta": text});
        event("response.function_call_arguments.delta", more)
    };
    let done = |index: u32, id: &str, arguments: &str| {
        let more = json!({"output_index": index, "item": item(id, arguments)});
        event("response.output_item.done", more)
    };
    let stream = events(&[
        added(0, "call_a"),
        more(0, "{\"a\": "),
        added(1, "call_b"),
        more(1, "{\"a\":"),
        more(0, "1.0}"),
        done(0, "call_a", "{\"a\": 1.0}"),
        done(1, "call_b", "{\"a\":2}"),
        closed("response.completed", "completed", Value::Null),
    ]);
    let (answer, error) = answer_to(KIND, NAME, &stream, Ending::Clean).await;
    assert_eq!(error, None);
    let expected = [("call_a", "add", "{\"a\": 1.0}"), ("call_b", "add", "{\"a\":2}")];
    assert_eq!(calls(&answer), expected);
    assert_eq!(answer.stop_reason, Some(StopReason::ToolUse));
}

#[tokio::test]
async fn an_answer_without_an_end_is_interrupted() {
    assert_interrupted(KIND, NAME, &events(&[text("Hel")])).await;
}

#[tokio::test]
async fn calls_listed_only_in_the_last_event_are_found() {
    let mut end = closed("response.completed", "completed", Value::Null);
    end.1["response"]["output"] = json!([{"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "call_a", "name": "add", "arguments": "{\"a\": 1}"}]);
    let thought = event("response.reasoning_summary_text.delta", json!({"delta": "Hm"}));
    let (answer, error) = answer_to(KIND, NAME, &events(&[thought, end]), Ending::Clean).await;
    assert_eq!((error, answer.stop_reason.clone()), (None, Some(StopReason::ToolUse)));
    assert_eq!(calls(&answer), [("call_a", "add", "{\"a\": 1}")]);
    assert_eq!(answer.thinking, "Hm");
}

#[tokio::test]
async fn a_refusal_is_recognized() {
    let refusal = event("response.refusal.delta", json!({"delta": "No."}));
    let end = closed("response.completed", "completed", Value::Null);
    let mut filtered = closed("response.incomplete", "incomplete", Value::Null);
    filtered.1["response"]["incomplete_details"] = json!({"reason": "content_filter"});
    for (stream, word) in [(vec![refusal, end], "No."), (vec![filtered], "content_filter")] {
        let (answer, error) = answer_to(KIND, NAME, &events(&stream), Ending::Clean).await;
        assert_eq!((error, answer.stop_reason), (None, Some(StopReason::Refused(word.into()))));
    }
}

#[tokio::test]
async fn errors_in_the_stream_are_classified() {
    let failed = |code: &str| {
        let error = json!({"code": code, "message": "words"});
        events(&[text("Hel"), closed("response.failed", "failed", error)])
    };
    let (_, error) = answer_to(KIND, NAME, &failed("server_error"), Ending::Clean).await;
    assert!(matches!(error, Some(ModelError::Overloaded { .. })), "{error:?}");
    let (_, error) = answer_to(KIND, NAME, &failed("context_length_exceeded"), Ending::Clean).await;
    assert_eq!(error, Some(ModelError::ContextTooLong));
    let sent = json!({"code": "rate_limit_exceeded", "message": "slow", "param": null});
    let stream = events(&[text("Hel"), event("error", sent)]);
    let (_, error) = answer_to(KIND, NAME, &stream, Ending::Clean).await;
    assert!(matches!(error, Some(ModelError::RateLimited { .. })), "{error:?}");
    let cut = closed("response.incomplete", "incomplete", Value::Null);
    let (answer, _) = answer_to(KIND, NAME, &events(&[text("Hel"), cut]), Ending::Clean).await;
    assert_eq!(answer.stop_reason, Some(StopReason::Length));
}

#[tokio::test]
async fn the_request_is_as_the_api_wants_it() {
    let (head, body) = body_of(KIND, NAME, conversation()).await;
    assert!(head.starts_with("post /v1/responses http/1.1\r\n"), "{head}");
    assert_eq!(body["instructions"], "Be brief.");
    assert_eq!(body["store"], false);
    assert_eq!(body["max_output_tokens"], 1_000);
    let tool = &body["tools"][0];
    assert_eq!((&tool["type"], &tool["name"]), (&json!("function"), &json!("web_search")));
    assert_eq!(tool["strict"], false);
    let kinds: Vec<_> =
        body["input"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
    let (message, call, output) = ("message", "function_call", "function_call_output");
    assert_eq!(json!(kinds), json!([null, message, call, call, output, output, null]));
    assert_eq!(body["input"][6]["content"][1]["type"], "input_image");
}
