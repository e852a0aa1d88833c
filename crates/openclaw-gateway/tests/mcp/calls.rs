//! Explicit calls, for users and programs.

use std::time::Duration;

use futures_util::FutureExt as _;
use openclaw_protocol::mcp::{CallParams, Part};
use openclaw_protocol::{EventReceiver, Received, ask as ask_typed, rpc};
use openclaw_testkit::{Script, Tool};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::common::connect_to;
use crate::support::{
    LONG, Place, ask, broken, caller, caller_with, config, entry, refused, request, running, say,
    stop,
};

#[tokio::test]
async fn a_tool_is_called_by_either_of_its_names_and_its_answer_is_not_cut() {
    let mut server = entry(&Script::new());
    server["maxResultChars"] = json!(1_000);
    let (_place, gateway, me) = running(&config(&json!({ "a": server }))).await;
    for params in [
        json!({ "server": "a", "tool": "big", "args": { "bytes": 300_000 } }),
        json!({ "server": "a", "tool": "mcp_a_big", "args": { "bytes": 300_000 } }),
        json!({ "tool": "mcp_a_big", "args": { "bytes": 300_000 } }),
    ] {
        let told = ask(&me, "mcp.call", params).await;
        assert_eq!((&told["isError"], &told["details"]["isCut"]), (&json!(false), &json!(false)));
        assert_eq!(told["content"][0]["text"].as_str().unwrap().len(), 300_000);
        assert_eq!(told["content"][0]["untrusted"], true);
    }
    let raw = json!({ "tool": "mcp_a_echo", "args": { "text": "hi" }, "raw": true });
    let raw = ask(&me, "mcp.call", raw).await;
    let text = raw["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("This is output from MCP server 'a'."), "{text}");
    let sum = json!({ "tool": "mcp_a_add", "args": { "a": 2, "b": 3 } });
    assert_eq!(ask(&me, "mcp.call", sum).await["structuredContent"], json!({ "sum": 5 }));
    stop(gateway).await;
}

#[tokio::test]
async fn the_rate_limit_is_for_agents_and_not_for_direct_calls() {
    let mut server = entry(&Script::new());
    server["rateLimit"] = json!(2);
    server["approval"] = json!("never");
    let (_place, gateway, me) = running(&config(&json!({ "a": server }))).await;
    for _ in 0..5 {
        let call = json!({ "tool": "mcp_a_echo", "args": { "text": "hi" } });
        assert_eq!(ask(&me, "mcp.call", call).await["isError"], false);
        let call = json!({ "name": "mcp_a_echo", "args": { "text": "hi" }, "confirm": true });
        assert_eq!(ask(&me, "tools.invoke", call).await["ok"], true);
    }
    let call = "/call mcp_a_echo {\"text\":\"hi\"}";
    for _ in 0..2 {
        let said = say(&me, call).await;
        assert!(!said.contains("Too many calls"), "direct calls do not count: {said}");
    }
    let said = say(&me, call).await;
    assert!(said.contains("Too many calls to MCP server 'a' (`rateLimit` in its entry)"), "{said}");
    stop(gateway).await;
}

#[tokio::test]
async fn a_call_that_cannot_be_made_fails_with_a_hint() {
    let servers = json!({
        "a": entry(&Script::new()),
        "broken": broken(),
        "off": { "command": "x", "enabled": false },
    });
    let mut config = config(&servers);
    config["tools"] = json!({ "deny": ["mcp_a_crash"] });
    let (_place, gateway, me) = running(&config).await;
    for (params, expected, hint) in [
        (json!({ "server": "b", "tool": "x" }), "UNKNOWN_SERVER", "known servers: a"),
        (json!({ "server": "a", "tool": "ecko" }), "UNKNOWN_TOOL", "`echo`"),
        (json!({ "tool": "mcp_a_ecko" }), "UNKNOWN_TOOL", "`mcp_a_echo`"),
        (json!({ "tool": "a" }), "UNKNOWN_TOOL", "`a` is a server"),
        (json!({ "server": "broken", "tool": "x" }), "SERVER_UNAVAILABLE", ""),
        (json!({ "server": "off", "tool": "x" }), "SERVER_UNAVAILABLE", "openclaw mcp enable off"),
    ] {
        let (message, code, told) = refused(&me, "mcp.call", params).await;
        assert_eq!(code, expected, "{message}");
        assert!(told.contains(hint), "{told}");
    }
    for (params, failure) in [
        (json!({ "tool": "mcp_a_crash" }), "denied"),
        (json!({ "tool": "mcp_a_echo", "args": { "text": 7 } }), "invalid-arguments"),
        (
            json!({ "tool": "mcp_a_sleep", "args": { "ms": 600_000 }, "timeoutMs": 5_000 }),
            "timed-out",
        ),
    ] {
        let told = ask(&me, "mcp.call", params).await;
        assert_eq!(told["isError"], true);
        assert_eq!(told["details"]["failure"], failure);
    }
    assert!(request(&me, "mcp.call", json!({ "tool": "x", "args": [] })).await.is_err());
    stop(gateway).await;
}

/// A server whose tool is another one after the first call.
fn changing() -> Script {
    let changed = Tool::new("count").description("Something else.");
    let script = Script::new().tools([Tool::new("count")]).changed_tools([changed]);
    script.list_changed_after_calls(1)
}

#[tokio::test]
async fn a_changed_tool_is_called_only_when_it_is_approved_again() {
    let (_place, gateway, me) = running(&config(&json!({ "a": entry(&changing()) }))).await;
    let params = json!({ "server": "a", "tool": "count" });
    assert_eq!(ask(&me, "mcp.call", params.clone()).await["isError"], false);
    ask(&me, "mcp.refresh", json!({ "server": "a" })).await;
    let told = ask(&me, "mcp.tools", json!({})).await;
    assert_eq!(told["tools"][0]["changed"], true);
    let (_, code, hint) = refused(&me, "mcp.call", params.clone()).await;
    assert_eq!(code, "TOOL_CHANGED");
    assert!(hint.contains("--approve"), "{hint}");
    let mut approved = params.clone();
    approved["approve"] = json!(true);
    for seen in [json!(null), json!(""), json!("0".repeat(64))] {
        approved["fingerprint"] = seen;
        let (_, code, _) = refused(&me, "mcp.call", approved.clone()).await;
        assert_eq!(code, "TOOL_CHANGED", "it was approved unseen");
    }
    approved["fingerprint"] = told["tools"][0]["fingerprint"].clone();
    assert_eq!(ask(&me, "mcp.call", approved).await["isError"], false);
    assert_eq!(ask(&me, "mcp.call", params).await["isError"], false, "it is approved now");
    stop(gateway).await;
}

#[tokio::test]
async fn calls_that_are_refused_are_written_down_once() {
    let servers = json!({ "a": entry(&changing()), "broken": broken() });
    let place = Place::new(&config(&servers));
    let (gateway, _, file) = place.start_audited().await;
    let (me, other) = (caller(&gateway), caller_with(&gateway, &["read", "write"]));
    let params = json!({ "server": "a", "tool": "count" });
    refused(&other, "mcp.call", params.clone()).await;
    ask(&me, "mcp.call", params.clone()).await;
    ask(&me, "mcp.refresh", json!({ "server": "a" })).await;
    refused(&me, "mcp.call", params).await;
    refused(&me, "mcp.call", json!({ "server": "broken", "tool": "x" })).await;
    for server in ["a", "nowhere"] {
        refused(&me, "mcp.call", json!({ "server": server, "tool": "x" })).await;
    }
    stop(gateway).await;
    let audit = std::fs::read_to_string(&file).unwrap();
    let lines = audit.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let lines: Vec<_> =
        lines.map(|line| ["tool", "rawTool", "outcome"].map(|key| text(&line[key]))).collect();
    let expected = [
        ["mcp_a_count", "count", "denied"],
        ["mcp_a_count", "count", "ok"],
        ["mcp_a_count", "count", "denied"],
        ["x", "x", "unavailable"],
        ["x", "x", "denied"],
        ["x", "x", "denied"],
    ];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn a_caller_without_the_approvals_scope_calls_only_tools_that_need_no_approval() {
    let look = Tool::new("look").with("annotations", json!({ "readOnlyHint": true }));
    let looks = Script::new().tools([look, Tool::new("change")]);
    let mut asks = entry(&looks);
    asks["approval"] = json!("always");
    let mut trusted = entry(&looks);
    trusted["approval"] = json!("never");
    let place = Place::new(&config(&json!({ "a": entry(&looks), "b": asks, "c": trusted })));
    let gateway = place.start().await;
    let me = caller_with(&gateway, &["read", "write"]);
    for tool in ["mcp_a_change", "mcp_b_look", "mcp_b_change"] {
        for approve in [json!(null), json!(false), json!(true)] {
            let params = json!({ "tool": tool, "approve": approve });
            let (message, code, _) = refused(&me, "mcp.call", params).await;
            assert_eq!(code, "MISSING_SCOPE", "{message}");
            assert!(message.contains("`operator.approvals`"), "{message}");
        }
    }
    for tool in ["mcp_a_look", "mcp_c_look", "mcp_c_change"] {
        assert_eq!(ask(&me, "mcp.call", json!({ "tool": tool })).await["isError"], false, "{tool}");
    }
    let decider = caller_with(&gateway, &["write", "approvals"]);
    let told = ask(&decider, "mcp.call", json!({ "tool": "mcp_b_change" })).await;
    assert_eq!(told["isError"], false);
    stop(gateway).await;
}

#[tokio::test]
async fn a_read_only_caller_cannot_call_or_connect() {
    let place = Place::new(&config(&json!({ "a": entry(&Script::new()) })));
    let gateway = place.start().await;
    let me = caller_with(&gateway, &["read"]);
    ask(&me, "mcp.tools", json!({})).await;
    for (method, params) in [
        ("mcp.call", json!({ "tool": "mcp_a_echo", "args": { "text": "x" } })),
        ("mcp.connect", json!({ "url": "https://x.example/mcp" })),
        ("mcp.disconnect", json!({ "server": "a" })),
        ("mcp.reload", json!({})),
    ] {
        assert_eq!(refused(&me, method, params).await.1, "MISSING_SCOPE", "{method}");
    }
    stop(gateway).await;
}

#[tokio::test]
async fn over_the_socket_a_call_gives_the_same() {
    let place = Place::new(&config(&json!({ "a": entry(&Script::new()) })));
    let served = place.serve(None).await;
    let client = connect_to(&served).await;
    let args = serde_json::value::to_raw_value(&json!({ "text": "héllo" })).unwrap();
    let params =
        CallParams { tool: "mcp_a_echo".to_owned(), args: Some(args), ..CallParams::default() };
    let asking = ask_typed::<rpc::McpCall>(&client, params);
    let outcome = timeout(LONG, asking).await.unwrap().unwrap();
    let expected = Part::Text {
        text: "héllo".to_owned(),
        untrusted: true,
        placeholder: false,
        audience: None,
    };
    assert_eq!(outcome.content, [expected]);
    assert_eq!(outcome.details.server.as_deref(), Some("a"));
    drop(client);
    served.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn a_call_that_is_dropped_over_the_socket_is_cancelled_at_its_server() {
    let record = tempfile::NamedTempFile::new().unwrap();
    let script = Script::new().record(record.path());
    let place = Place::new(&config(&json!({ "a": entry(&script) })));
    let served = place.serve(None).await;
    let client = connect_to(&served).await;
    let args = serde_json::value::to_raw_value(&json!({ "ms": 600_000 })).unwrap();
    let params =
        CallParams { tool: "mcp_a_sleep".to_owned(), args: Some(args), ..CallParams::default() };
    let has = async |word: &str| {
        while !std::fs::read_to_string(record.path()).unwrap().contains(word) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        called = ask_typed::<rpc::McpCall>(&client, params) => panic!("{called:?}"),
        () = has("tools/call") => {}
    }
    timeout(LONG, has("notifications/cancelled")).await.unwrap();
    // The connection is still usable.
    let params = CallParams { tool: "mcp_a_count".to_owned(), ..CallParams::default() };
    let again = timeout(LONG, ask_typed::<rpc::McpCall>(&client, params)).await.unwrap().unwrap();
    assert!(!again.is_error);
    drop(client);
    served.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn progress_is_sent_only_to_the_caller_and_not_too_often() {
    let place = Place::new(&config(&json!({ "a": entry(&Script::new()) })));
    let gateway = place.start().await;
    let (me, other) = (caller(&gateway), caller(&gateway));
    let (mut mine, mut theirs) = (me.events(), other.events());
    let params = json!({
        "tool": "mcp_a_sleep", "args": { "ms": 1_000, "every": 5 }, "progressToken": "mine",
    });
    assert_eq!(ask(&me, "mcp.call", params).await["isError"], false);
    let told = |events: &mut EventReceiver| {
        let mut told: Vec<Value> = Vec::new();
        while let Some(Some(Received::Event(event))) = events.next().now_or_never() {
            if event.event == "mcp.progress" {
                told.push(serde_json::from_str(event.json().unwrap().get()).unwrap());
            }
        }
        told
    };
    let (mine, theirs) = (told(&mut mine), told(&mut theirs));
    assert!(theirs.is_empty(), "{theirs:?}");
    assert!((2..=15).contains(&mine.len()), "of two hundred: {}", mine.len());
    assert!(mine.iter().all(|event| event["token"] == "mine" && event["percent"].is_number()));
    stop(gateway).await;
}

#[tokio::test]
async fn arguments_that_are_texts_get_the_types_of_the_schema() {
    let (_place, gateway, me) = running(&config(&json!({ "a": entry(&Script::new()) }))).await;
    let params = json!({ "tool": "mcp_a_add", "args": { "a": 2 }, "texts": { "b": "3" } });
    assert_eq!(ask(&me, "mcp.call", params).await["structuredContent"], json!({ "sum": 5 }));
    let wrong = json!({ "tool": "mcp_a_add", "args": { "a": 2 }, "texts": { "b": "many" } });
    let (message, _, hint) = refused(&me, "mcp.call", wrong).await;
    assert!(message.starts_with("`b` expects a number"), "{message}");
    assert!(hint.contains("openclaw mcp tools a add"), "{hint}");
    stop(gateway).await;
}
