//! Clients and servers that misbehave.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;
use std::time::Duration;

use openclaw_testkit::{Recording, Script, StdioClient};
use serde_json::{Value, json};

use crate::common::rpc::{hello, request};
use crate::common::{LONG, memory};
use crate::http::echo;
use crate::place::{Place, text};

/// A hub with a call that hangs at its server. Returns what the server records and the id of the
/// call, too.
fn hanging_call() -> (Place, Recording, StdioClient, u64) {
    let (place, recording) = Place::hanging();
    let mut hub = place.hub(&[]);
    let id = hub.ask("tools/call", &echo("x"));
    assert!(recording.wait_for(LONG, |it| it["method"] == "tools/call").is_some());
    (place, recording, hub, id)
}

#[test]
fn a_client_that_disappears_during_a_call_leaves_nothing_behind() {
    let (place, _, hub, _) = hanging_call();
    drop(hub);
    place.assert_nothing_left();
}

#[test]
fn a_notification_before_the_handshake_is_ignored() {
    let place = Place::with("one", &Script::new());
    let mut hub = place.spawn(&[]);
    let params = json!({ "requestId": 9 });
    let late = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
    hub.send(&late.to_string());
    let answer = hub.initialize_with("2025-11-25", &json!({}));
    assert_eq!(answer["result"]["serverInfo"]["name"], "openclaw-hub", "{answer}");
    assert!(hub.request("tools/list", &json!({}))["result"].is_object());
}

#[test]
fn a_client_that_closes_its_end_still_gets_its_replies() {
    let place = Place::with("one", &Script::new().call_delay_ms(100));
    let mut command = place.command(&["mcp-server", "--hub", "--no-wrap"]);
    let mut hub = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = hub.stdin.take().unwrap();
    let hello = hello("2025-11-25", json!({}));
    writeln!(input, "{}", request(1, "initialize", hello)).unwrap();
    writeln!(input, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
        .unwrap();
    writeln!(input, "{}", request(2, "tools/list", json!({}))).unwrap();
    let mut output = BufReader::new(hub.stdout.take().unwrap());
    let mut said = String::new();
    // The server is ready when its tools are listed.
    while !said.contains("\"id\":2") {
        assert!(output.read_line(&mut said).unwrap() > 0, "{said}");
    }
    writeln!(input, "{}", request(3, "tools/call", echo("hello"))).unwrap();
    drop(input);
    output.read_to_string(&mut said).unwrap();
    let messages = said.lines().map(|it| serde_json::from_str::<Value>(it).unwrap());
    let replies: Vec<Value> = messages.filter(|it| it.get("id").is_some()).collect();
    assert_eq!(replies.iter().map(|it| it["id"].clone()).collect::<Vec<_>>(), [1, 2, 3], "{said}");
    assert_eq!(text(&replies[2]), "hello");
    assert!(hub.wait().unwrap().success());
    place.assert_nothing_left();
}

#[test]
fn calls_of_a_client_that_closes_its_end_are_cancelled_soon() {
    let (place, _, mut hub, _) = hanging_call();
    let closed = std::time::Instant::now();
    hub.close();
    assert!(hub.wait().is_some_and(|status| status.success()));
    assert!(closed.elapsed() < Duration::from_secs(8), "{:?}", closed.elapsed());
    place.assert_nothing_left();
}

#[test]
fn a_server_that_hangs_delays_the_first_list_only() {
    let mut place = Place::with("one", &Script::new());
    let hanging = json!({ "command": "sleep", "args": ["1000"] });
    place.add_entry("never", hanging, json!({ "approval": "never" }));
    let mut hub = place.hub(&[]);
    let begun = std::time::Instant::now();
    let listed = hub.request("tools/list", &json!({})).to_string();
    assert!(listed.contains("mcp_one_echo"), "{listed}");
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    let begun = std::time::Instant::now();
    hub.request("resources/list", &json!({}));
    hub.request("prompts/list", &json!({}));
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}

#[test]
fn a_client_that_never_reads_is_not_read_and_others_are_served() {
    let place = Place::with("one", &Script::new());
    let mut command = place.command(&["mcp-server", "--hub"]);
    let mut stuck = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = stuck.stdin.take().unwrap();
    let writing = std::thread::spawn(move || {
        let long = "x".repeat(100_000);
        let mut written = 0;
        for id in 0..10_000 {
            let message = match id {
                0 => request(id, "initialize", hello("2025-11-25", json!({}))),
                _ => request(id, "tools/call", echo(&long)),
            };
            if writeln!(input, "{message}").is_err() {
                break;
            }
            written += 1;
        }
        written
    });
    // Its own hub is stuck, and stays small.
    let mut other = place.hub(&["--no-wrap"]);
    assert_eq!(text(&other.call("echo", &json!({ "text": "hello" }))), "hello");
    std::thread::sleep(Duration::from_secs(2));
    let memory = memory(stuck.id(), "RssAnon");
    assert!(memory < 300_000, "{memory} kB");
    stuck.kill().unwrap();
    stuck.wait().unwrap();
    assert!(writing.join().unwrap() < 10_000, "it was not read to the end");
    other.close();
    place.assert_nothing_left();
}

#[test]
fn an_id_that_is_in_use_is_refused_and_the_first_request_is_answered() {
    let place = Place::with("one", &Script::new().call_delay_ms(300));
    let mut hub = place.hub(&["--no-wrap"]);
    for words in ["first", "second"] {
        let params = json!({ "name": "echo", "arguments": { "text": words } });
        hub.send(
            &json!({ "jsonrpc": "2.0", "id": "same", "method": "tools/call", "params": params })
                .to_string(),
        );
    }
    let refused = hub.message();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&Value::Null, &json!(-32600)));
    let answered = hub.message();
    assert_eq!((&answered["id"], text(&answered)), (&json!("same"), "first"));
    // It may be used again afterwards.
    hub.send(r#"{"jsonrpc":"2.0","id":"same","method":"ping"}"#);
    assert_eq!(hub.message()["result"], json!({}));
}

