//! What clients get wrong, and what hostile ones try.

use std::io::Write as _;

use openclaw_testkit::Piece;
use serde_json::{Value, json};

use crate::client::Client;
use crate::common::memory;
use crate::common::place::Place;
use crate::common::rpc::{hello, meta, request};
use crate::model::Model;

#[test]
fn wrong_arguments_are_reported_and_nothing_is_run() {
    let place = Place::new();
    let mut client = Client::start(&place, &[]);
    let big = "x".repeat(10 * 1024 * 1024);
    let long = "k".repeat(10_000);
    for (arguments, why) in [
        (json!({}), "missing argument `message`"),
        (json!({ "message": "" }), "the message is empty"),
        (json!({ "message": " \n" }), "the message is empty"),
        (json!({ "message": 7 }), "/message must be a string, but is the number 7"),
        (json!({ "message": null }), "/message must be a string, but is null"),
        (json!({ "message": big }), "longer than 4 MB"),
        (json!({ "message": "x", "sesionKey": "y" }), "unknown argument `sesionKey`"),
        (json!({ "message": "x", "sessionKey": "" }), "invalid `sessionKey`"),
        (json!({ "message": "x", "sessionKey": "a/b" }), "invalid `sessionKey`"),
        (json!({ "message": "x", "sessionKey": "../x" }), "invalid `sessionKey`"),
        (json!({ "message": "x", "sessionKey": "a\0b" }), "invalid `sessionKey`"),
        (json!({ "message": "x", "sessionKey": long }), "at most 256"),
        (json!({ "message": "x", "timeoutMs": 0 }), "invalid `timeoutMs`"),
        (json!({ "message": "x", "timeoutMs": -1 }), "/timeoutMs must be at least 1"),
        (json!({ "message": "x", "timeoutMs": 1e12 }), "/timeoutMs must be at most 86400000"),
        (json!({ "message": "x", "attachments": ["y"] }), "/attachments/0 must be an object"),
        (json!({ "message": "x", "agentId": "nobody" }), "nobody"),
        (json!({ "message": "x", "agentId": "main", "sessionKey": "agent:other:x" }), "other"),
    ] {
        let error = client.failure("order_openclaw", arguments);
        assert!(error.contains(why), "{why}: {error}");
    }
    let error = client.ask("tools/call", json!({ "name": "nothing" })).unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("unknown tool"), "{error}");
    for (method, params, code) in [
        ("tools/call", json!({}), -32602),
        ("tools/call", json!({ "name": "order_openclaw", "arguments": [] }), -32602),
        ("nope/x", json!({}), -32601),
        ("prompts/get", json!({ "name": "x" }), -32601),
        ("prompts/list", json!({}), -32601),
        ("completion/complete", completion(), -32601),
        ("completion/complete", json!({}), -32601),
        ("logging/setLevel", json!({ "level": "info" }), -32601),
        ("logging/setLevel", json!({}), -32601),
        ("resources/subscribe", json!({ "uri": "a:b" }), -32601),
        ("resources/unsubscribe", json!({ "uri": "a:b" }), -32601),
        ("resources/read", json!({}), -32602),
    ] {
        let error = client.ask(method, params).unwrap_err();
        assert_eq!(error["code"], code, "{error}");
        assert_ne!(error["message"], method, "{error}");
    }
    let list = client.call("list_openclaw_sessions", json!({}));
    assert_eq!(list["structuredContent"]["sessions"], json!([]));
    assert_eq!(client.close(), 0);
}

/// The parameters of `completion/complete`.
fn completion() -> Value {
    let prompt = json!({ "type": "ref/prompt", "name": "x" });
    json!({ "ref": prompt, "argument": { "name": "a", "value": "" } })
}

#[test]
fn what_is_not_a_message_is_survived() {
    let place = Place::new();
    let mut client = Client::start(&place, &[]);
    client.write("");
    for (line, code) in [
        ("hello", -32700),
        ("{\"jsonrpc\":\"2.0\"", -32700),
        ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600),
    ] {
        client.write(line);
        let rejection = client.frame();
        assert_eq!(rejection["error"]["code"], code, "{line}: {rejection}");
        assert_eq!(rejection.get("id"), Some(&Value::Null), "{rejection}");
    }
    client.write("[]");
    client.write("\u{0}\u{1}");
    client.input.as_mut().unwrap().write_all(b"\xff\xfe\n").unwrap();
    client.write("{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":7}");
    let error = client.answer(77).unwrap_err();
    assert_eq!(error["code"], -32600, "{error}");
    assert!(client.ask("ping", json!({})).is_ok());
    assert_eq!(client.close(), 0);
}

