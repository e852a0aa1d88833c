//! Classification and handling of errors of all providers.

use std::time::Duration;

use futures_util::StreamExt as _;
use openclaw_models::{
    ApiKind, Chunk, Completion, Message, ModelError, ProviderSettings, StopReason, http_client,
    open,
};
use openclaw_secrets::SecretString;
use serde_json::{Value, json};
use tokio::net::TcpSocket;

use crate::server::{Ending, Reply, Server, events};
use crate::{KEY, asking, collect, model};

/// Returns the error for a response with an error status. The server sends it for every retry.
async fn told(kind: ApiKind, status: u16, header: &str, body: &Value) -> ModelError {
    let reply = Reply::error(status, header, body);
    let server = Server::start(vec![reply; 4]).await;
    let (_, error) = collect(&*model(&server, kind, "m"), asking(vec![Message::user("hi")])).await;
    error.unwrap()
}

#[tokio::test]
async fn a_rejected_key_is_reported_without_any_part_of_it() {
    let openai = json!({"error": {"message": format!("Incorrect API key provided: {KEY}"),
        "type": "invalid_request_error", "param": null, "code": "invalid_api_key"}});
    let anthropic = json!({"type": "error",
        "error": {"type": "authentication_error", "message": "invalid x-api-key"}});
    let gemini = json!({"error": {"code": 400, "message": "API key not valid.",
        "status": "INVALID_ARGUMENT", "details": [{"reason": "API_KEY_INVALID"}]}});
    for (kind, status, body, words) in [
        (ApiKind::OpenAi, 401, openai, "Incorrect API key provided: [REDACTED]"),
        (ApiKind::Anthropic, 401, anthropic, "invalid x-api-key"),
        (ApiKind::Gemini, 400, gemini, "API key not valid."),
    ] {
        let error = told(kind, status, "", &body).await;
        let expected = ModelError::Auth { provider: "mine".into(), message: words.into() };
        assert_eq!(error, expected);
        assert!(error.to_string().contains("models.providers.mine.apiKey"), "{error}");
        assert!(!error.is_passing(), "it is not retried");
    }
}

