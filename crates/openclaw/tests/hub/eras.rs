//! What clients and servers of different eras get from each other.

use openclaw_testkit::{Ask, Peers, Recording, RpcError, Script};
use serde_json::{Value, json};

use crate::common::rpc::{self, meta, request};
use crate::http::{echo, send, session};
use crate::place::{Place, next, text};

const OPENCLAW: &str = env!("CARGO_BIN_EXE_openclaw");

/// A client of 2026-07-28 with the second version of the TypeScript SDK.
const TYPESCRIPT: &str = r#"
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
await client.connect(new StdioClientTransport({ command: process.argv[2], args: ["mcp-server", "--hub", "--tools", "search"], env: process.env }));
const found = await client.callTool({ name: "search_tools", arguments: { query: "echo" } });
const called = await client.callTool({ name: "call_tool", arguments: { name: "echo", arguments: { text: "hello" } } });
console.log(found.content[0].text.includes("echo"), called.content[0].text);
await client.close();
process.exit(0);
"#;

/// A client of 2026-07-28 with the Python SDK.
const PYTHON: &str = r#"
import asyncio, os, sys
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
async def main():
    server = StdioServerParameters(command=sys.argv[1], args=["mcp-server", "--hub", "--tools", "search"], env=dict(os.environ))
    async with Client(stdio_client(server)) as client:
        assert client.protocol_version == "2026-07-28", client.protocol_version
        found = await client.call_tool("search_tools", {"query": "echo"})
        called = await client.call_tool("call_tool", {"name": "echo", "arguments": {"text": "hello"}})
        print("echo" in found.content[0].text, called.content[0].text)
asyncio.run(main())
"#;

#[test]
fn real_clients_of_2026_07_28_search_for_tools() {
    let place = Place::with("one", &Script::new());
    place.command(&[]);
    let mut outputs = Vec::new();
    for mut command in [place.node(TYPESCRIPT), place.python(PYTHON)] {
        outputs.push(command.arg(OPENCLAW).output().unwrap());
    }
    let call =
        ["--method", "tools/call", "--tool-name", "search_tools", "--tool-arg", "query=echo"];
    let target = ["--", OPENCLAW, "mcp-server", "--hub", "--tools", "search"];
    let args = [&["--protocol-era", "modern"], &call[..], &target].concat();
    outputs.push(place.prepare(&mut Peers::find().inspector(&args).command()).output().unwrap());
    for output in outputs {
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{output:?}");
        assert!(said.contains("echo") || said.contains("hello"), "{output:?}");
    }
}

#[test]
fn every_result_since_2026_07_28_has_a_type_and_every_list_says_whether_it_may_be_cached() {
    for options in [&["--no-wrap"][..], &["--tools", "search"]] {
        let place = Place::with("one", &Script::new());
        let mut hub = place.spawn(options);
        let prompt = json!({ "type": "ref/prompt", "name": "greet" });
        for (method, params, is_cacheable) in [
            ("server/discover", json!({}), false),
            ("tools/list", json!({}), true),
            ("resources/list", json!({}), true),
            ("resources/templates/list", json!({}), true),
            ("prompts/list", json!({}), true),
            ("resources/read", json!({ "uri": "test://greeting" }), true),
            ("prompts/get", json!({ "name": "greet", "arguments": { "name": "Ada" } }), false),
            (
                "completion/complete",
                json!({ "ref": prompt, "argument": { "name": "name", "value": "" } }),
                false,
            ),
            ("tools/call", json!({ "name": "echo", "arguments": { "text": "x" } }), false),
            ("tools/call", json!({ "name": "search_tools", "arguments": { "query": "x" } }), false),
        ] {
            let mut params = params;
            params["_meta"] = meta(json!({}));
            let answer = hub.request(method, &params);
            if answer.get("error").is_some() {
                assert_eq!(method, "tools/call", "the other view has this tool: {answer}");
                continue;
            }
            assert_eq!(answer["result"]["resultType"], "complete", "{method}: {answer}");
            if is_cacheable {
                assert!(answer["result"]["ttlMs"].is_u64(), "{method}: {answer}");
                assert!(answer["result"]["cacheScope"].is_string(), "{method}: {answer}");
            }
        }
    }
}

