//! The offline model: the commands that it understands, and its replies.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use std::sync::Arc;

use futures_util::StreamExt as _;
use openclaw_content::{Source, Text, Untrusted};
use openclaw_models::{
    Completion, Message, Model as _, ModelRequest, Offline, Part, StopReason, ToolOffer, ToolResult,
};
use serde_json::{Value, json};

fn tool(name: &str, schema: Value) -> Arc<ToolOffer> {
    let (name, description) = (name.to_owned(), "a tool".to_owned());
    Arc::new(ToolOffer { name, description, schema: Arc::new(schema) })
}

fn object(properties: &Value) -> Value {
    json!({"type": "object", "properties": properties})
}

fn tools() -> Vec<Arc<ToolOffer>> {
    let number = json!({"type": "number"});
    let text = json!({"type": "string"});
    vec![
        tool("mcp_demo_echo", object(&json!({"text": text}))),
        tool("mcp_demo_add", object(&json!({"note": text, "a": number, "b": {"type": "integer"}}))),
        tool("mcp_demo_now", object(&json!({"offset_minutes": {"type": "integer"}}))),
        tool("list", object(&json!({"path": text, "depth": number}))),
        tool("read", object(&json!({"offset": number, "path": text}))),
        tool("mcp_resources", object(&json!({"server": text, "uri": text}))),
    ]
}

async fn ask(messages: Vec<Message>, tools: Vec<Arc<ToolOffer>>) -> Completion {
    let messages = messages.into_iter().map(Arc::new).collect();
    let request = ModelRequest { messages, tools, ..ModelRequest::default() };
    let mut answer = Completion::default();
    let mut chunks = Offline.stream(request);
    while let Some(chunk) = chunks.next().await {
        answer.push(chunk.unwrap());
    }
    answer
}

async fn calls(words: &str) -> Vec<(String, String)> {
    let answer = ask(vec![Message::user(words)], tools()).await;
    let expected = if answer.tool_uses.is_empty() { StopReason::Done } else { StopReason::ToolUse };
    assert_eq!(answer.stop_reason, Some(expected), "{words}");
    answer.tool_uses.into_iter().map(|call| (call.name, call.arguments)).collect()
}