#[tokio::test]
async fn secrets_that_a_provider_repeats_are_not_passed_on() {
    let message = format!("bad\nrequest: {KEY} header-that-nobody-sees {}", "x".repeat(1_000));
    let error = told(ApiKind::OpenAi, 400, "", &json!({"error": {"message": message}})).await;
    let ModelError::Rejected { message, .. } = &error else { panic!("{error:?}") };
    assert!(message.starts_with("bad request: [REDACTED] [REDACTED] xxx"), "{message}");
    assert!(message.chars().count() < 310, "{message}");
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_recognized() {
    let openai = json!({"error": {"message": "This model's maximum context length is 8192 tokens.",
        "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}});
    let anthropic = json!({"type": "error", "error": {"type": "invalid_request_error",
        "message": "prompt is too long: 210000 tokens > 200000 maximum"}});
    let gemini = json!([{"error": {"code": 400, "status": "INVALID_ARGUMENT", "message":
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}}]);
    for (kind, body) in
        [(ApiKind::OpenAi, openai), (ApiKind::Anthropic, anthropic), (ApiKind::Gemini, gemini)]
    {
        assert_eq!(told(kind, 400, "", &body).await, ModelError::ContextTooLong);
    }
}

#[tokio::test]
async fn a_tool_that_is_refused_is_named() {
    let openai = json!({"error": {"message": "Invalid schema for function 'add': schema must have \
        type 'object'", "type": "invalid_request_error", "param": "tools[1].function.parameters",
        "code": "invalid_function_parameters"}});
    let anthropic = json!({"type": "error", "error": {"type": "invalid_request_error",
        "message": "tools.1.custom.input_schema: JSON schema is invalid."}});
    let gemini = json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message":
        "Invalid value at 'tools[0].function_declarations[1].parameters.properties'"}});
    for (kind, body) in [
        (ApiKind::OpenAi, openai.clone()),
        (ApiKind::OpenAiResponses, openai),
        (ApiKind::Anthropic, anthropic),
        (ApiKind::Gemini, gemini),
    ] {
        let error = told(kind, 400, "", &body).await;
        let ModelError::ToolRejected { tool, .. } = &error else { panic!("{error:?}") };
        assert_eq!(tool, "add");
    }
}

#[tokio::test]
async fn a_model_that_cannot_use_tools_is_reported_and_remembered() {
    let ollama = json!({"error": "registry.ollama.ai/library/gemma:latest does not support tools"});
    let openai =
        |words: &str| json!({"error": {"message": words, "type": "invalid_request_error"}});
    for (kind, status, body) in [
        (ApiKind::Ollama, 400, ollama.clone()),
        (
            ApiKind::OpenAi,
            400,
            openai("registry.ollama.ai/library/gemma:latest does not support tools"),
        ),
        (ApiKind::OpenAi, 400, openai("`tool calling` is not supported with this model")),
        (ApiKind::OpenAi, 404, openai("No endpoints found that support tool use.")),
        (ApiKind::OpenAi, 500, openai("tools param requires --jinja flag")),
        (ApiKind::OpenAi, 400, openai("\"auto\" tool choice requires --enable-auto-tool-choice")),
        (ApiKind::Gemini, 400, openai("Function calling is not enabled for models/gemma-3-27b-it")),
    ] {
        let server = Server::start(vec![Reply::error(status, "", &body)]).await;
        let model = model(&server, kind, "m");
        assert!(model.takes_tools());
        let (_, error) = collect(&*model, asking(vec![Message::user("hi")])).await;
        assert!(
            matches!(&error, Some(ModelError::NoTools { model, .. }) if model == "mine/m"),
            "{error:?}"
        );
        assert!(!model.takes_tools());
    }
    // Without tools in the request, the cause is another one.
    let server = Server::start(vec![Reply::error(400, "", &ollama)]).await;
    let model = model(&server, ApiKind::Ollama, "m");
    let mut request = asking(vec![Message::user("hi")]);
    request.tools.clear();
    assert!(matches!(collect(&*model, request).await.1, Some(ModelError::Rejected { .. })));
    assert!(model.takes_tools());
}

#[tokio::test]
async fn other_errors_say_what_can_be_done() {
    let says = |words: &str| json!({"error": {"message": words}});
    let quota = json!({"error": {"message": "You exceeded your current quota",
        "type": "insufficient_quota", "code": "insufficient_quota"}});
    for quota in [quota, says("You exceeded your current quota, check your plan.")] {
        let error = told(ApiKind::OpenAi, 429, "", &quota).await;
        assert!(matches!(error, ModelError::OutOfCredit { .. }) && !error.is_passing(), "{error}");
        assert!(error.to_string().contains("quota left: You exceeded your current"), "{error}");
    }
    let page = Value::from("<html><body>Bad gateway</body></html>");
    let error = told(ApiKind::OpenAi, 502, "", &page).await;
    assert!(error.to_string().contains("failed: HTTP 502"), "{error}");
    let missing = json!({"error": "model 'm' not found"});
    let error = told(ApiKind::Ollama, 404, "", &missing).await;
    assert!(error.to_string().contains("`mine/m` not found: model 'm' not found"), "{error}");
    let error = told(ApiKind::OpenAi, 418, "", &says("")).await;
    assert_eq!(error.to_string(), "the model provider `mine` rejected the request: HTTP 418");
    let error = told(ApiKind::OpenAi, 429, "retry-after: 3000", &says("Slow down.")).await;
    let retry_after = Some(Duration::from_secs(3_000));
    let (provider, message) = ("mine".into(), "Slow down.".into());
    assert_eq!(error, ModelError::RateLimited { provider, message, retry_after });
    let words = "rate limited by the model provider `mine`: Slow down; retry in 3000 s";
    assert_eq!(error.to_string(), words);
    let wait = json!([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "quota",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "90s"}]}}]);
    let error = told(ApiKind::Gemini, 429, "", &wait).await;
    assert_eq!(error.retry_after(), Some(Duration::from_secs(90)));
}

