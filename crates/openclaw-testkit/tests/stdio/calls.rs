//! Calls with regular and with faulty responses.

use std::time::Duration;

use openclaw_testkit::{Ask, Junk, Recording, RpcError, Script, StdioClient, Tool};
use serde_json::{Value, json};

#[test]
fn the_default_tools_do_what_they_say() {
    let mut client = StdioClient::connect(&Script::new());
    assert_eq!(client.call_text("echo", &json!({"text": "a \"b\" \u{e9}\n"})), "a \"b\" \u{e9}\n");
    assert_eq!(
        client.call("add", &json!({"a": 2, "b": 3.5}))["result"]["structuredContent"]["sum"],
        5.5
    );
    assert_eq!(client.call_text("add", &json!({"a": 2, "b": 3})), "5");
    assert_eq!(client.call_text("big", &json!({"bytes": 300_000})).len(), 300_000);
    assert_eq!(client.call("fail", &json!({}))["result"]["isError"], true);
    assert!(client.call_text("env", &json!({})).contains("PATH"));
    assert!(client.call_text("cwd", &json!({})).contains("openclaw-testkit"));
    assert_eq!(client.call("image", &json!({}))["result"]["content"][0]["mimeType"], "image/png");
    let parts = client.call("parts", &json!({"n": 1000}));
    assert_eq!(parts["result"]["content"].as_array().map(Vec::len), Some(1000));
    assert_eq!(client.call_text("count", &json!({})), "10");
    assert_eq!(client.call("nobody", &json!({}))["error"]["code"], -32602);
    assert!(client.call("crash", &json!({"code": 7})).is_null());
    assert_eq!(client.wait().and_then(|status| status.code()), Some(7));
}

#[test]
fn many_calls_at_once_are_all_answered_and_a_slow_one_does_not_block_them() {
    // The slow one ends when it is cancelled, however long the others take.
    let mut client = StdioClient::connect(&Script::new().late_after_cancel_ms(1));
    let slow = client.ask("tools/call", &json!({"name": "sleep", "arguments": {"ms": 600_000}}));
    for _ in 0..500 {
        client.ask("tools/call", &json!({"name": "echo", "arguments": {"text": "x"}}));
    }
    for expected in slow + 1..=slow + 500 {
        assert_eq!(client.message()["id"], expected);
    }
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": slow}});
    client.send(&cancel.to_string());
    assert_eq!(client.message()["id"], slow);
}

#[test]
fn a_slow_call_reports_progress_when_it_has_a_token() {
    let mut client = StdioClient::connect(&Script::new());
    client.ask(
        "tools/call",
        &json!({
            "name": "sleep", "arguments": {"ms": 60, "every": 20}, "_meta": {"progressToken": "t"}
        }),
    );
    let progress = client.message();
    assert_eq!(progress["method"], "notifications/progress");
    assert_eq!(progress["params"]["progressToken"], "t");
}

#[test]
fn a_cancelled_call_is_not_answered_unless_the_script_wants_it_late() {
    for late in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let recording = Recording::at(folder.path().join("record"));
        let mut script = Script::new().record(recording.path());
        if late {
            script = script.late_after_cancel_ms(1);
        }
        let mut client = StdioClient::connect(&script);
        let slow = client.ask("tools/call", &json!({"name": "sleep", "arguments": {"ms": 60_000}}));
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": slow}});
        client.send(&cancel.to_string());
        if late {
            assert_eq!(client.message()["id"], slow);
        }
        assert_eq!(client.call_text("echo", &json!({"text": "next"})), "next");
        assert_eq!(recording.of_method("notifications/cancelled"), [cancel]);
        assert!(
            recording.wait_for(Duration::ZERO, |line| line["method"] == "initialize").is_some()
        );
    }
}

