//! `/mcp` of the gateway: who is let in, sessions, streams, and clients without a session.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use openclaw_testkit::{Ask, DropStream, Recording, Script, TestServer, Tool};
use serde_json::{Value, json};

use crate::common::LONG;
use crate::common::gateway::RunningGateway;
use crate::common::rpc::{self, request};
use crate::place::{Place, text};

/// A response: its head, its body, and the JSON messages in it.
pub(crate) struct Response {
    pub(crate) head: String,
    pub(crate) body: String,
    pub(crate) messages: Vec<Value>,
}

impl Response {
    pub(crate) fn status(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap_or_default().parse().unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = lines.filter(|(it, _)| it.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.to_owned())
    }

    /// The id of the last event.
    fn last_event(&self) -> Option<&str> {
        self.body.lines().filter_map(|line| line.strip_prefix("id: ")).next_back()
    }
}

/// Sends one request on a connection of its own, and reads until the other side closes.
pub(crate) fn send(
    gateway: &RunningGateway,
    method: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Response {
    send_to(gateway, "/mcp?wrap=false", method, headers, body)
}

/// Sends one request on a connection of its own, without waiting for the response.
pub(crate) fn begin(
    gateway: &RunningGateway,
    path: &str,
    method: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> TcpStream {
    let mut stream = TcpStream::connect(gateway.address()).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    let has = |name: &str| headers.iter().any(|(it, _)| it.eq_ignore_ascii_case(name));
    let (bearer, length) = (format!("Bearer {}", gateway.token), body.len().to_string());
    for (name, value) in [
        ("Host", gateway.address()),
        ("Authorization", &bearer),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("Content-Length", &length),
    ] {
        if !has(name) {
            head += &format!("{name}: {value}\r\n");
        }
    }
    for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
    stream
}

pub(crate) fn send_to(
    gateway: &RunningGateway,
    path: &str,
    method: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Response {
    let headers = [headers, &[("Connection", "close")]].concat();
    let mut all = String::new();
    begin(gateway, path, method, &headers, body).read_to_string(&mut all).unwrap();
    let (head, body) = all.split_once("\r\n\r\n").unwrap_or((&all, ""));
    let lines = body.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    let messages = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let messages = messages.filter(Value::is_object).collect();
    Response { head: head.to_owned(), body: body.to_owned(), messages }
}

fn hello(capabilities: Value) -> String {
    request(1, "initialize", rpc::hello("2025-11-25", capabilities))
}

pub(crate) fn echo(words: &str) -> Value {
    json!({ "name": "echo", "arguments": { "text": words } })
}

/// Opens a session.
pub(crate) fn session(gateway: &RunningGateway, capabilities: Value) -> String {
    let opened = send(gateway, "POST", &[], &hello(capabilities));
    assert_eq!(opened.status(), 200, "{}", opened.head);
    let session = opened.header("mcp-session-id").unwrap();
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let accepted = send(gateway, "POST", &[("Mcp-Session-Id", &session)], ready);
    assert_eq!(accepted.status(), 202, "{}", accepted.head);
    session
}

#[test]
fn only_clients_with_a_token_and_of_this_origin_are_let_in() {
    let place = Place::with("one", &Script::new());
    let gateway = place.gateway();
    let foreign = ("Origin", "https://evil.example");
    for (headers, status) in [
        (&[("Authorization", "")][..], 401),
        (&[("Authorization", "Bearer wrong")], 401),
        (&[("Authorization", "Basic eDp5")], 401),
        (&[foreign], 403),
        (&[("Host", "evil.example")], 403),
        (&[("Accept", "text/html")], 406),
        (&[("Content-Type", "text/plain")], 415),
        (&[("Mcp-Session-Id", "unknown")], 404),
    ] {
        let refused = send(&gateway, "POST", headers, &request(1, "ping", json!({})));
        assert_eq!(refused.status(), status, "{headers:?}: {}", refused.head);
    }
    let refused = send(&gateway, "POST", &[("Authorization", "")], "");
    assert_eq!(refused.header("www-authenticate").as_deref(), Some("Bearer"));
    let bad = send_to(&gateway, "/mcp?wrp=false", "POST", &[], &hello(json!({})));
    assert_eq!(bad.status(), 400, "{}", bad.head);
    let unknown = send_to(&gateway, "/mcp?agent=nobody", "POST", &[], &hello(json!({})));
    assert_eq!(unknown.status(), 404, "{}", unknown.head);
}

#[test]
fn a_session_lists_and_calls_until_it_is_deleted() {
    let place = Place::with("one", &Script::new());
    let gateway = place.gateway();
    let session = session(&gateway, json!({}));
    let headers = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", "2025-11-25")];
    let listed = send(&gateway, "POST", &headers, &request(2, "tools/list", json!({})));
    let tools = listed.messages.iter().find(|it| it["id"] == 2).unwrap();
    assert!(tools["result"]["tools"].as_array().unwrap().len() > 5, "{tools}");
    let called = send(&gateway, "POST", &headers, &request(3, "tools/call", echo("hello")));
    assert_eq!(called.header("content-type").as_deref(), Some("application/json"));
    assert_eq!(text(&called.messages[0]), "hello");
    let ended = send(&gateway, "DELETE", &headers, "");
    assert_eq!(ended.status(), 204, "{}", ended.head);
    let gone = send(&gateway, "POST", &headers, &request(4, "tools/call", echo("hello")));
    assert_eq!(gone.status(), 404, "{}", gone.head);
}

#[test]
fn progress_comes_in_a_stream_before_the_result() {
    let place = Place::with("one", &Script::new());
    let gateway = place.gateway();
    let session = session(&gateway, json!({}));
    let call = json!({
        "name": "sleep", "arguments": { "ms": 500 }, "_meta": { "progressToken": 7 },
    });
    let headers = [("Mcp-Session-Id", session.as_str())];
    let called = send(&gateway, "POST", &headers, &request(2, "tools/call", call));
    assert_eq!(called.header("content-type").as_deref(), Some("text/event-stream"));
    let (last, told) = called.messages.split_last().unwrap();
    assert_eq!(last["id"], 2);
    assert!(!told.is_empty(), "{told:?}");
    assert!(told.iter().all(|it| it["params"]["progressToken"] == 7), "{told:?}");
}

#[test]
fn a_question_comes_in_the_stream_and_its_answer_in_another_request() {
    let place = Place::with("one", &Script::new().ask(Ask::Elicitation));
    let gateway = place.gateway();
    let session = session(&gateway, json!({ "elicitation": {} }));
    let headers = [("Mcp-Session-Id", session.as_str())];
    std::thread::scope(|scope| {
        let call =
            scope.spawn(|| send(&gateway, "POST", &headers, &request(2, "tools/call", echo("x"))));
        // The first question of a session has this id.
        let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
        let answer = json!({ "jsonrpc": "2.0", "id": "openclaw-hub-1", "result": answer });
        while !call.is_finished() {
            send(&gateway, "POST", &headers, &answer.to_string());
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let called = call.join().unwrap();
        assert_eq!(called.messages[0]["method"], "elicitation/create", "{:?}", called.messages);
        assert!(text(called.messages.last().unwrap()).contains("Ada"), "{:?}", called.messages);
    });
}

#[test]
fn a_client_without_a_session_says_everything_with_each_request() {
    let place = Place::with("one", &Script::new());
    let gateway = place.gateway();
    let meta = rpc::meta(json!({}));
    let mut call = echo("hello");
    call["_meta"] = meta.clone();
    let body = request(1, "tools/call", call);
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let headers = [version, ("Mcp-Method", "tools/call"), ("Mcp-Name", "echo")];
    let called = send(&gateway, "POST", &headers, &body);
    assert_eq!(text(&called.messages[0]), "hello", "{}", called.head);
    assert_eq!(called.messages[0]["result"]["resultType"], "complete");
    let headers = [version, ("Mcp-Method", "tools/call"), ("Mcp-Name", "another")];
    let refused = send(&gateway, "POST", &headers, &body);
    assert_eq!(refused.status(), 400, "{}", refused.head);
    let listing = [version, ("Mcp-Method", "tools/list")];
    let body = request(2, "tools/list", json!({ "_meta": meta }));
    let listed = send(&gateway, "POST", &listing, &body);
    assert!(listed.messages[0]["result"]["tools"].is_array(), "{}", listed.head);
}

#[test]
fn arguments_that_are_also_headers_must_agree_with_them() {
    let schema = json!({
        "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
    });
    let place = Place::with("one", &Script::new().tools([Tool::new("lookup").schema(schema)]));
    let gateway = place.gateway();
    let call = json!({
        "name": "lookup", "arguments": { "region": "Rome" }, "_meta": rpc::meta(json!({})),
    });
    let body = request(1, "tools/call", call);
    let common = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "lookup"),
    ];
    let of_region = |region: &str| {
        let headers: Vec<_> = common.into_iter().chain([("Mcp-Param-Region", region)]).collect();
        send(&gateway, "POST", &headers, &body)
    };
    for region in ["Rome", "=?base64?Um9tZQ==?="] {
        let called = of_region(region);
        assert_eq!(called.status(), 200, "{region}: {:?}", called.messages);
    }
    for region in ["", "Oslo", "=?base64?Um9tZQ?="] {
        let refused = of_region(region);
        assert_eq!(refused.status(), 400, "{region}: {}", refused.head);
        assert_eq!(refused.messages[0]["error"]["code"], -32020);
        assert_eq!(refused.messages[0]["id"], 1);
    }
}

#[test]
fn a_server_that_closes_the_stream_of_a_call_lets_the_client_come_back_later() {
    let dropping = Script::new().legacy().drop_stream(DropStream::default()).retry_ms(300);
    let server = TestServer::http(&dropping);
    let mut place = Place::new();
    place.add_entry("one", json!({ "url": server.url() }), json!({ "approval": "never" }));
    let gateway = place.gateway();
    let session = session(&gateway, json!({}));
    let of_version = |version| [("Mcp-Session-Id", session.as_str()), version];
    let headers = of_version(("MCP-Protocol-Version", "2025-11-25"));
    let paused = send(&gateway, "POST", &headers, &request(2, "tools/call", echo("hello")));
    assert_eq!(paused.header("content-type").as_deref(), Some("text/event-stream"));
    assert!(
        paused.body.contains("retry: 300\r\n") || paused.body.contains("retry: 300\n"),
        "{}",
        paused.body
    );
    assert_eq!(paused.messages.len(), 0, "{:?}", paused.messages);
    let resume = |last: &str| send(&gateway, "GET", &[headers[0], ("Last-Event-ID", last)], "");
    let rest = resume(paused.last_event().unwrap());
    assert_eq!(text(&rest.messages[0]), "hello", "{}", rest.body);
    // Read again, in case that the connection was lost with the last event.
    let again = resume(paused.last_event().unwrap());
    assert_eq!(text(&again.messages[0]), "hello", "{}", again.body);
    let unknown = resume("call-77-0");
    assert_eq!(unknown.status(), 400, "{}", unknown.head);
    // Earlier clients do not know that.
    let headers = of_version(("MCP-Protocol-Version", "2025-06-18"));
    let called = send(&gateway, "POST", &headers, &request(3, "tools/call", echo("hello")));
    assert_eq!(text(&called.messages[0]), "hello", "{}", called.body);
}

#[test]
fn a_call_goes_on_for_a_client_that_lost_the_connection_to_its_stream() {
    let place = Place::with("one", &Script::new());
    let gateway = place.gateway();
    let session = session(&gateway, json!({}));
    let call = json!({
        "name": "sleep", "arguments": { "ms": 2000 }, "_meta": { "progressToken": 7 },
    });
    let (headers, body) = ([("Mcp-Session-Id", &*session)], request(2, "tools/call", call));
    let stream = begin(&gateway, "/mcp?wrap=false", "POST", &headers, &body);
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let last = lines.find_map(|line| Some(line.strip_prefix("id: ")?.to_owned())).unwrap();
    drop(lines);
    let headers = [("Mcp-Session-Id", session.as_str()), ("Last-Event-ID", last.as_str())];
    let rest = send(&gateway, "GET", &headers, "");
    let reply = rest.messages.last().unwrap();
    assert!(reply["id"] == 2 && reply["result"].is_object(), "{:?}", rest.messages);
}

/// Sends a request of a session during a call that hangs, and waits until the call is cancelled at
/// its server. Returns both responses.
pub(crate) fn cancel_call(method: &str, body: &str) -> (Response, Response) {
    let (place, recording) = Place::hanging();
    let gateway = place.gateway();
    let session = session(&gateway, json!({}));
    let headers = [("Mcp-Session-Id", session.as_str())];
    std::thread::scope(|scope| {
        let call =
            scope.spawn(|| send(&gateway, "POST", &headers, &request(2, "tools/call", echo("x"))));
        assert!(recording.wait_for(LONG, |it| it["method"] == "tools/call").is_some());
        let accepted = send(&gateway, method, &headers, body);
        let called = call.join().unwrap();
        let is_cancelled = |it: &Value| it["method"] == "notifications/cancelled";
        assert!(recording.wait_for(LONG, is_cancelled).is_some());
        (accepted, called)
    })
}

#[test]
fn a_session_that_is_deleted_cancels_its_calls() {
    assert!(cancel_call("DELETE", "").0.status() < 300);
}

#[test]
fn an_id_that_is_in_use_is_refused() {
    let place = Place::with("one", &Script::new().call_delay_ms(500));
    let gateway = place.gateway();
    let session = session(&gateway, json!({}));
    let headers = [("Mcp-Session-Id", session.as_str())];
    std::thread::scope(|scope| {
        let calls: Vec<_> = ["a", "b"]
            .into_iter()
            .map(|words| {
                let (gateway, headers) = (&gateway, &headers);
                scope.spawn(move || {
                    send(gateway, "POST", headers, &request(2, "tools/call", echo(words)))
                })
            })
            .collect();
        let mut statuses: Vec<u16> =
            calls.into_iter().map(|call| call.join().unwrap().status()).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 400]);
    });
}

