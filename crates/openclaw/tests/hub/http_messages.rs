//! What a client with a session over HTTP gets outside of replies, and after a cancellation.

use std::io::{BufRead as _, BufReader};

use openclaw_testkit::{Script, Tool};
use serde_json::{Value, json};

use crate::common::rpc::request;
use crate::http::{begin, cancel_call, echo, send, session};
use crate::place::Place;

#[test]
fn a_changed_list_is_reported_in_the_stream_of_the_session() {
    let script = Script::new().list_changed_after_calls(1).changed_tools([Tool::new("other")]);
    let place = Place::with("one", &script);
    let gateway = place.gateway();
    let session = session(&gateway, json!({}));
    let headers = [("Mcp-Session-Id", session.as_str())];
    let listed = send(&gateway, "POST", &headers, &request(2, "tools/list", json!({})));
    assert_eq!(listed.status(), 200, "{}", listed.head);
    let accepting = [headers[0], ("Accept", "text/event-stream")];
    let stream = begin(&gateway, "/mcp", "GET", &accepting, "");
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().contains("200"));
    let called = send(&gateway, "POST", &headers, &request(3, "tools/call", echo("x")));
    assert_eq!(called.status(), 200, "{}", called.head);
    let message = lines.find_map(|line| {
        let message: Value = serde_json::from_str(line.strip_prefix("data: ")?).ok()?;
        (message["method"] == "notifications/tools/list_changed").then_some(message)
    });
    // `null` is not valid there, and some clients reject it.
    let message = message.unwrap();
    assert!(message.get("params").is_none_or(Value::is_object), "{message}");
}

#[test]
fn a_cancelled_call_has_no_reply() {
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 },
    });
    let (accepted, called) = cancel_call("POST", &cancel.to_string());
    assert_eq!(accepted.status(), 202, "{}", accepted.head);
    assert_eq!(called.header("content-type").as_deref(), Some("text/event-stream"));
    assert_eq!(called.messages, Vec::<Value>::new(), "{}", called.body);
}
