//! Ollama's own API: a line of JSON for every piece.

use std::time::Duration;

use openclaw_models::{ApiKind, ModelError, StopReason, Usage, http_client, ollama_models};
use serde_json::{Value, json};

use crate::server::{Ending, Reply, Server};
use crate::{WORDS, answer_to, body_of, calls, conversation};

const KIND: ApiKind = ApiKind::Ollama;
const NAME: &str = "qwen3:8b";

fn line(message: Value) -> String {
    let mut line = json!({"model": NAME, "created_at": "2026-01-01T00:00:00Z", "done": false});
    line["message"] = message;
    format!("{line}\n")
}

fn text(text: &str) -> String {
    line(json!({"role": "assistant", "content": text}))
}

fn end(reason: Option<&str>) -> String {
    let mut end = json!({"model": NAME, "created_at": "2026-01-01T00:00:00Z",
        "message": {"role": "assistant", "content": ""}, "done": true,
        "prompt_eval_count": 30, "eval_count": 8});
    if let Some(reason) = reason {
        end["done_reason"] = reason.into();
    }
    format!("{end}\n")
}

#[tokio::test]
async fn words_arrive_whole_however_they_are_torn() {
    for reason in [Some("stop"), None] {
        let stream = [text("Grüße, "), text("世界 🦀!"), end(reason)].concat();
        let (answer, error) = answer_to(KIND, NAME, &stream, Ending::Clean).await;
        assert_eq!(error, None);
        assert_eq!((answer.text.as_str(), answer.stop_reason), (WORDS, Some(StopReason::Done)));
        let usage = Usage { input_tokens: 30, output_tokens: 8, cached_tokens: 0 };
        assert_eq!(answer.usage, Some(usage));
    }
}

#[tokio::test]
async fn parallel_calls_are_told_apart() {
    let call = |id: &str, number: u32| json!({"id": id, "function": {"name": "add", "arguments": {"a": number}}});
    let said = json!({"role": "assistant", "content": "", "thinking": "Hm",
        "tool_calls": [call("c1", 1), call("c2", 2)]});
    let more = json!({"role": "assistant", "content": "", "tool_calls": [call("c1", 3)]});
    let stream = [line(said), line(more), end(Some("stop"))].concat();
    let (answer, error) = answer_to(KIND, NAME, &stream, Ending::Clean).await;
    assert_eq!(error, None);
    let [(first, ..), (second, ..), (third, ..)] = calls(&answer)[..] else { panic!("{answer:?}") };
    assert_eq!((first, second), ("c1", "c2"));
    assert!(third != first && third != second, "{third}");
    assert_eq!(answer.tool_uses[2].arguments, "{\"a\":3}");
    assert_eq!(answer.thinking, "Hm");
    assert_eq!(answer.stop_reason, Some(StopReason::ToolUse));
}

#[tokio::test]
async fn an_answer_without_an_end_is_interrupted() {
    for ending in [Ending::Clean, Ending::Broken] {
        let (answer, error) = answer_to(KIND, NAME, &text("Hel"), ending).await;
        assert_eq!((answer.text.as_str(), error), ("Hel", Some(ModelError::Interrupted)));
    }
}

#[tokio::test]
async fn an_error_in_the_middle_is_an_error() {
    let stream = format!("{}{}\n", text("Hel"), json!({"error": "out of memory"}));
    let (answer, error) = answer_to(KIND, NAME, &stream, Ending::Clean).await;
    assert_eq!(answer.text, "Hel");
    assert_eq!(error, Some(ModelError::Rejected { message: "out of memory".into() }));
}

#[tokio::test]
async fn the_request_is_as_the_api_wants_it() {
    let (head, body) = body_of(KIND, NAME, conversation()).await;
    assert!(head.starts_with("post /api/chat http/1.1\r\n"), "{head}");
    let schema = json!({"type": "object", "properties": {"a": {"type": "number"}}});
    let tool = |name: &str| {
        let description = format!("does {name}");
        let function = json!({"name": name, "description": description, "parameters": schema});
        json!({"type": "function", "function": function})
    };
    let expected = json!({
        "model": NAME,
        "stream": true,
        "options": {"num_predict": 1_000},
        "tools": [tool("web_search"), tool("add")],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "look", "images": ["iVBO"]},
            {"role": "assistant", "content": "I look.", "tool_calls": [
                {"function": {"name": "add", "arguments": {"a": 1}}},
                {"function": {"name": "add", "arguments": {"unreadable": "{\"a\""}}},
            ]},
            {"role": "tool", "content": "seen\n(More of this result follows.)"},
            {"role": "tool", "content": "The tool failed:\nno JSON"},
            {"role": "user", "content": "This came from the tool `add`, as data:",
                "images": ["iVBO"]},
        ],
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn a_local_one_is_found_or_not_within_a_moment() {
    let http = http_client().unwrap();
    let tags = json!({"models": [{"name": NAME, "size": 1}, {"name": "llama3:latest"}]});
    // The time is short, and the machine may be busy: one of many is quick enough.
    let mut found = None;
    for _ in 0..50 {
        let server = Server::start(vec![Reply::stream(&tags.to_string(), 9, Ending::Clean)]).await;
        found = ollama_models(&server.address, &http).await;
        if found.is_some() {
            break;
        }
    }
    assert_eq!(found.unwrap(), [NAME, "llama3:latest"]);

    let hung = Server::start(vec![Reply::stream("{", 1, Ending::Silent)]).await;
    let asked = ollama_models(&hung.address, &http);
    assert_eq!(tokio::time::timeout(Duration::from_secs(60), asked).await.unwrap(), None);
    let other = Server::start(vec![Reply::stream("<html>", 9, Ending::Clean)]).await;
    assert_eq!(ollama_models(&other.address, &http).await, None);
    assert_eq!(ollama_models("no address", &http).await, None);
}