#[test]
fn the_trace_in_the_headers_reaches_the_server_unless_the_message_names_one() {
    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    let mut place = Place::new();
    let recording = Recording::at(place.path("record"));
    place.add("one", &Script::new().record(recording.path()), json!({ "approval": "never" }));
    let gateway = place.gateway();
    let session = session(&gateway, json!({}));
    let parent = |span: &str| format!("00-{TRACE}-{span}-01");
    let (of_headers, of_message) = (parent("00f067aa0ba902b7"), parent("b7ad6b7169203331"));
    let headers = [
        ("Mcp-Session-Id", session.as_str()),
        ("traceparent", of_headers.as_str()),
        ("tracestate", "rojo=1"),
        ("baggage", "a=b"),
    ];
    let mut with_own = echo("own");
    with_own["_meta"] = json!({ "traceparent": of_message });
    for (id, params) in [(2, echo("hello")), (3, with_own)] {
        let called = send(&gateway, "POST", &headers, &request(id, "tools/call", params));
        assert_eq!(called.status(), 200, "{}", called.head);
    }
    let calls = recording.of_method("tools/call");
    let received: Vec<&Value> = calls.iter().map(|call| &call["params"]["_meta"]).collect();
    assert_eq!(received[0]["traceparent"], *of_headers);
    assert_eq!(received[0]["tracestate"], "rojo=1");
    assert_eq!(received[0]["baggage"], "a=b");
    assert_eq!(received[1]["traceparent"], *of_message);
    assert_eq!(received[1].get("tracestate"), None);
}