#[test]
fn messages_before_the_handshake_are_ignored_or_rejected() {
    let place = Place::new();
    let mut client = Client::spawn(&place, &[]);
    client.notify("notifications/initialized", json!({}));
    client.write("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    assert!(client.ask("ping", json!({})).is_ok());
    client.notify("notifications/cancelled", json!({ "requestId": 9 }));
    let error = client.ask("tools/list", json!({})).unwrap_err();
    assert!(error["message"].is_string());
    client.notify("notifications/initialized", json!({}));
    let hello = hello("2025-11-25", json!({}));
    assert_eq!(client.ask("initialize", hello).unwrap()["serverInfo"]["name"], "openclaw");
    assert_eq!(client.close(), 0);
}

#[test]
fn an_endless_line_is_not_kept_and_its_request_is_answered() {
    let place = Place::new();
    let mut client = Client::start(&place, &[]);
    let input = client.input.as_mut().unwrap();
    input.write_all(b"{\"method\":\"tools/call\",\"params\":{\"name\":\"order_openclaw\",\"arguments\":{\"message\":\"").unwrap();
    let piece = vec![b'x'; 1024 * 1024];
    for _ in 0..200 {
        input.write_all(&piece).unwrap();
    }
    let kb = memory(client.child.id(), "VmRSS");
    assert!(kb < 150 * 1024, "{kb} KB");
    client.write("\"}},\"jsonrpc\":\"2.0\",\"id\":99}");
    let error = client.answer(99).unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("longer than"), "{error}");
    assert!(client.ask("ping", json!({})).is_ok());
}

#[cfg(target_os = "linux")]
#[test]
fn values_take_no_more_memory_than_the_client_may_have() {
    let place = Place::new();
    let mut client = Client::start(&place, &[]);
    let zeros = format!("[{}0]", "0,".repeat(7 * 1024 * 1024 / 2));
    let call = |params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{{{params}}}}}"#)
    };
    let meta = meta(json!({ "elicitation": {} }));
    for (params, why) in [
        (format!(r#""name":"order_openclaw","arguments":{{"message":{zeros}}}"#), "MiB of memory"),
        (
            format!(r#""name":"list_openclaw_sessions","arguments":{{"x":{zeros}}}"#),
            "MiB of memory",
        ),
        (
            format!(r#""name":"order_openclaw","_meta":{meta},"arguments":{{"message":{zeros}}}"#),
            "MiB of memory",
        ),
        (
            format!(r#""name":"order_openclaw","_meta":{meta},"inputResponses":{{"a":{zeros}}}"#),
            "too many values",
        ),
        (format!(r#""arguments":{{"message":{zeros}}}"#), "1 MiB"),
    ] {
        client.write(&call(&params));
        let refused = client.answer(99).unwrap_or_else(|error| error);
        assert!(refused.to_string().contains(why), "{why}: {refused}");
    }
    let kb = memory(client.child.id(), "VmHWM");
    assert!(kb < 150 * 1024, "{kb} KB");
    assert!(client.ask("ping", json!({})).is_ok());
}

#[test]
fn an_id_that_is_in_use_is_rejected_and_the_first_request_is_answered() {
    let model = Model::start(|_| vec![Piece::Wait, Piece::text("first")]);
    let (_place, mut client) = model.client();
    let id = client.send_call("order_openclaw", json!({ "message": "one" }));
    model.next();
    client.write(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string());
    let rejection = client.frame();
    assert_eq!(rejection.get("id"), Some(&Value::Null), "{rejection}");
    assert!(rejection["error"]["message"].as_str().unwrap().contains("in use"), "{rejection}");
    model.release();
    assert_eq!(client.answer(id).unwrap()["structuredContent"]["text"], "first");
}

#[test]
fn a_client_that_never_reads_does_not_make_it_grow() {
    let place = Place::new();
    let mut command = place.command(&["mcp-server"]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{}", request(0, "initialize", hello("2025-11-25", json!({})))).unwrap();
    // It stops reading when enough answers wait, so that this blocks sooner or later.
    let writer = std::thread::spawn(move || {
        for id in 1..2_000_000_u64 {
            let list = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" });
            if writeln!(input, "{list}").is_err() {
                return;
            }
        }
    });
    // Until it is idle: blocked on a client that does not read.
    let mut last = u64::MAX;
    let cpu = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        stat.rsplit(')').next().unwrap().split_whitespace().nth(11).unwrap().parse::<u64>().unwrap()
    };
    for _ in 0..600 {
        let now = cpu();
        if now == last {
            break;
        }
        last = now;
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    let kb = memory(child.id(), "VmRSS");
    assert!(kb < 150 * 1024, "{kb} KB");
    child.kill().unwrap();
    child.wait().unwrap();
    writer.join().unwrap();
    place.assert_nothing_left();
}
