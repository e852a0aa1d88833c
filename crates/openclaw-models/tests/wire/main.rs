//! Each provider's wire format, byte for byte, against a test server: requests, answers, and failures.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]
#![allow(clippy::needless_pass_by_value, reason = "`json!` makes values, and is easier to read so")]

mod anthropic;
mod failures;
mod files;
mod gemini;
mod ollama;
mod openai;
mod provenance;
mod responses;
mod server;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use openclaw_content::Text;
use openclaw_models::{
    ApiKind, Completion, Message, Model, ModelError, ModelRequest, Part, ProviderSettings,
    StopReason, ToolOffer, ToolResult, ToolUse, Usage, http_client, open,
};
use openclaw_secrets::SecretString;
use serde_json::{Value, json};
use server::{Ending, Reply, Server};

/// Text that is split inside its characters.
const WORDS: &str = "Grüße, 世界 🦀!";
const KEY: &str = "key-that-nobody-sees";
const SIZES: [usize; 3] = [1, 7, 100_000];

fn model(server: &Server, kind: ApiKind, name: &str) -> Arc<dyn Model> {
    let mut settings = ProviderSettings::new("mine", kind);
    settings.base_url = Some(server.address.clone());
    settings.api_key = Some(SecretString::from(KEY));
    settings.headers = vec![("X-Extra".into(), SecretString::from("header-that-nobody-sees"))];
    settings.silence = Duration::from_secs(60);
    open(&format!("mine/{name}"), &[settings], http_client().unwrap()).unwrap()
}

fn asking(messages: Vec<Message>) -> ModelRequest {
    let tool = |name: &str| {
        let schema = json!({"type": "object", "properties": {"a": {"type": "number"}}});
        let (name, description) = (name.to_owned(), format!("does {name}"));
        Arc::new(ToolOffer { name, description, schema: Arc::new(schema) })
    };
    ModelRequest {
        system: vec![Text::ours("Be brief.")],
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: vec![tool("web_search"), tool("add")],
        max_output_tokens: Some(1_000),
        ..ModelRequest::default()
    }
}

/// Returns the answer, and the error if there was one.
async fn collect(model: &dyn Model, request: ModelRequest) -> (Completion, Option<ModelError>) {
    let mut answer = Completion::default();
    let mut chunks = model.stream(request);
    let all = async {
        while let Some(chunk) = chunks.next().await {
            match chunk {
                Ok(chunk) => answer.push(chunk),
                Err(error) => {
                    assert!(chunks.next().await.is_none(), "nothing comes after an error");
                    return Some(error);
                }
            }
        }
        None
    };
    let error = tokio::time::timeout(Duration::from_secs(60), all).await.unwrap();
    assert_eq!(error.is_none(), answer.stop_reason.is_some(), "an answer has an end, or fails");
    (answer, error)
}

/// Requests an answer with the stream in chunks of each size: the answer is always the same.
async fn answer_to(
    kind: ApiKind,
    name: &str,
    text: &str,
    ending: Ending,
) -> (Completion, Option<ModelError>) {
    let mut last = None;
    for size in SIZES {
        let server = Server::start(vec![Reply::stream(text, size, ending)]).await;
        let model = model(&server, kind, name);
        let got = collect(&*model, asking(vec![Message::user("hi")])).await;
        if let Some(before) = last.replace(got.clone()) {
            assert_eq!(got, before, "in pieces of {size}");
        }
    }
    last.unwrap()
}

/// Asserts that the stream is the answer [`WORDS`], with this usage.
async fn assert_words(kind: ApiKind, name: &str, stream: &str, usage: Usage) {
    let (answer, error) = answer_to(kind, name, stream, Ending::Clean).await;
    assert_eq!(error, None);
    assert_eq!((answer.text.as_str(), answer.stop_reason), (WORDS, Some(StopReason::Done)));
    assert_eq!(answer.usage, Some(usage));
}