#[test]
fn garbage_is_answered_with_errors() {
    let place = Place::with("one", &Script::new());
    let mut hub = place.hub(&[]);
    for (line, code) in [
        ("not json", -32700),
        ("{", -32700),
        ("[]", -32600),
        ("7", -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":5,"method":"unheard/of"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":5}}"#, -32602),
    ] {
        hub.send(line);
        let answer = hub.message();
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
    }
    assert_eq!(hub.request("ping", &json!({}))["result"], json!({}));
}

#[test]
fn a_call_that_is_cancelled_is_cancelled_at_the_server() {
    let (_place, recording, mut hub, id) = hanging_call();
    let cancel = json!({ "method": "notifications/cancelled", "params": { "requestId": id } });
    hub.send(&cancel.to_string());
    assert!(recording.wait_for(LONG, |it| it["method"] == "notifications/cancelled").is_some());
    // Nothing is said about it any more.
    assert_eq!(hub.request("ping", &json!({}))["result"], json!({}));
}

#[test]
fn calls_that_time_out_are_reported_and_cancelled_at_the_server() {
    let mut place = Place::new();
    let recording = Recording::at(place.path("record"));
    let script = Script::new().silent_after_calls(1).record(recording.path());
    place.add("one", &script, json!({ "approval": "never", "toolTimeout": 300 }));
    let mut hub = place.hub(&["--no-wrap"]);
    let call = echo("x");
    let answered = hub.ask("tools/call", &call);
    assert_eq!(hub.message()["id"], answered);
    let mut ids: BTreeSet<u64> = (0..3).map(|_| hub.ask("tools/call", &call)).collect();
    while !ids.is_empty() {
        let answer = hub.message();
        assert!(answer["id"].as_u64().is_some_and(|id| ids.remove(&id)), "{answer}");
        assert!(text(&answer).contains("timed out"), "{answer}");
    }
    let is_cancelled = |it: &Value| it["method"] == "notifications/cancelled";
    assert!(recording.wait_for(LONG, is_cancelled).is_some());
}

