//! Status codes and faulty responses.

use std::time::Duration;

use openclaw_testkit::{Fault, On, Recording, Script, TestServer};
use serde_json::json;

use crate::wire::Client;

/// The longest wait for the server.
const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_fault_applies_to_its_requests_and_no_others() {
    let script = Script::new()
        .fault(Fault::status(429).on(On::Call).times(2).header("Retry-After", "1"))
        .fault(Fault::status(503).on(On::Call).after(1).times(1).body("overloaded"))
        .fault(Fault::status(405).on(On::Get));
    let server = TestServer::http(&script);
    let mut client = Client::of(&server);
    assert_eq!(client.initialize().status, 200);
    let first = client.call("count", &json!({}));
    assert_eq!((first.status, first.header("retry-after")), (429, Some("1")));
    assert_eq!(client.call("count", &json!({})).status, 429);
    // The second fault counts only requests that the first did not affect.
    assert_eq!(client.call("count", &json!({})).status, 200);
    let overloaded = client.call("count", &json!({}));
    assert_eq!((overloaded.status, overloaded.text().as_str()), (503, "overloaded"));
    assert_eq!(client.call("count", &json!({})).status, 200);
    assert_eq!(client.send("GET", "/mcp", &[], "").status, 405);
}

#[test]
fn redirects_and_hanging_up_are_faults_too() {
    let server = TestServer::http(&Script::new().redirect("file:///etc/passwd"));
    let answer = Client::of(&server).initialize();
    assert_eq!((answer.status, answer.header("location")), (307, Some("file:///etc/passwd")));
    let server = TestServer::http(&Script::new().fault(Fault::hang_up().times(1)));
    let mut client = Client::of(&server);
    assert_eq!(client.initialize().status, 0);
    assert_eq!(client.initialize().status, 200);
}

#[test]
fn requests_without_the_right_token_are_rejected() {
    let challenge = r#"Bearer resource_metadata="http://127.0.0.1/meta""#;
    let server = TestServer::http(&Script::new().bearer("letmein", Some(challenge)));
    let client = Client::of(&server);
    let refused = client.rpc("initialize", &json!({}));
    assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some(challenge)));
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
    let headers = [("authorization", "Bearer letmein")];
    assert_eq!(client.send("POST", "/mcp", &headers, body).status, 200);
}

#[test]
fn a_gzip_bomb_is_small_on_the_wire() {
    let server = TestServer::http(&Script::new().gzip_bomb_mb(64));
    let mut client = Client::of(&server);
    client.initialize();
    let bomb = client.call("echo", &json!({}));
    assert_eq!(bomb.header("content-encoding"), Some("gzip"));
    assert!(bomb.body.len() < 1 << 20, "{} bytes", bomb.body.len());
    assert!(bomb.body.starts_with(&[0x1f, 0x8b]));
}

#[test]
fn a_client_that_goes_away_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::at(folder.path().join("record"));
    for script in [Script::new(), Script::new().sse_answers()] {
        let server = TestServer::http(&script.record(recording.path()));
        let mut client = Client::of(&server);
        client.initialize();
        let request = json!({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {
            "name": "sleep", "arguments": {"ms": 60_000}
        }});
        client.leave(&request, || {
            let arrived = recording.wait_for(LONG, |line| line["body"]["id"] == 77);
            assert!(arrived.is_some());
        });
        let closed = recording.wait_for(LONG, |line| line["closed"] == 77);
        assert!(closed.is_some());
        std::fs::remove_file(recording.path()).unwrap();
    }
}