#[tokio::test]
async fn simple_words_become_calls() {
    for (words, tool, arguments) in [
        ("What time is it?", "mcp_demo_now", "{}"),
        ("please tell me the time", "mcp_demo_now", "{}"),
        ("add 2 and 3", "mcp_demo_add", r#"{"a":2,"b":3}"#),
        ("2 + 3", "mcp_demo_add", r#"{"a":2,"b":3}"#),
        ("What is 7.5 plus -8?", "mcp_demo_add", r#"{"a":7.5,"b":-8}"#),
        ("echo Grüße, Welt", "mcp_demo_echo", r#"{"text":"Grüße, Welt"}"#),
        ("list files", "list", "{}"),
        ("list the files in src/a", "list", r#"{"path":"src/a"}"#),
        ("read file notes.txt", "read", r#"{"path":"notes.txt"}"#),
        ("read note about tea", "mcp_resources", "{}"),
        ("/call mcp_demo_add {\"a\": 1; \"b\"", "mcp_demo_add", "{\"a\": 1; \"b\""),
        ("/call echo {\"text\":\"x\"}", "mcp_demo_echo", "{\"text\":\"x\"}"),
        ("/call not_there", "not_there", "{}"),
    ] {
        assert_eq!(calls(words).await, [(tool.to_owned(), arguments.to_owned())], "{words}");
    }
}

#[tokio::test]
async fn several_commands_become_parallel_calls() {
    let answer = ask(
        vec![Message::user("add 1 and 2 and then echo hi; what time is it; sing a song")],
        tools(),
    )
    .await;
    let names: Vec<_> = answer.tool_uses.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(names, ["mcp_demo_add", "mcp_demo_echo", "mcp_demo_now"]);
    let ids: Vec<_> = answer.tool_uses.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["offline-1", "offline-2", "offline-3"]);
    assert_eq!(answer.text, "I did not understand “sing a song”; doing the rest.");
}

fn result(name: &str, text: Text, is_error: bool) -> ToolResult {
    let parts = vec![Part::Text(text)];
    ToolResult { id: "offline-1".into(), name: name.into(), parts, is_error }
}

fn outside(text: &str) -> Text {
    Text::outside(Untrusted::new(text.to_owned()), Source::mcp_tool("demo", "x")).unwrap()
}

async fn after(words: &str, results: Vec<ToolResult>) -> Completion {
    let called = ask(vec![Message::user(words)], tools()).await.into_message();
    ask(vec![Message::user(words), called, Message::Tool { results }], tools()).await
}

#[tokio::test]
async fn results_are_repeated_in_the_answer() {
    let results = vec![
        result("mcp_demo_add", outside("5"), false),
        result("mcp_demo_echo", Text::ours("no such server"), true),
        result("list", outside("a\n---\nb"), false),
    ];
    let answer = after("add 2 and 3 and then echo hi; list files", results).await;
    assert_eq!(
        answer.text,
        "`mcp_demo_add` returned: 5\n\
         `mcp_demo_echo` failed: no such server\n\
         `list` returned:\na\n---\nb"
    );
    assert_eq!(answer.stop_reason, Some(StopReason::Done));
    assert!(answer.tool_uses.is_empty());
    assert!(answer.usage.unwrap().input_tokens > answer.usage.unwrap().output_tokens);
}

#[tokio::test]
async fn a_long_result_is_truncated() {
    let answer =
        after("list files", vec![result("list", outside(&"ä".repeat(5_000)), false)]).await;
    assert!(answer.text.ends_with("ä… (4000 more characters)"), "{}", answer.text);
}

#[tokio::test]
async fn a_resource_is_looked_up_before_it_is_read() {
    let listed = "demo  demo://other  Other: things\ndemo  demo://notes  Notes: about tea";
    let listed = result("mcp_resources", outside(listed), false);
    let answer = after("read the notes", vec![listed.clone()]).await;
    let expected = r#"{"server":"demo","uri":"demo://notes"}"#;
    assert_eq!(answer.tool_uses[0].arguments, expected);
    assert_eq!(answer.tool_uses[0].id, "offline-2", "ids are unique");

    let said = Message::Tool { results: vec![result("mcp_resources", outside("Hot."), false)] };
    let listing = Message::Tool { results: vec![listed.clone()] };
    let rounds = vec![
        Message::user("read the notes"),
        Message::assistant(""),
        listing,
        answer.into_message(),
        said,
    ];
    let answer = ask(rounds, tools()).await;
    assert!(answer.tool_uses.is_empty());
    assert_eq!(answer.text, "`mcp_resources` returned: Hot.", "the list is not repeated");

    let answer = after("list resources", vec![listed]).await;
    assert!(answer.tool_uses.is_empty(), "only a listing was requested");
}

#[tokio::test]
async fn it_describes_itself_its_tools_and_how_to_use_a_real_model() {
    let answer = ask(vec![Message::user("Write me a poem")], tools()).await;
    for words in ["not a language model", "mcp_demo_add", "“add 2 and 3”", "agents.defaults.model"]
    {
        assert!(answer.text.contains(words), "{words}: {}", answer.text);
    }
    let answer = ask(Vec::new(), Vec::new()).await;
    assert!(answer.text.contains("I have no tools."), "{}", answer.text);
}

#[tokio::test]
async fn a_command_without_a_matching_tool_makes_no_call() {
    let answer = ask(vec![Message::user("what time is it")], Vec::new()).await;
    assert!(answer.tool_uses.is_empty() && answer.text.contains("I have no tools."));
}

#[tokio::test]
async fn external_text_is_not_a_command() {
    let parts = vec![Part::ours("I chose a prompt:"), Part::Text(outside("add 2 and 3"))];
    let answer = ask(vec![Message::User { parts }], tools()).await;
    assert!(answer.tool_uses.is_empty(), "{answer:?}");
}

#[tokio::test]
async fn a_sampling_request_is_answered_with_a_call_or_with_text() {
    let sampling = |text: &str| {
        let source = Source::mcp_sampling("x");
        Part::Text(Text::outside(Untrusted::new(text.to_owned()), source).unwrap())
    };
    let parts = |text: &str| vec![Part::ours("The server asks:"), sampling(text)];
    let answer = ask(vec![Message::User { parts: parts("Which tea?") }], Vec::new()).await;
    assert!(answer.text.ends_with("You asked: Which tea?"), "{answer:?}");
    let answer = ask(vec![Message::User { parts: parts("add 2 and 3") }], tools()).await;
    assert_eq!(answer.tool_uses[0].name, "mcp_demo_add", "{answer:?}");
}

#[tokio::test]
async fn an_answer_is_truncated_to_its_maximum_length() {
    let request = ModelRequest {
        messages: vec![Arc::new(Message::user("sing a song"))],
        max_output_tokens: Some(3),
        ..ModelRequest::default()
    };
    let mut answer = Completion::default();
    let mut chunks = Offline.stream(request);
    while let Some(chunk) = chunks.next().await {
        answer.push(chunk.unwrap());
    }
    assert_eq!(
        (answer.text.as_str(), answer.stop_reason),
        ("Hello! I am ", Some(StopReason::Length))
    );
}
