//! The HTTP server checks what a client must send.

use openclaw_testkit::oauth::wire::{self, HttpResponse};
use openclaw_testkit::{Recording, Script, TestServer};
use serde_json::{Value, json};

const ACCEPT: (&str, &str) = ("accept", "application/json, text/event-stream");
const JSON: (&str, &str) = ("content-type", "application/json");

fn post(url: &str, headers: &[(&str, &str)], method: &str, params: &Value) -> HttpResponse {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    wire::send("POST", url, &[&[ACCEPT, JSON], headers].concat(), &body.to_string())
}

#[test]
fn a_session_begins_with_initialize_and_ends_with_delete() {
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::at(folder.path().join("record"));
    let server = TestServer::http(&Script::new().record(recording.path()));
    let url = server.url();
    assert_eq!(post(url, &[], "tools/list", &json!({})).status, 400);
    let begun = post(url, &[], "initialize", &json!({"protocolVersion": "2025-11-25"}));
    let session = ("mcp-session-id", begun.header("mcp-session-id").unwrap());
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(wire::send("POST", url, &[ACCEPT, JSON, session], initialized).status, 202);
    let call = || post(url, &[session], "tools/call", &json!({"name": "count"})).status;
    assert_eq!(call(), 200);
    assert_eq!(wire::send("DELETE", url, &[session], "").status, 200);
    assert_eq!(call(), 404);
    assert_eq!(recording.of_method("initialize").len(), 1);
    assert!(recording.http("DELETE")[0]["headers"]["mcp-session-id"].is_string());
}

#[test]
fn a_modern_request_needs_no_session_and_its_headers_are_checked() {
    let server = TestServer::http(&Script::new());
    let params = json!({"name": "echo", "arguments": {"text": "hi"}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}
    }});
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let method = ("Mcp-Method", "tools/call");
    let name = ("Mcp-Name", "echo");
    let call = |headers: &[(&str, &str)]| post(server.url(), headers, "tools/call", &params);
    let good = call(&[version, method, name]);
    assert_eq!((good.status, &good.json()["result"]["resultType"]), (200, &json!("complete")));
    for headers in [&[method, name][..], &[version, name], &[version, method]] {
        let bad = call(headers);
        assert_eq!((bad.status, &bad.json()["error"]["code"]), (400, &json!(-32020)));
    }
}