/// Asserts that a stream of the text `Hel` without an end is interrupted, however it is closed.
async fn assert_interrupted(kind: ApiKind, name: &str, stream: &str) {
    for ending in [Ending::Clean, Ending::Broken] {
        let (answer, error) = answer_to(kind, name, stream, ending).await;
        assert_eq!((answer.text.as_str(), error), ("Hel", Some(ModelError::Interrupted)));
    }
}

/// Returns the head and the body of the request for these messages.
async fn body_of(kind: ApiKind, name: &str, messages: Vec<Message>) -> (String, Value) {
    let refusal = json!({"error": {"message": "no"}});
    let server = Server::start(vec![Reply::error(400, "", &refusal)]).await;
    let model = model(&server, kind, name);
    let (_, error) = collect(&*model, asking(messages)).await;
    let (provider, message) = ("mine".into(), "no".into());
    assert_eq!(error, Some(ModelError::Rejected { provider, message }));
    let sent = server.sent().remove(0);
    (sent.head, sent.body)
}

fn image() -> Part {
    Part::Image { mime_type: "image/png".into(), data: "iVBO".into() }
}

/// The user sends an image; the model makes two calls, one with arguments that are not JSON; one
/// result is an image, the other an error.
fn conversation() -> Vec<Message> {
    let call = |id: &str, arguments: &str| ToolUse {
        id: id.into(),
        name: "add".into(),
        arguments: arguments.into(),
    };
    let result = |id: &str, parts, is_error| ToolResult {
        id: id.into(),
        name: "add".into(),
        parts,
        is_error,
    };
    vec![
        Message::User { parts: vec![Part::Text(Text::user("look")), image()] },
        Message::Assistant {
            text: "I look.".into(),
            reasoning: None,
            tool_uses: vec![call("c1", r#"{"a": 1}"#), call("c2", "{\"a\"")],
            parts: Vec::new(),
        },
        Message::Tool {
            results: vec![
                result("c1", vec![Part::ours("seen"), image()], false),
                result("c2", vec![Part::ours("no JSON")], true),
            ],
        },
    ]
}

/// A tool as the APIs want it; `parameters` is their word for its schema.
fn tool(name: &str, parameters: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"a": {"type": "number"}}});
    json!({"name": name, "description": format!("does {name}"), parameters: schema})
}

fn calls(answer: &Completion) -> Vec<(&str, &str, &str)> {
    let calls = answer.tool_uses.iter();
    calls.map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_str())).collect()
}

#[tokio::test]
async fn options_are_sent_in_the_format_of_each_provider() {
    let stop = json!(["END"]);
    for (kind, expected) in [
        (ApiKind::Anthropic, vec![("/temperature", json!(0.5)), ("/stop_sequences", stop.clone())]),
        (ApiKind::OpenAi, vec![("/temperature", json!(0.5)), ("/stop", stop.clone())]),
        (ApiKind::OpenAi, vec![("/tool_choice", json!("required"))]),
        (ApiKind::OpenAiResponses, vec![("/temperature", json!(0.5)), ("/stop", Value::Null)]),
        (
            ApiKind::Gemini,
            vec![
                ("/generationConfig/temperature", json!(0.5)),
                ("/generationConfig/stopSequences", stop.clone()),
            ],
        ),
        (
            ApiKind::Ollama,
            vec![("/options/temperature", json!(0.5)), ("/options/stop", stop.clone())],
        ),
    ] {
        let refusal = json!({"error": {"message": "no"}});
        let server = Server::start(vec![Reply::error(400, "", &refusal)]).await;
        let request = ModelRequest {
            temperature: Some(0.5),
            stop_sequences: vec!["END".into()],
            must_use_tool: true,
            ..asking(vec![Message::user("hi")])
        };
        collect(&*model(&server, kind, "some"), request).await;
        let body = server.sent().remove(0).body;
        for (place, value) in expected {
            let found = body.pointer(place).cloned().unwrap_or_default();
            assert_eq!(found, value, "{kind:?} {place}: {body}");
        }
    }
}