#[tokio::test]
async fn transient_errors_are_retried_after_the_wait() {
    let limited = Reply::error(429, "retry-after: 0", &json!({"error": {"message": "slow"}}));
    let trouble = Reply::error(
        529,
        "retry-after-ms: 5",
        &json!({"type": "error",
        "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    );
    let delta = json!({"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]});
    let stream = format!("{}data: [DONE]\n\n", events(&[("", delta)]));
    let answer = Reply::stream(&stream, 9, Ending::Clean);
    let server = Server::start(vec![limited, trouble, answer]).await;
    let model = model(&server, ApiKind::OpenAi, "m");
    let (answer, error) = collect(&*model, asking(vec![Message::user("hi")])).await;
    assert_eq!((answer.text.as_str(), error), ("hi", None));
    assert_eq!(server.sent().len(), 3);
}

#[tokio::test]
async fn a_server_with_another_protocol_is_reported_as_invalid() {
    let page = "<html>\n\n<body>hello</body>\n\n</html>";
    for (kind, page) in [
        (ApiKind::OpenAi, page),
        (ApiKind::Anthropic, page),
        (ApiKind::Gemini, page),
        (ApiKind::Ollama, page),
        (ApiKind::OpenAi, "data: {\"a\n\n"),
        (ApiKind::Gemini, "data: \u{0}\n\n"),
    ] {
        let server = Server::start(vec![Reply::stream(page, 9, Ending::Clean)]).await;
        let request = asking(vec![Message::user("hi")]);
        let (answer, error) = collect(&*model(&server, kind, "m"), request).await;
        assert_eq!(answer, Completion::default());
        let error = error.unwrap();
        assert!(matches!(error, ModelError::Invalid { .. }), "{kind:?}: {error:?}");
        assert!(error.to_string().contains("baseUrl"), "{kind:?}: {error}");
    }
}

#[tokio::test]
async fn an_empty_stream_is_retried() {
    let delta = json!({"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]});
    let stream = format!("{}data: [DONE]\n\n", events(&[("", delta)]));
    let nothing = Reply::stream("", 9, Ending::Clean);
    let server = Server::start(vec![nothing, Reply::stream(&stream, 9, Ending::Clean)]).await;
    let model = model(&server, ApiKind::OpenAi, "m");
    let (answer, error) = collect(&*model, asking(vec![Message::user("hi")])).await;
    assert_eq!((answer.text.as_str(), error), ("hi", None));
    assert_eq!(server.sent().len(), 2);
}

#[tokio::test]
async fn an_endless_answer_is_cut_off_and_its_text_is_kept() {
    let part = "x".repeat(100_000);
    let delta = json!({"choices": [{"delta": {"content": part}}]});
    let endless = events(&[("", delta)]).repeat(100);
    let server = Server::start(vec![Reply::stream(&endless, 100_000, Ending::Silent)]).await;
    let model = model(&server, ApiKind::OpenAi, "m");
    let (answer, error) = collect(&*model, asking(vec![Message::user("hi")])).await;
    assert_eq!((answer.stop_reason, error), (Some(StopReason::Length), None));
    assert!((4 << 20..5 << 20).contains(&answer.text.len()), "{}", answer.text.len());
    server.until_left().await;
}

#[tokio::test]
async fn a_message_without_an_end_is_aborted() {
    for (kind, begin) in [(ApiKind::OpenAi, "data: "), (ApiKind::Ollama, "")] {
        let endless = format!("{begin}{}", "x".repeat(30 << 20));
        let server = Server::start(vec![Reply::stream(&endless, 1 << 20, Ending::Silent)]).await;
        let request = asking(vec![Message::user("hi")]);
        let (answer, error) = collect(&*model(&server, kind, "m"), request).await;
        assert_eq!(answer, Completion::default());
        assert!(matches!(error, Some(ModelError::Invalid { .. })), "{kind:?}: {error:?}");
        server.until_left().await;
    }
}

#[tokio::test]
async fn a_call_whose_arguments_have_no_end_is_not_made() {
    let part = "x".repeat(100_000);
    let call = json!({"index": 0, "id": "a", "function": {"name": "add", "arguments": part}});
    let delta = json!({"choices": [{"delta": {"tool_calls": [call]}}]});
    let end = json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]});
    let stream = events(&[("", delta)]).repeat(50) + &events(&[("", end)]) + "data: [DONE]\n\n";
    let server = Server::start(vec![Reply::stream(&stream, 100_000, Ending::Clean)]).await;
    let model = model(&server, ApiKind::OpenAi, "m");
    let (answer, error) = collect(&*model, asking(vec![Message::user("hi")])).await;
    assert_eq!((answer.stop_reason, error), (Some(StopReason::Length), None));
    assert!(answer.tool_uses.is_empty());
}

#[tokio::test]
async fn a_silent_provider_times_out() {
    let begun = "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n";
    // Long enough for the text to arrive on a busy machine.
    for (sent, words, silence) in [("", "", 300), (begun, "Hel", 15_000)] {
        let server = Server::start(vec![Reply::stream(sent, 9, Ending::Silent)]).await;
        let mut settings = ProviderSettings::new("mine", ApiKind::OpenAi);
        settings.base_url = Some(server.address.clone());
        settings.silence = Duration::from_millis(silence);
        let model = open("mine/m", &[settings], http_client().unwrap()).unwrap();
        let (answer, error) = collect(&*model, asking(vec![Message::user("hi")])).await;
        assert_eq!(error, Some(ModelError::Silent(Duration::from_millis(silence))));
        assert_eq!(answer.text, words);
        for sent in server.sent() {
            assert!(!sent.head.contains("authorization"), "no key, no header: {}", sent.head);
        }
    }
}

#[tokio::test]
async fn dropping_an_answer_cancels_the_request() {
    let begun = "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n";
    let server = Server::start(vec![Reply::stream(begun, 9, Ending::Silent)]).await;
    let model = model(&server, ApiKind::OpenAi, "m");
    let mut answer = model.stream(asking(vec![Message::user("hi")]));
    assert_eq!(answer.next().await, Some(Ok(Chunk::Text("Hel".into()))));
    drop(answer);
    server.until_left().await;
}

#[tokio::test]
async fn a_refused_connection_is_reported_without_the_address() {
    // Bound, so that no other process listens there meanwhile.
    let held = TcpSocket::new_v4().unwrap();
    held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = held.local_addr().unwrap();
    let mut settings = ProviderSettings::new("mine", ApiKind::OpenAi);
    settings.base_url = Some(format!("http://{address}/v1?token=hidden"));
    let model = open("mine/m", &[settings], http_client().unwrap()).unwrap();
    let (_, error) = collect(&*model, asking(vec![Message::user("hi")])).await;
    let error = error.unwrap();
    assert!(matches!(error, ModelError::Unreachable { .. }), "{error:?}");
    let words = error.to_string();
    assert!(!words.contains("hidden") && !words.contains(&address.to_string()), "{words}");
}

#[tokio::test]
async fn invalid_settings_are_rejected_by_open() {
    let http = http_client().unwrap();
    let words = |model: &str, settings: &[ProviderSettings]| {
        open(model, settings, http.clone()).unwrap_err().to_string()
    };
    assert!(words("claude", &[]).contains("anthropic/claude-sonnet-4-5"));
    assert!(words("nobody/x", &[]).contains("models.providers"));
    assert!(words("openai/gpt-4o", &[]).contains("$OPENAI_API_KEY"));
    assert!(open("ollama/qwen3:8b", &[], http.clone()).is_ok(), "it needs no key");
    let mut settings = ProviderSettings::new("openai", ApiKind::OpenAi);
    settings.api_key = Some(SecretString::from("two\nlines"));
    assert!(words("openai/gpt-4o", &[settings.clone()]).contains("line break"));
    settings.api_key = Some(SecretString::from(KEY));
    let model = open("openai/gpt-4o", &[settings.clone()], http.clone()).unwrap();
    assert!(!format!("{model:?} {settings:?}").contains(KEY));
    assert_eq!((model.name(), model.context_tokens()), ("openai/gpt-4o", 128_000));
    settings.context_tokens = Some(5);
    assert_eq!(open("openai/gpt-4o", &[settings], http).unwrap().context_tokens(), 5);
}

#[tokio::test]
async fn an_empty_answer_is_an_answer() {
    let end = json!({"choices": [{"delta": {}, "finish_reason": "stop"}]});
    let stream = format!("{}data: [DONE]\n\n", events(&[("", end)]));
    let server = Server::start(vec![Reply::stream(&stream, 9, Ending::Clean)]).await;
    let model = model(&server, ApiKind::OpenAi, "m");
    let (answer, error) = collect(&*model, asking(vec![Message::user("")])).await;
    assert_eq!((answer.stop_reason, error), (Some(StopReason::Done), None));
    assert_eq!(server.sent()[0].body["messages"][1]["content"], "(nothing)");
}
