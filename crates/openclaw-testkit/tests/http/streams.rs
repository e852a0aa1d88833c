//! Event streams: whole, dropped, resumed and endless.

use std::io::Read;

use openclaw_testkit::{DropStream, Endless, Script, TestServer};
use serde_json::{Value, json};

use crate::wire::Client;

fn data(events: &str) -> Vec<Value> {
    events
        .lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .collect()
}

#[test]
fn a_response_is_an_event_after_its_progress() {
    let server = TestServer::http(&Script::new().sse_answers());
    let mut client = Client::of(&server);
    client.initialize();
    let answer = client.rpc(
        "tools/call",
        &json!({
            "name": "sleep", "arguments": {"ms": 60, "every": 20}, "_meta": {"progressToken": 5}
        }),
    );
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let messages = data(&answer.text());
    assert_eq!(messages[0]["method"], "notifications/progress");
    assert_eq!(messages.last().unwrap()["result"]["content"][0]["text"], "slept 60 ms");
}

#[test]
fn a_dropped_stream_is_resumed_from_its_last_event() {
    let script = Script::new().drop_stream(DropStream::default()).retry_ms(10);
    let server = TestServer::http(&script);
    let mut client = Client::of(&server);
    client.initialize();
    let dropped = client.call("echo", &json!({"text": "hi"})).text();
    assert!(dropped.contains("retry: 10\n") && data(&dropped).is_empty(), "{dropped}");
    let id = dropped.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
    let rest = client.send("GET", "/mcp", &[("last-event-id", id)], "").text();
    assert_eq!(data(&rest)[0]["result"]["content"][0]["text"], "hi");
    assert_eq!(client.send("GET", "/mcp", &[("last-event-id", id)], "").status, 404);
}

#[test]
fn a_stream_that_cannot_be_resumed_is_lost() {
    let how = DropStream { resumable: false, abrupt: true, ..DropStream::default() };
    let server = TestServer::http(&Script::new().drop_stream(how));
    let mut client = Client::of(&server);
    client.initialize();
    let dropped = client.call("echo", &json!({})).text();
    let id = dropped.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
    assert_eq!(client.send("GET", "/mcp", &[("last-event-id", id)], "").status, 404);
}

#[test]
fn a_changed_list_is_announced_on_the_get_stream() {
    let server = TestServer::http(&Script::new().list_changed_after_calls(1));
    let mut client = Client::of(&server);
    client.initialize();
    let mut stream = client.open("/mcp", &[]);
    assert_eq!(stream.next().unwrap(), ": open");
    client.call("count", &json!({}));
    let told = stream.find(|line| line.starts_with("data: ")).unwrap();
    assert!(told.contains("notifications/tools/list_changed"));
    let server = TestServer::http(&Script::new().no_get());
    assert_eq!(Client::of(&server).send("GET", "/mcp", &[], "").status, 405);
}

#[test]
fn an_endless_stream_does_not_end() {
    let server = TestServer::http(&Script::new().endless_stream(Endless::Notifications));
    let mut client = Client::of(&server);
    client.initialize();
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}});
    let mut start = vec![0; 10 << 20];
    client.stream("POST", &call).read_exact(&mut start).unwrap();
    // A client that stops reading does not block others.
    assert_eq!(client.rpc("ping", &json!({})).status, 200);
}