#[test]
fn a_client_that_disconnects_during_a_call_cancels_it() {
    let (place, recording) = Place::hanging();
    let gateway = place.gateway();
    let session = session(&gateway, json!({}));
    let body = request(2, "tools/call", echo("x"));
    let stream = begin(&gateway, "/mcp", "POST", &[("Mcp-Session-Id", &session)], &body);
    assert!(recording.wait_for(LONG, |it| it["method"] == "tools/call").is_some());
    drop(stream);
    assert!(recording.wait_for(LONG, |it| it["method"] == "notifications/cancelled").is_some());
}

#[test]
fn what_is_not_a_message_is_answered_with_an_error_of_the_protocol() {
    let place = Place::with("one", &Script::new());
    let gateway = place.gateway();
    let session = session(&gateway, json!({}));
    let with_session = [("Mcp-Session-Id", session.as_str())];
    for headers in [&with_session[..], &[]] {
        for (body, code) in [
            ("", -32700),
            ("hello", -32700),
            ("{\"jsonrpc\":\"2.0\"", -32700),
            ("\0\0", -32700),
            ("7", -32600),
            ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600),
            ("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", -32600),
            ("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"tools/call\",\"params\":7}", -32600),
        ] {
            let refused = send(&gateway, "POST", headers, body);
            assert_eq!(refused.status(), 400, "{body}: {}", refused.head);
            assert_eq!(refused.messages[0]["error"]["code"], code, "{body}");
            assert_eq!(refused.messages[0]["id"], Value::Null);
        }
    }
    let twice = [("Mcp-Session-Id", session.as_str()), ("mcp-session-id", "another")];
    let refused = send(&gateway, "POST", &twice, &request(3, "tools/call", echo("hello")));
    assert_eq!(refused.status(), 400, "{}", refused.head);
    let unknown = send(&gateway, "DELETE", &[("Mcp-Session-Id", "unknown")], "");
    assert_eq!(unknown.status(), 404, "{}", unknown.head);
    let called = send(&gateway, "POST", &with_session, &request(3, "tools/call", echo("hello")));
    assert_eq!(text(&called.messages[0]), "hello");
}

#[test]
fn a_body_that_is_announced_as_too_large_is_refused_before_it_arrives() {
    let place = Place::with("one", &Script::new());
    let gateway = place.gateway();
    let length = (64 * 1024 * 1024 + 1).to_string();
    let mut stream = begin(&gateway, "/mcp", "POST", &[("Content-Length", &length)], "");
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
}
