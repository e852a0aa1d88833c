//! Clients that take as much memory as they can get: what they take is bounded in bytes, and only their
//! own requests suffer.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use openclaw_testkit::processes::wait_until;
use openclaw_testkit::{Script, Tool};
use serde_json::{Value, json};

use crate::common::gateway::RunningGateway;
use crate::common::memory;
use crate::common::rpc::{self, request};
use crate::http::{begin, echo, send, session};
use crate::place::{Place, text};

const MIB: usize = 1024 * 1024;
/// Part of the error for a request that there is no memory for.
const REFUSED: &str = "of memory already";

/// The response to a request, as far as the other side has sent one.
fn response(mut stream: TcpStream) -> String {
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    String::from_utf8_lossy(&all).into_owned()
}

/// The beginning of a response, which is not read thereby.
fn beginning(stream: &TcpStream) -> String {
    let mut start = [0; 4096];
    stream.set_nonblocking(true).unwrap();
    let length = stream.peek(&mut start).unwrap_or_default();
    stream.set_nonblocking(false).unwrap();
    String::from_utf8_lossy(&start[..length]).into_owned()
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
                assert!(answer.body.contains(REFUSED), "{}", answer.body);
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
    // What is read makes room for others.
    let is_refused = || deaf.iter().any(|stream| beginning(stream).contains(REFUSED));
    assert!(wait_until(Duration::from_secs(60), is_refused));
    let responses = deaf.into_iter().map(response);
    let refused = responses.filter(|it| it.contains(REFUSED)).count();
    assert!((1..16).contains(&refused), "{refused} of 16");
    let headers = [("Mcp-Session-Id", session.as_str())];
    let called = send(&gateway, "POST", &headers, &request(99, "tools/call", echo("hello")));
    assert_eq!(text(&called.messages[0]), "hello");
}

/// What the memory of the gateway grows by at most meanwhile, in MiB.
#[cfg(target_os = "linux")]
fn growth(gateway: &RunningGateway, work: impl FnOnce()) -> u64 {
    let process = gateway.child.id();
    // Sets the peak to what is used now.
    std::fs::write(format!("/proc/{process}/clear_refs"), "5").unwrap();
    let before = memory(process, "VmHWM");
    work();
    memory(process, "VmHWM").saturating_sub(before) / 1024
}

/// An array of this many MiB whose values take a hundred times their text in a tree.
fn zeros(mib: usize) -> String {
    format!("[{}0]", "0,".repeat(mib * MIB / 2))
}

/// A call since 2026-07-28, with these members besides its name and `_meta`.
fn modern_call(members: &str) -> String {
    let meta = rpc::meta(json!({ "elicitation": {} }));
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"write","_meta":{meta},{members}}}}}"#
    )
}

const VERSION: (&str, &str) = ("MCP-Protocol-Version", "2026-07-28");

#[cfg(target_os = "linux")]
#[test]
fn values_take_no_more_memory_than_a_client_may_have() {
    let mut place = Place::new();
    let schema = json!({ "type": "object", "properties": { "a": { "type": "array", "maxItems": 5 }, "b": { "const": 1 } } });
    let strict = Tool::new("strict").schema(schema);
    place.add("one", &Script::new().tools([Tool::new("write"), strict]), json!({}));
    let gateway = place.gateway();
    let session = session(&gateway, json!({}));
    let headers = [VERSION, ("Mcp-Method", "tools/call"), ("Mcp-Name", "write")];
    let strict = [VERSION, ("Mcp-Method", "tools/call"), ("Mcp-Name", "strict")];
    let unnamed = [VERSION, ("Mcp-Method", "tools/call")];
    let legacy = [("Mcp-Session-Id", session.as_str())];
    let vague = [("Mcp-Session-Id", session.as_str()), ("Accept", "*/*")];
    let zeros = zeros(7);
    let arguments = format!(r#""arguments":{{"a":{zeros}}}"#);
    let state = format!("openclaw.{}.1.1.server.x", "00".repeat(32));
    let of_legacy = format!(
        r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"strict",{arguments}}}}}"#
    );
    let answer = format!(r#"{{"jsonrpc":"2.0","id":"openclaw-hub-1","result":{{"a":{zeros}}}}}"#);
    for (what, headers, body) in [
        (
            "a state that is not ours",
            &headers[..],
            modern_call(&format!(r#""requestState":"{state}",{arguments}"#)),
        ),
        ("a call that is parked", &headers, modern_call(&arguments)),
        ("input", &headers, modern_call(&format!(r#""inputResponses":{{"a":{zeros}}}"#))),
        (
            "arguments that are not valid",
            &strict,
            modern_call(&arguments).replace(r#""write""#, r#""strict""#),
        ),
        ("a call without a header", &unnamed, modern_call(&arguments)),
        ("a call of a session", &legacy, of_legacy.clone()),
        ("a call that accepts anything", &vague, of_legacy),
        ("a response that nobody waits for", &legacy, answer),
    ] {
        let grown = growth(&gateway, || drop(send(&gateway, "POST", headers, &body)));
        assert!(grown < 128, "{what}: {grown} MiB");
    }
    let called = send(&gateway, "POST", &legacy, &request(99, "ping", json!({})));
    assert!(called.messages[0]["result"].is_object(), "the client is served");
}

#[cfg(target_os = "linux")]
#[test]
fn what_sessions_begin_with_is_counted_as_long_as_they_last() {
    let place = Place::with("one", &Script::new());
    let gateway = place.gateway();
    let hello = |values: usize| {
        let values = format!("[{}0]", "0,".repeat(values));
        let capabilities = json!({ "experimental": { "a": { "b": 1 } } });
        request(1, "initialize", rpc::hello("2025-11-25", capabilities))
            .replace("\"b\":1", &format!("\"b\":{values}"))
    };
    let refused = send(&gateway, "POST", &[], &hello(30_000));
    assert_eq!((refused.status(), &*refused.body), (413, "the message has too many values"));
    let grown = growth(&gateway, || {
        for _ in 0..400 {
            send(&gateway, "POST", &[], &hello(30_000));
        }
    });
    assert!(grown < 128, "{grown} MiB");
    // As large as they may be: their memory is that of the token.
    let opened = send(&gateway, "POST", &[], &hello(500));
    assert_eq!(opened.status(), 200, "{}", opened.head);
}
