//! Batches of clients of 2025-03-26.

use openclaw_testkit::{Script, StdioClient};
use serde_json::{Value, json};

use crate::common::rpc;
use crate::http::{echo, send};
use crate::place::Place;

fn batch() -> Value {
    json!([
        { "jsonrpc": "2.0", "id": 11, "method": "ping" },
        { "jsonrpc": "2.0", "method": "notifications/roots/list_changed" },
        { "jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": echo("hello") },
        { "jsonrpc": "2.0", "id": 13, "method": "tools/list" },
        7,
    ])
}

fn check(replies: &Value) {
    let replies = replies.as_array().unwrap();
    assert_eq!(replies.len(), 4, "{replies:?}");
    let of = |id: Value| replies.iter().find(|it| it["id"] == id).unwrap();
    assert_eq!(of(json!(11))["result"], json!({}));
    assert_eq!(of(json!("call"))["result"]["content"][0]["text"], "hello");
    assert!(of(json!(13))["result"]["tools"].is_array());
    assert_eq!(of(Value::Null)["error"]["code"], -32600);
}

#[test]
fn a_batch_on_a_pipe_is_answered_by_one() {
    let place = Place::with("one", &Script::new());
    let mut hub = place.spawn(&["--no-wrap"]);
    hub.initialize_with("2025-03-26", &json!({}));
    for _ in 0..2 {
        hub.send(&batch().to_string());
        check(&hub.message());
    }
    let many = vec![json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }); 101];
    let twice = vec![json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }); 2];
    for wrong in [json!([]), json!(many), json!(twice)] {
        hub.send(&wrong.to_string());
        assert_eq!(hub.message()["error"]["code"], -32600);
    }
    // Other versions have none.
    let mut newer = place.hub(&[]);
    newer.send(&batch().to_string());
    assert_eq!(newer.message()["error"]["code"], -32600);
}

#[test]
fn a_batch_on_a_pipe_has_no_handshake_and_no_request_without_an_id() {
    let batch = json!([
        { "jsonrpc": "2.0", "id": 21, "method": "initialize",
          "params": rpc::hello("2025-03-26", json!({})) },
        { "jsonrpc": "2.0", "id": null, "method": "ping" },
        { "jsonrpc": "2.0", "id": 22, "method": "ping" },
    ]);
    let place = Place::with("one", &Script::new());
    let messages = StdioClient::run(&mut place.command(&["mcp-server"]));
    for mut server in [place.spawn(&["--no-wrap"]), messages] {
        server.initialize_with("2025-03-26", &json!({}));
        server.send(&batch.to_string());
        let replies = server.message();
        let of = |id: Value| replies.as_array().unwrap().iter().find(|it| it["id"] == id).unwrap();
        assert_eq!(of(json!(21))["error"]["code"], -32600, "{replies}");
        assert_eq!(of(Value::Null)["error"]["code"], -32600, "{replies}");
        assert_eq!(of(json!(22))["result"], json!({}), "{replies}");
        // Nothing else was sent.
        assert_eq!(server.request("ping", &json!({}))["result"], json!({}));
    }
}

#[test]
fn a_batch_over_http_is_answered_by_one() {
    let place = Place::with("one", &Script::new());
    let gateway = place.gateway();
    let hello = rpc::request(1, "initialize", rpc::hello("2025-03-26", json!({})));
    let opened = send(&gateway, "POST", &[], &hello);
    let session = opened.header("mcp-session-id").unwrap();
    let headers = [("Mcp-Session-Id", session.as_str())];
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    send(&gateway, "POST", &headers, ready);
    let answered = send(&gateway, "POST", &headers, &batch().to_string());
    assert_eq!(answered.status(), 200, "{}", answered.head);
    check(&serde_json::from_str(&answered.body).unwrap());
    let told = send(&gateway, "POST", &headers, &format!("[{ready}]"));
    assert_eq!(told.status(), 202, "{}", told.head);
}