/// The log messages during a call of this client, and whether it has a reply.
fn logs(hub: &mut openclaw_testkit::StdioClient, call: &Value) -> Vec<Value> {
    let id = hub.ask("tools/call", call);
    let mut logs = Vec::new();
    loop {
        let message = hub.message();
        assert!(!message.is_null(), "the hub has exited");
        if message["id"] == id {
            assert!(message["result"].is_object(), "{message}");
            return logs;
        }
        if message["method"] == "notifications/message" {
            logs.push(message["params"].clone());
        }
    }
}

#[test]
fn a_client_since_2026_07_28_gets_the_log_messages_that_its_request_wants() {
    for script in [Script::new().modern(), Script::new().legacy()] {
        let place = Place::with("one", &script.log_notifications());
        let mut hub = place.spawn(&["--no-wrap"]);
        for (level, expected) in [(None, 0), (Some("error"), 0), (Some("info"), 1), (None, 0)] {
            let mut call = echo("x");
            call["_meta"] = meta(json!({}));
            if let Some(level) = level {
                call["_meta"]["io.modelcontextprotocol/logLevel"] = json!(level);
            }
            for _ in 0..3 {
                let logs = logs(&mut hub, &call);
                assert_eq!(logs.len(), expected, "{level:?}: {logs:?}");
            }
        }
        let mut call = echo("x");
        call["_meta"] = meta(json!({}));
        call["_meta"]["io.modelcontextprotocol/logLevel"] = json!("loud");
        let refused = hub.request("tools/call", &call);
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
}

#[test]
fn a_client_with_a_session_gets_log_messages_of_the_level_that_it_has_set() {
    let place = Place::with("one", &Script::new().log_notifications());
    let gateway = place.gateway();
    let session = session(&gateway, json!({}));
    let headers = [("Mcp-Session-Id", session.as_str())];
    for (id, level, expected) in [(2, None, 1), (3, Some("error"), 0), (4, Some("debug"), 1)] {
        if let Some(level) = level {
            let set = request(100 + id, "logging/setLevel", json!({ "level": level }));
            send(&gateway, "POST", &headers, &set);
        }
        // With a token of progress, so that the stream is open before the message comes.
        let call = json!({
            "name": "sleep", "arguments": { "ms": 300 }, "_meta": { "progressToken": id },
        });
        let called = send(&gateway, "POST", &headers, &request(id, "tools/call", call));
        let logs = called.messages.iter().filter(|it| it["method"] == "notifications/message");
        assert_eq!(logs.count(), expected, "{level:?}: {:?}", called.messages);
    }
}

#[test]
fn the_level_of_an_earlier_client_reaches_a_server_that_is_told_so_with_each_request() {
    let mut place = Place::new();
    let recording = Recording::at(place.path("record"));
    let script = Script::new().modern().record(recording.path());
    let logging = json!({ "tools": {}, "logging": {} });
    place.add("one", &script.capabilities(logging), json!({ "approval": "never" }));
    let mut hub = place.hub(&["--no-wrap"]);
    hub.call("echo", &json!({ "text": "x" }));
    hub.request("logging/setLevel", &json!({ "level": "info" }));
    for _ in 0..2 {
        assert_eq!(text(&hub.call("echo", &json!({ "text": "x" }))), "x");
    }
    let calls = recording.of_method("tools/call");
    let level = |call: &Value| call["params"]["_meta"]["io.modelcontextprotocol/logLevel"].clone();
    let levels: Vec<Value> = calls.iter().map(level).collect();
    assert_eq!(levels, [Value::Null, json!("info"), json!("info")]);
}

#[test]
fn members_of_meta_that_are_not_the_protocols_own_reach_the_server() {
    const OTHER: &str = "io.modelcontextprotocol/other";
    const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    for script in [Script::new().modern(), Script::new().legacy()] {
        let is_modern = script == Script::new().modern();
        let mut place = Place::new();
        let recording = Recording::at(place.path("record"));
        place.add("one", &script.record(recording.path()), json!({ "approval": "never" }));
        let mut hub = place.hub(&["--no-wrap"]);
        let prompt = json!({ "type": "ref/prompt", "name": "greet" });
        let sent = [
            ("tools/call", echo("x")),
            ("resources/read", json!({ "uri": "test://greeting" })),
            ("prompts/get", json!({ "name": "greet", "arguments": { "name": "Ada" } })),
            (
                "completion/complete",
                json!({ "ref": prompt, "argument": { "name": "name", "value": "" } }),
            ),
        ];
        for (method, mut params) in sent {
            // Those of the protocol are ours.
            params["_meta"] = json!({ "example.org/own": 7, "progressToken": "t", OTHER: 8 });
            for _ in 0..2 {
                let answer = hub.request(method, &params);
                assert!(answer["result"].is_object(), "{method}: {answer}");
            }
            let received = recording.of_method(method);
            assert_eq!(received.len(), 2, "{method}");
            for request in received {
                let meta = &request["params"]["_meta"];
                assert_eq!(meta["example.org/own"], 7, "{request}");
                assert_ne!(meta["progressToken"], "t", "{request}");
                assert_eq!(meta.get(OTHER), None, "{request}");
                let version = if is_modern { json!("2026-07-28") } else { Value::Null };
                assert_eq!(meta[VERSION], version, "{request}");
            }
        }
    }
}

#[test]
fn a_visited_url_is_reported_with_the_id_that_the_client_knows() {
    let place = Place::with("one", &Script::new().legacy().ask(Ask::ElicitationUrl));
    let _gateway = place.gateway();
    let able = json!({ "elicitation": { "url": {} } });
    let [mut asked, mut other] = [(); 2].map(|()| place.hub_for(&["--no-wrap"], &able));
    let id = asked.ask("tools/call", &echo("x"));
    let question = next(&mut asked, |it| it["method"] == "elicitation/create");
    let ours = &question["params"]["elicitationId"];
    assert!(ours.is_string() && *ours != "elicitation-1", "{question}");
    let accepted =
        json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept" } });
    asked.send(&accepted.to_string());
    let (mut visited, mut has_reply) = (Value::Null, false);
    while visited.is_null() || !has_reply {
        let message = next(&mut asked, |_| true);
        has_reply |= message["id"] == id;
        if message["method"] == "notifications/elicitation/complete" {
            visited = message["params"].clone();
        }
    }
    assert_eq!(visited["elicitationId"], *ours);
    // No other client is told.
    other.ask("ping", &json!({}));
    assert!(other.message().get("method").is_none());
}

#[test]
fn a_url_that_an_error_requires_is_reported_with_the_id_that_the_client_knows() {
    let visit = json!({ "mode": "url", "message": "Log in", "url": "https://example.com/login",
                        "elicitationId": "theirs" });
    let data = Some(json!({ "elicitations": [visit, { "url": "https://example.com/other" }] }));
    let error = RpcError { code: -32042, message: "not yet".to_owned(), data };
    let place = Place::with("one", &Script::new().legacy().call_error(error));
    let gateway = place.gateway();
    let able = json!({ "elicitation": { "url": {} } });
    for args in [&["--no-wrap"] as &[&str], &[]] {
        let mut hub = place.hub_for(args, &able);
        // The second call is the one that the server reports the visit at.
        let mut ids = Vec::new();
        let mut visited = Vec::new();
        while !ids.first().is_some_and(|id| visited.contains(id)) {
            let id = hub.ask("tools/call", &echo("x"));
            let answer = next(&mut hub, |it| {
                if it["method"] == "notifications/elicitation/complete" {
                    visited.push(it["params"]["elicitationId"].clone());
                }
                it["id"] == id
            });
            let visits = &answer["error"]["data"]["elicitations"];
            let known = visits[0]["elicitationId"].clone();
            assert!(known.is_string() && known != "theirs", "{answer}");
            assert_eq!(visits[1], json!({ "url": "https://example.com/other" }));
            ids.push(known);
        }
    }
    drop(gateway);
}

#[test]
fn methods_of_versions_with_a_handshake_are_unknown_since_2026_07_28() {
    let place = Place::with("one", &Script::new());
    let mut hub = place.spawn(&[]);
    for (method, params) in [
        ("logging/setLevel", json!({ "level": "info" })),
        ("resources/subscribe", json!({ "uri": "test://greeting" })),
        ("resources/unsubscribe", json!({ "uri": "test://greeting" })),
        ("ping", json!({})),
    ] {
        let mut params = params;
        params["_meta"] = rpc::meta(json!({}));
        let refused = hub.request(method, &params);
        assert_eq!(refused["error"]["code"], -32601, "{method}: {refused}");
    }
}
