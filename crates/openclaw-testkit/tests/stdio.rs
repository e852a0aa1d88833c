//! The stdio server: faults that a client would not notice if they were missing, and what a client must
//! send. The rest is tested by the client, `openclaw-mcp-client`.

use std::time::Duration;

use openclaw_testkit::{Ask, Junk, RpcError, Script, StdioClient, Tool, processes};
use serde_json::{Value, json};

fn modern(version: &str) -> Value {
    json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {}
    }})
}

#[test]
fn a_modern_request_needs_no_handshake_but_a_version_and_capabilities() {
    let mut client = StdioClient::start(&Script::new().modern());
    let answer = client.request("tools/list", &modern("2026-07-28"));
    assert_eq!(answer["result"]["cacheScope"], "private");
    assert_eq!(answer["result"]["resultType"], "complete");
    let old = client.request("tools/list", &modern("2025-11-25"));
    assert_eq!(old["error"]["code"], -32022);
    let bare = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}});
    assert_eq!(client.request("tools/list", &bare)["error"]["code"], -32602);
    assert_eq!(client.request("ping", &modern("2026-07-28"))["error"]["code"], -32601);
    assert_eq!(client.initialize("2025-11-25")["error"]["code"], -32022);
}

#[test]
fn a_request_before_the_handshake_is_refused() {
    let mut client = StdioClient::start(&Script::new());
    assert_eq!(client.request("tools/list", &json!({}))["error"]["code"], -32600);
}

#[test]
fn a_modern_request_to_the_client_is_a_result_and_its_state_must_be_returned_unchanged() {
    let mut client = StdioClient::start(&Script::new());
    let mut params = modern("2026-07-28");
    params["name"] = json!("ask");
    params["arguments"] = json!({"method": "elicitation"});
    let result = client.request("tools/call", &params)["result"].take();
    assert_eq!(result["resultType"], "input_required");
    assert_eq!(result["inputRequests"]["question"]["method"], "elicitation/create");
    params["inputResponses"] = json!({"question": {"action": "decline"}});
    params["requestState"] = result["requestState"].clone();
    let result = client.request("tools/call", &params)["result"].take();
    let given = json!({"question": {"action": "decline"}}).to_string();
    assert_eq!(result["content"][0]["text"], given);
    params["requestState"] = json!("another");
    let result = client.request("tools/call", &params)["result"].take();
    assert_eq!(result["content"][0]["text"], "the state was changed: another");
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

const SOON: Duration = Duration::from_secs(60);

#[cfg(target_os = "linux")]
#[test]
fn a_stubborn_server_survives_closed_stdin_and_sigterm_until_the_guard_kills_it() {
    use std::process::Command;
    let script = Script::new().ignore_sigterm().ignore_stdin_close().ping_every_ms(1);
    let mut client = StdioClient::connect(&script);
    let pid = client.pid();
    client.close();
    let killed = Command::new("kill").args(["-TERM", &pid.to_string()]).status();
    assert!(killed.unwrap().success());
    // It pings every millisecond: of a hundred pings, most were sent after the signal.
    for _ in 0..100 {
        assert_eq!(client.message()["method"], "ping");
    }
    assert!(processes::is_alive(pid));
    drop(client);
    assert!(!processes::is_alive(pid));
}

#[cfg(target_os = "linux")]
#[test]
fn a_grandchild_is_in_the_group_and_is_reported() {
    let mut client = StdioClient::connect(&Script::new().grandchild());
    let pids: Value = serde_json::from_str(&client.call_text("pids", &json!({}))).unwrap();
    let grandchild = u32::try_from(pids["grandchild"].as_u64().unwrap()).unwrap();
    let group = client.pid();
    assert_eq!(processes::in_group(group), [group, grandchild]);
    drop(client);
    let left = processes::wait_until_none(SOON, || processes::in_group(group));
    assert!(left.is_empty(), "left behind: {left:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_is_found_by_its_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record");
    let client = StdioClient::connect(&Script::new().record(&path));
    assert_eq!(processes::mentioning(path.to_str().unwrap()), [client.pid()]);
}
