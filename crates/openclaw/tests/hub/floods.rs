//! Clients that take as much memory as they can get: what they take is bounded in bytes, and only their
//! own requests suffer.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use openclaw_testkit::{Script, Tool};
use serde_json::{Value, json};

use crate::common::memory;
use crate::common::rpc::{self, request};
use crate::http::{begin, echo, send, session};
use crate::place::{Place, text};

const MIB: usize = 1024 * 1024;

/// The response to a request, as far as the other side has sent one.
fn response(mut stream: TcpStream) -> String {
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    String::from_utf8_lossy(&all).into_owned()
}

#[test]
fn unfinished_bodies_are_bounded_together() {
    let place = Place::with("one", &Script::new());
    let gateway = place.gateway();
    let length = (60 * MIB).to_string();
    let half = vec![b' '; 30 * MIB];
    let open = (0..12).map(|_| {
        let mut stream = begin(&gateway, "/mcp", "POST", &[("Content-Length", &length)], "");
        stream.write_all(&half).unwrap();
        stream
    });
    let mut open: Vec<TcpStream> = open.collect();
    let used = memory(gateway.child.id(), "RssAnon") / 1024;
    assert!(used < 330, "{used} MiB for 360 MiB of unfinished bodies");
    let session = session(&gateway, json!({}));
    let headers = [("Mcp-Session-Id", session.as_str())];
    let called = send(&gateway, "POST", &headers, &request(3, "tools/call", echo("hello")));
    assert_eq!(text(&called.messages[0]), "hello", "small requests are served");
    let mut last = open.pop().unwrap();
    last.write_all(&half).unwrap();
    let mut status = [0; 12];
    last.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 429");
    drop((open, last));
}

#[test]
fn parked_calls_are_bounded_together() {
    // Each call waits for an approval.
    let mut place = Place::new();
    place.add("one", &Script::new().tools([Tool::new("write")]), json!({}));
    let gateway = place.gateway();
    let mut call = json!({ "name": "write", "arguments": { "text": "x".repeat(20 * MIB) } });
    call["_meta"] = rpc::meta(json!({ "elicitation": {} }));
    let body = request(1, "tools/call", call);
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let headers = [version, ("Mcp-Method", "tools/call"), ("Mcp-Name", "write")];
    let (mut parked, mut refused) = (0, 0);
    for _ in 0..10 {
        let answer = send(&gateway, "POST", &headers, &body);
        match answer.messages.first() {
            Some(reply) if reply["result"]["resultType"] == "input_required" => parked += 1,
            _ => {
                assert!(answer.body.contains("of memory already"), "{}", answer.body);
                refused += 1;
            }
        }
    }
    assert!(parked >= 1 && refused >= 4, "{parked} are parked, {refused} refused");
}

#[test]
fn addresses_and_names_have_a_bound() {
    let place = Place::with("one", &Script::new().legacy().subscriptions());
    let mut hub = place.hub(&[]);
    let long = format!("test://{}", "x".repeat(8 * 1024));
    let error = |answer: &Value| answer["error"]["message"].as_str().unwrap_or_default().to_owned();
    for method in ["resources/subscribe", "resources/read"] {
        let refused = hub.request(method, &json!({ "uri": long }));
        assert_eq!(error(&refused), "the URI exceeds 8 KiB", "{method}");
    }
    let refused = hub.request("tools/call", &json!({ "name": "x".repeat(1_025) }));
    assert_eq!(error(&refused), "the name of the tool exceeds 1 KiB");
    let refused = hub.request("resources/subscribe", &json!({ "uri": "x".repeat(2 * MIB) }));
    assert_eq!(error(&refused), "the request exceeds 1 MiB, and is not a tool call");
    assert!(text(&hub.call("echo", &json!({ "text": "hello" }))).contains("hello"));
}

#[test]
fn results_that_are_not_read_are_bounded_together() {
    let content = json!([{ "type": "text", "text": "x".repeat(20 * MIB) }]);
    let large = Tool::new("large").result(&json!({ "content": content }));
    let place = Place::with("one", &Script::new().tools([Tool::new("echo"), large]));
    let gateway = place.gateway();
    let session = session(&gateway, json!({}));
    let headers = [("Mcp-Session-Id", session.as_str()), ("Connection", "close")];
    let deaf: Vec<TcpStream> = (2..18)
        .map(|id| {
            let body = request(id, "tools/call", json!({ "name": "large" }));
            begin(&gateway, "/mcp?wrap=false", "POST", &headers, &body)
        })
        .collect();
    let responses = deaf.into_iter().map(response);
    let refused = responses.filter(|it| it.contains("of memory already")).count();
    assert!((1..16).contains(&refused), "{refused} of 16");
    let headers = [("Mcp-Session-Id", session.as_str())];
    let called = send(&gateway, "POST", &headers, &request(99, "tools/call", echo("hello")));
    assert_eq!(text(&called.messages[0]), "hello");
}
