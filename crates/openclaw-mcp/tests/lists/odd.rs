//! Lists that deviate from the protocol.

use openclaw_mcp_client::listing::{ListedPrompt, ListedResource};
use openclaw_mcp_client::process::ShutdownTimeouts;
use openclaw_mcp_client::wire::CallError;
use serde_json::json;

use crate::support::{LIMITS, answering, connect};

#[tokio::test]
async fn an_empty_cursor_ends_the_list() {
    let page = json!({ "tools": [{ "name": "a", "inputSchema": {} }], "nextCursor": "" });
    let answers = json!({ "tools/list": [{ "result": page }, { "result": 7 }] });
    let connection = connect(answering(answers)).await;
    let listing = connection.list_tools(LIMITS).await.unwrap();
    assert_eq!((listing.entries.len(), listing.cut), (1, None));
    connection.close(ShutdownTimeouts::default()).await;
}

#[tokio::test]
async fn a_value_that_is_not_a_list_is_an_error_and_null_is_empty() {
    let answers = json!({
        "tools/list": [{ "result": { "tools": "\u{1b}[31m".repeat(300) } }],
        "resources/list": [{ "result": { "resources": [], "nextCursor": 7 } }],
        "prompts/list": [{ "result": { "prompts": null } }],
    });
    let connection = connect(answering(answers)).await;
    match connection.list_tools(LIMITS).await {
        Err(CallError::Protocol(message)) => {
            assert!(message.contains("tools/list is invalid"), "{message}");
            assert!(message.chars().count() < 300 && !message.contains('\u{1b}'), "{message}");
        }
        other => panic!("{other:?}"),
    }
    let resources = connection.list::<ListedResource>(LIMITS).await;
    assert!(matches!(resources, Err(CallError::Protocol(_))), "{resources:?}");
    let prompts = connection.list::<ListedPrompt>(LIMITS).await.unwrap();
    assert_eq!((prompts.entries.len(), prompts.cut), (0, None));
    connection.close(ShutdownTimeouts::default()).await;
}

#[tokio::test]
async fn a_later_page_that_is_not_a_list_truncates_the_listing() {
    let tool = json!({ "name": "a", "inputSchema": {} });
    let answers = json!({ "tools/list": [
        { "result": { "tools": [tool], "nextCursor": "b" } },
        { "result": { "tools": "x" } },
    ] });
    let connection = connect(answering(answers)).await;
    let listing = connection.list_tools(LIMITS).await.unwrap();
    assert_eq!(listing.entries.len(), 1);
    assert_eq!(listing.cut, Some("a page is not a list"));
    connection.close(ShutdownTimeouts::default()).await;
}

#[tokio::test]
async fn null_in_a_prompt_counts_as_absent_and_a_bad_prompt_is_named() {
    let prompts = json!([
        { "name": "a", "arguments": null },
        { "name": "b", "arguments": [{ "name": "x", "required": null }] },
        { "name": "bad", "title": ["\u{7}".repeat(10)], "arguments": "\u{202e}x".repeat(500) },
        { "name": 7 },
        { "name": "large", "description": "x".repeat(60_000) },
    ]);
    let answers = json!({ "prompts/list": [{ "result": { "prompts": prompts } }] });
    let connection = connect(answering(answers)).await;
    let listing = connection.list::<ListedPrompt>(LIMITS).await.unwrap();
    let names: Vec<&str> = listing.entries.iter().map(|prompt| prompt.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "large"]);
    assert!(!listing.entries[1].arguments[0].required);
    let names: Vec<&str> = listing.dropped.iter().map(|dropped| dropped.name.as_str()).collect();
    assert_eq!(names, ["bad", "(unnamed)"]);
    for dropped in &listing.dropped {
        assert!(dropped.reason.starts_with("invalid entry: "), "{dropped:?}");
        assert!(dropped.reason.chars().count() <= 200, "{dropped:?}");
        assert!(!dropped.reason.contains(['\u{7}', '\u{202e}']), "{dropped:?}");
    }
    connection.close(ShutdownTimeouts::default()).await;
}

#[tokio::test]
async fn an_entry_that_is_not_an_object_is_reported() {
    let entries =
        json!(["a", 7, null, ["a", null, null, {}, {}], { "name": "a", "inputSchema": {} }]);
    let answers = json!({ "tools/list": [{ "result": { "tools": entries } }] });
    let connection = connect(answering(answers)).await;
    let listing = connection.list_tools(LIMITS).await.unwrap();
    assert_eq!(listing.entries.len(), 1);
    assert_eq!(listing.dropped.len(), 4);
    for dropped in &listing.dropped {
        assert_eq!(dropped.reason, "the entry is not an object");
    }
    connection.close(ShutdownTimeouts::default()).await;
}
