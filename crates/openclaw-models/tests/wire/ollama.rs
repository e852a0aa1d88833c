//! Ollama's own API: one line of JSON per chunk.

use std::time::Duration;

use openclaw_models::{
    ApiKind, LocalOllama, ModelError, StopReason, Usage, find_ollama, http_client,
};
use serde_json::{Value, json};

use crate::server::{Ending, Reply, Server};
use crate::{answer_to, assert_interrupted, assert_words, body_of, calls, conversation, tool};

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
async fn text_is_assembled_from_chunks_of_any_size() {
    for reason in [Some("stop"), None] {
        let stream = [text("Grüße, "), text("世界 🦀!"), end(reason)].concat();
        let usage = Usage { input_tokens: 30, output_tokens: 8, cached_tokens: 0, cost_usd: None };
        assert_words(KIND, NAME, &stream, usage).await;
    }
}

#[tokio::test]
async fn parallel_calls_are_distinguished() {
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
    assert_interrupted(KIND, NAME, &text("Hel")).await;
}

#[tokio::test]
async fn an_error_in_the_middle_is_an_error() {
    let stream = format!("{}{}\n", text("Hel"), json!({"error": "out of memory"}));
    let (answer, error) = answer_to(KIND, NAME, &stream, Ending::Clean).await;
    assert_eq!(answer.text, "Hel");
    let (provider, message) = ("mine".into(), "out of memory".into());
    assert_eq!(error, Some(ModelError::Rejected { provider, message }));
}

#[tokio::test]
async fn the_request_is_as_the_api_wants_it() {
    let (head, body) = body_of(KIND, NAME, conversation()).await;
    assert!(head.starts_with("post /api/chat http/1.1\r\n"), "{head}");
    let tool = |name| json!({"type": "function", "function": tool(name, "parameters")});
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

/// A local Ollama with these models: the name, the family, and the capabilities, if reported.
async fn local(models: Vec<(&'static str, &str, Option<&[&str]>)>) -> Server {
    let tag = |(name, family, _): &(&str, &str, Option<&[&str]>)| {
        json!({"name": name, "size": 1,
        "details": {"family": family, "families": [family]}})
    };
    let tags = json!({"models": models.iter().map(tag).collect::<Vec<_>>()}).to_string();
    let shown: Vec<(&str, Value)> = models
        .iter()
        .filter_map(|(name, _, told)| {
            Some((*name, json!({"capabilities": (*told)?, "license": "…"})))
        })
        .collect();
    Server::answering(move |sent| {
        if sent.head.starts_with("get /api/tags ") {
            return Reply::stream(&tags, 9, Ending::Clean);
        }
        assert!(sent.head.starts_with("post /api/show "), "{}", sent.head);
        match shown.iter().find(|(name, _)| sent.body["model"] == *name) {
            Some((_, told)) => Reply::stream(&told.to_string(), 100, Ending::Clean),
            None => Reply::error(404, "", &json!({"error": "no such path"})),
        }
    })
    .await
}

/// The timeout is short, and the machine may be busy: one of many attempts is fast enough.
async fn found(
    models: &[(&'static str, &str, Option<&[&str]>)],
    is_expected: impl Fn(&LocalOllama) -> bool,
) -> (LocalOllama, usize) {
    let http = http_client().unwrap();
    let mut last = (LocalOllama::Absent, 0);
    for _ in 0..50 {
        let server = local(models.to_vec()).await;
        last = (find_ollama(&server.address, &http).await, server.sent().len());
        if is_expected(&last.0) {
            break;
        }
    }
    last
}

const EMBEDDING: Option<&[&str]> = Some(&["embedding"]);
const WORDS_ONLY: Option<&[&str]> = Some(&["completion"]);
const TOOLS: Option<&[&str]> = Some(&["completion", "tools", "thinking"]);

#[tokio::test]
async fn a_model_with_tools_is_preferred_to_one_that_can_only_chat() {
    for (models, expected) in [
        (vec![("nomic-embed-text:latest", "nomic-bert", EMBEDDING), (NAME, "qwen3", TOOLS)], NAME),
        (vec![("qwen3-embedding:8b", "qwen3", EMBEDDING), (NAME, "qwen3", TOOLS)], NAME),
        (vec![("gemma:2b", "gemma", WORDS_ONLY), (NAME, "qwen3", TOOLS)], NAME),
        (vec![("all-minilm", "bert", None), ("gemma:2b", "gemma", WORDS_ONLY)], "gemma:2b"),
        // An old version reports no capabilities.
        (vec![("embeddinggemma", "gemma3", None), ("llama3", "llama", None)], "llama3"),
        (vec![("old", "llama", None), ("gemma:2b", "gemma", WORDS_ONLY)], "gemma:2b"),
    ] {
        let expected = LocalOllama::Has(expected.to_owned());
        assert_eq!(found(&models, |it| *it == expected).await.0, expected);
    }
}

#[tokio::test]
async fn an_ollama_without_a_model_that_can_chat_is_recognized() {
    for models in [
        vec![],
        vec![("nomic-embed-text", "nomic-bert", None)],
        vec![("qwen3-embedding:8b", "qwen3", EMBEDDING)],
    ] {
        let is_expected = |it: &LocalOllama| *it == LocalOllama::CannotChat;
        assert_eq!(found(&models, is_expected).await.0, LocalOllama::CannotChat);
    }
}

#[tokio::test]
async fn details_are_requested_for_a_few_models_only() {
    let names: [&'static str; 30] =
        std::array::from_fn(|nth| if nth == 0 { "first" } else { "more" });
    let models: Vec<_> = names.map(|name| (name, "llama", WORDS_ONLY)).into();
    let (found, asked) = found(&models, |it| *it == LocalOllama::Has("first".to_owned())).await;
    assert_eq!(found, LocalOllama::Has("first".to_owned()));
    assert!(asked <= 9, "the list, and {} models", asked - 1);
}

#[tokio::test]
async fn an_ollama_that_does_not_respond_in_time_is_absent() {
    let http = http_client().unwrap();
    let hung = Server::start(vec![Reply::stream("{", 1, Ending::Silent)]).await;
    let asked = find_ollama(&hung.address, &http);
    let found = tokio::time::timeout(Duration::from_secs(60), asked).await.unwrap();
    assert_eq!(found, LocalOllama::Absent);
    let other = Server::start(vec![Reply::stream("<html>", 9, Ending::Clean)]).await;
    assert_eq!(find_ollama(&other.address, &http).await, LocalOllama::Absent);
    assert_eq!(find_ollama("no address", &http).await, LocalOllama::Absent);
}
