//! The HTTP server behaves as its script says.
#![expect(clippy::unwrap_used, reason = "the helpers of tests may fail as tests do")]

mod faults;
mod streams;
mod wire;

use openclaw_testkit::{Recording, Script, TestServer, processes};
use serde_json::json;
use wire::Client;

#[test]
fn a_session_begins_with_initialize_and_ends_with_delete() {
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::at(folder.path().join("record"));
    let server = TestServer::http(&Script::new().record(recording.path()));
    let mut client = Client::of(&server);
    assert_eq!(client.rpc("tools/list", &json!({})).status, 400);
    assert_eq!(client.initialize().json()["result"]["protocolVersion"], "2025-11-25");
    let answer = client.call("echo", &json!({"text": "hi"}));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.json()["result"]["content"][0]["text"], "hi");
    assert_eq!(client.send("DELETE", "/mcp", &[], "").status, 200);
    assert_eq!(client.call("echo", &json!({})).status, 404);
    assert_eq!(recording.of_method("initialize").len(), 1);
    assert!(recording.http("DELETE")[0]["headers"]["mcp-session-id"].is_string());
    assert_eq!(client.send("PUT", "/mcp", &[], "").status, 405);
    assert_eq!(client.send("GET", "/elsewhere", &[], "").status, 404);
}

#[test]
fn sessions_can_be_lost_once_or_not_exist() {
    let server = TestServer::http(&Script::new().session_lost_after_calls(1));
    let mut client = Client::of(&server);
    client.initialize();
    assert_eq!(client.call("count", &json!({})).status, 200);
    assert_eq!(client.call("count", &json!({})).status, 404);
    client.initialize();
    assert_eq!(client.call("count", &json!({})).status, 200);

    let server = TestServer::http(&Script::new().no_sessions());
    let mut client = Client::of(&server);
    assert_eq!(client.initialize().header("mcp-session-id"), None);
    assert_eq!(client.call("count", &json!({})).status, 200);
}

#[test]
fn a_modern_request_needs_no_session_and_its_headers_are_checked() {
    let server = TestServer::http(&Script::new());
    let client = Client::of(&server);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "echo", "arguments": {"text": "hi"}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}
        }
    }});
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let method = ("Mcp-Method", "tools/call");
    let name = ("Mcp-Name", "echo");
    let good = client.send("POST", "/mcp", &[version, method, name], &body.to_string());
    assert_eq!((good.status, &good.json()["result"]["resultType"]), (200, &json!("complete")));
    for headers in [&[method, name][..], &[version, name], &[version, method]] {
        let bad = client.send("POST", "/mcp", headers, &body.to_string());
        assert_eq!((bad.status, &bad.json()["error"]["code"]), (400, &json!(-32020)));
    }
    let unknown = body.to_string().replace("tools/call", "tools/nothing");
    let headers = [version, ("Mcp-Method", "tools/nothing")];
    assert_eq!(client.send("POST", "/mcp", &headers, &unknown).status, 404);
}

#[test]
fn the_old_transport_answers_on_the_stream_that_names_its_endpoint() {
    for (script, path) in [(Script::new(), "/sse"), (Script::new().legacy_sse_only(), "/mcp")] {
        let server = TestServer::http(&script);
        let client = Client::of(&server);
        let mut stream = client.open(path, &[]);
        assert_eq!(stream.next().unwrap(), "event: endpoint");
        let endpoint = stream.next().unwrap();
        let endpoint = endpoint.strip_prefix("data: ").unwrap();
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05"}}"#;
        assert_eq!(client.send("POST", endpoint, &[], body).status, 202);
        let answer = stream.find(|line| line.starts_with("data: ")).unwrap();
        assert!(answer.contains(r#""protocolVersion":"2024-11-05""#));
        assert_eq!(client.send("POST", "/messages?sessionId=x", &[], body).status, 404);
    }
    let server = TestServer::http(&Script::new().legacy_sse_only());
    assert_eq!(Client::of(&server).initialize().status, 405);
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_is_killed_with_its_guard_and_can_restart_on_its_port() {
    let server = TestServer::http(&Script::new());
    let (pid, port) = (server.pid(), server.port());
    assert!(processes::is_alive(pid));
    server.kill();
    assert!(!processes::is_alive(pid));
    let server = TestServer::http_on(port, &Script::new());
    assert_eq!(server.port(), port);
    assert!(server.sse_url().ends_with("/sse"));
}
