//! Lists: long, odd, changing and endless ones.

use openclaw_testkit::{Cursor, Odd, Script, StdioClient, Tool};
use serde_json::{Value, json};

fn names(client: &mut StdioClient, cursor: Option<&str>) -> (Vec<Value>, Option<String>) {
    let params = cursor.map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
    let result = client.request("tools/list", &params)["result"].take();
    let names = result["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone());
    (names.collect(), result["nextCursor"].as_str().map(str::to_owned))
}

#[test]
fn ten_thousand_tools_come_in_pages() {
    let script = Script::new().tools([]).extra_tools(10_000).page_size(3000);
    let mut client = StdioClient::connect(&script);
    let (mut all, mut cursor) = names(&mut client, None);
    let mut pages = 1;
    while let Some(next) = cursor {
        let (more, following) = names(&mut client, Some(&next));
        all.extend(more);
        cursor = following;
        pages += 1;
    }
    assert_eq!((all.len(), pages), (10_000, 4));
    assert_eq!(client.call_text("tool_9999", &json!({"text": "x"})), r#"{"text":"x"}"#);
    let bad = client.request("tools/list", &json!({"cursor": "nonsense"}));
    assert_eq!(bad["error"]["code"], -32602);
}

#[test]
fn cursors_can_be_endless_or_the_same_again() {
    let mut client = StdioClient::connect(&Script::new().cursor(Cursor::Endless).page_size(2));
    let (_, first) = names(&mut client, None);
    let (page, second) = names(&mut client, first.as_deref());
    assert_eq!(page, ["endless_1_0", "endless_1_1"]);
    assert_ne!(first, second);
    let mut client = StdioClient::connect(&Script::new().cursor(Cursor::Repeating));
    let (page, cursor) = names(&mut client, None);
    assert_eq!(names(&mut client, cursor.as_deref()), (page, cursor));
}

#[test]
fn every_odd_tool_is_listed() {
    let mut client = StdioClient::connect(&Script::new().tools([]).odd_tools());
    let tools = client.request("tools/list", &json!({}))["result"]["tools"].take();
    let tools = tools.as_array().unwrap();
    assert_eq!(tools.len(), Odd::ALL.len() + 1, "the duplicate is there twice");
    let named = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
    assert_eq!(named("odd_schema_true")["inputSchema"], true);
    assert!(named("odd_schema_missing").get("inputSchema").is_none());
    assert_eq!(
        named("odd_huge_description")["description"].as_str().map(str::len),
        Some(1_000_000)
    );
    assert!(tools.iter().any(|tool| tool.is_string()));
    assert!(tools.iter().any(|tool| tool["name"].as_str().is_some_and(|name| name.len() == 300)));
}

#[test]
fn a_changed_list_is_announced_and_then_different() {
    let script = Script::new().tools([Tool::new("echo")]).list_changed_after_calls(2);
    let mut client = StdioClient::connect(&script);
    client.call("echo", &json!({}));
    assert_eq!(names(&mut client, None).0, ["echo"]);
    client.call("echo", &json!({}));
    assert_eq!(client.message()["method"], "notifications/tools/list_changed");
    assert_eq!(names(&mut client, None).0, ["echo", "added"]);
}

#[test]
fn resources_and_prompts_can_be_read_or_be_absent() {
    let mut client = StdioClient::connect(&Script::new());
    let read = |client: &mut StdioClient, uri: &str| {
        client.request("resources/read", &json!({"uri": uri}))
    };
    let listed = client.request("resources/list", &json!({}));
    assert_eq!(listed["result"]["resources"][0]["uri"], "test://greeting");
    assert_eq!(read(&mut client, "test://greeting")["result"]["contents"][0]["text"], "hello");
    assert_eq!(read(&mut client, "test://echo/hi")["result"]["contents"][0]["text"], "hi");
    assert_eq!(read(&mut client, "test://nothing")["error"]["code"], -32002);
    let prompt =
        client.request("prompts/get", &json!({"name": "greet", "arguments": {"name": "Ann"}}));
    assert_eq!(prompt["result"]["messages"][0]["content"]["text"], "Say hello to Ann.");
    let mut client = StdioClient::connect(&Script::new().tools_only());
    assert_eq!(client.request("prompts/list", &json!({}))["error"]["code"], -32601);
}