#[test]
fn calls_in_flight_are_answered_when_their_server_dies() {
    let place = Place::with("one", &Script::new().crash_after_calls(1));
    let mut hub = place.hub(&["--no-wrap"]);
    let calls: Vec<String> = (100..110).map(|id| request(id, "tools/call", echo("x"))).collect();
    // In one write, so that the server exits with most of them unanswered.
    hub.send(&calls.join("\n"));
    let (mut ids, mut failed) = (BTreeSet::new(), 0);
    while ids.len() < 10 {
        let answer = hub.message();
        assert!(!answer.is_null(), "the hub has exited");
        if let Some(id) = answer["id"].as_u64() {
            ids.insert(id);
            failed += usize::from(answer["result"]["isError"] == true);
        }
    }
    assert!(failed > 0);
    assert_eq!(ids, (100..110).collect());
}

#[test]
fn a_server_that_dies_fails_its_call_and_comes_back() {
    let place = Place::with("one", &Script::new().crash_after_calls(1));
    let mut hub = place.hub(&["--no-wrap"]);
    for _ in 0..2 {
        let answer = hub.call("echo", &json!({ "text": "x" }));
        let is_answered = text(&answer) == "x";
        let is_reported = text(&answer).contains("not available");
        assert!(is_answered || is_reported, "{answer}");
    }
}

#[test]
fn a_server_that_floods_does_not_stop_the_others() {
    let mut place = Place::with("calm", &Script::new());
    place.add("flood", &Script::new().flood(20_000), json!({ "approval": "never" }));
    let mut hub = place.hub(&["--no-wrap"]);
    hub.ask("tools/call", &json!({ "name": "mcp_flood_echo", "arguments": { "text": "x" } }));
    let answer = hub.call("mcp_calm_echo", &json!({ "text": "hello" }));
    assert_eq!(text(&answer), "hello");
}

#[test]
fn a_server_that_changes_its_tools_during_a_call_keeps_the_call() {
    let place = Place::with("one", &Script::new().list_changed_after_calls(1).call_delay_ms(200));
    let mut hub = place.hub(&["--no-wrap"]);
    let ids: Vec<u64> = (0..4).map(|_| hub.ask("tools/call", &echo("x"))).collect();
    let mut answered = Vec::new();
    while answered.len() < ids.len() {
        let message = hub.message();
        assert!(!message.is_null(), "the hub has exited");
        if let Some(id) = message["id"].as_u64() {
            assert_eq!(text(&message), "x", "{message}");
            answered.push(id);
        }
    }
}

#[test]
fn a_hub_that_is_its_own_server_is_not_started_without_end() {
    let mut place = Place::with("one", &Script::new());
    let file = place.path("openclaw.json");
    let args = json!(["--config", file, "mcp-server", "--hub"]);
    let entry = json!({ "command": env!("CARGO_BIN_EXE_openclaw"), "args": args });
    place.add_entry("me", entry, json!({ "approval": "never" }));
    let mut hub = place.hub(&[]);
    let listed = hub.request("tools/list", &json!({})).to_string();
    assert!(listed.contains("mcp_one_echo") && !listed.contains("mcp_me_"), "{listed}");
    let output = place.command(&["mcp", "doctor"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("started as a server of its own configuration"), "{output:?}");
    // With another configuration, a hub may well be a server.
    let other = place.path("other.json");
    let script = place.config["mcp"]["servers"]["one"].clone();
    std::fs::write(&other, json!({ "mcp": { "servers": { "two": script } } }).to_string()).unwrap();
    place.config["mcp"]["servers"]["me"]["args"][1] = json!(other);
    let mut hub = place.hub(&[]);
    let listed = hub.request("tools/list", &json!({})).to_string();
    assert!(listed.contains("mcp_me_"), "{listed}");
}