/// Returns the messages between a call of `echo` and the next response to a ping.
fn answers(script: &Script) -> Vec<Value> {
    let mut client = StdioClient::connect(script);
    client.ask("tools/call", &json!({"name": "echo", "arguments": {"text": "x"}}));
    let ping = client.ask("ping", &json!({}));
    let mut answers = Vec::new();
    loop {
        let message = client.message();
        if message["id"] == ping && message.get("method").is_none() {
            return answers;
        }
        answers.push(message);
    }
}

#[test]
fn answers_can_be_doubled_misnamed_batched_or_unsolicited() {
    let ids = |script: Script| -> Vec<Value> {
        answers(&script).iter().map(|answer| answer["id"].clone()).collect()
    };
    assert_eq!(ids(Script::new()), [json!(2)]);
    assert_eq!(ids(Script::new().answer_twice()), [json!(2), json!(2)]);
    assert_eq!(ids(Script::new().wrong_id()), [json!("wrong-1")]);
    assert_eq!(ids(Script::new().string_ids()), [json!("2")]);
    assert_eq!(ids(Script::new().unsolicited()), [json!(424_242), json!(2)]);
    assert_eq!(ids(Script::new().log_notifications()), [Value::Null, json!(2)]);
    let batch = answers(&Script::new().batch_answers());
    assert_eq!(batch[0][1]["id"], 2);
    let error = answers(&Script::new().call_error(RpcError::new(-32000, "boom")));
    assert_eq!(error[0]["error"], json!({"code": -32000, "message": "boom"}));
    let unknown = answers(&Script::new().unknown_tool("echo"));
    assert_eq!(unknown[0]["error"]["code"], -32602);
    let odd = Tool::new("echo").raw_result(r#"{"content":[],"n":1e999}"#);
    let raw = Script::new().tools([odd]);
    assert!(answers(&raw).is_empty(), "serde_json rejects the number 1e999");
}

#[test]
fn junk_on_stdout_is_printed_before_and_between_the_messages() {
    let script = Script::new()
        .junk_before(Junk::Line("Welcome!".into()))
        .junk_before(Junk::LineOfMb(2))
        .junk_between(Junk::Blank)
        .junk_between(Junk::NonUtf8)
        .split_messages(1)
        .crlf();
    let mut client = StdioClient::start(&script);
    client.ask("initialize", &json!({"protocolVersion": "2025-11-25"}));
    assert_eq!(client.line().unwrap(), b"Welcome!\n");
    assert_eq!(client.line().unwrap().len(), (2 << 20) + 1);
    assert_eq!(client.line().unwrap(), b"\n");
    assert!(String::from_utf8(client.line().unwrap()).is_err());
    assert!(client.line().unwrap().ends_with(b"}\r\n"));
    let glued = Script::new().junk_before(Junk::Partial("loading... ".into()));
    let mut client = StdioClient::start(&glued);
    client.ask("initialize", &json!({}));
    assert!(client.line().unwrap().starts_with(b"loading... {\"jsonrpc\""));
}

#[test]
fn the_response_of_the_client_is_the_result_of_the_call() {
    for (script, same_id) in [(Script::new(), false), (Script::new().ask_with_client_id(), true)] {
        let mut client = StdioClient::connect(&script.ask(Ask::Roots));
        let call = client.ask("tools/call", &json!({"name": "echo"}));
        let question = client.message();
        assert_eq!(question["method"], "roots/list");
        assert_eq!(question["id"] == call, same_id);
        let id = &question["id"];
        client.send(&json!({"jsonrpc": "2.0", "id": id, "result": {"roots": []}}).to_string());
        let answer = client.message();
        assert_eq!(answer["id"], call);
        assert_eq!(answer["result"]["content"][0]["text"], r#"{"result":{"roots":[]}}"#);
    }
}

#[test]
fn a_server_can_ping_for_ever_and_fall_silent() {
    let mut client = StdioClient::connect(&Script::new().ping_every_ms(1).silent_after_calls(1));
    client.call("count", &json!({}));
    let unanswered = client.ask("ping", &json!({}));
    for _ in 0..5 {
        let message = client.message();
        assert_eq!(message["method"], "ping");
        assert_ne!(message["id"], unanswered);
    }
}
