//! Listings: servers, tools, resources, prompts, logs.

use openclaw_testkit::{Odd, Script, Tool};
use serde_json::json;

use crate::support::{ask, broken, config, entry, refused, running, stop};

#[tokio::test]
async fn servers_are_listed_with_their_states_and_missing_ones() {
    let servers = json!({
        "a": entry(&Script::new()),
        "broken": { "command": "/nowhere/at/all", "required": true, "maxRestarts": 0 },
        "off": { "command": "x", "enabled": false },
    });
    let (_place, gateway, me) = running(&config(&servers)).await;
    let told = ask(&me, "mcp.servers", json!({})).await;
    let states: Vec<_> = told["servers"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(states, ["a", "broken", "off"]);
    assert_eq!((&told["agent"], &told["ready"]), (&json!("main"), &json!(1)));
    assert_eq!(told["missing"], json!(["broken"]));
    let status = ask(&me, "mcp.status", json!({ "server": "a" })).await;
    assert_eq!((&status["state"], &status["tools"]), (&json!("ready"), &json!(15)));
    let (message, code, hint) = refused(&me, "mcp.status", json!({ "server": "b" })).await;
    assert_eq!((message.as_str(), code.as_str()), ("unknown server `b`", "UNKNOWN_SERVER"));
    assert!(hint.contains('a') && hint.contains("broken"), "{hint}");
    stop(gateway).await;
}

#[tokio::test]
async fn tools_are_listed_with_skipped_ones_and_missing_servers() {
    let script = Script::new().odd_tool(Odd::SchemaNull);
    let servers = json!({ "a": entry(&script), "broken": broken() });
    let mut config = config(&servers);
    config["tools"] = json!({ "deny": ["mcp_a_crash"] });
    let (_place, gateway, me) = running(&config).await;
    let told = ask(&me, "mcp.tools", json!({})).await;
    let tools = told["tools"].as_array().unwrap();
    let tool = |name: &str| tools.iter().find(|it| it["tool"] == name).unwrap();
    assert_eq!(tool("echo")["effect"], "read-only");
    assert_eq!(tool("echo")["name"], "mcp_a_echo");
    assert!(tool("echo").get("inputSchema").is_none());
    assert!(tool("crash")["deniedBy"].as_str().unwrap().contains("tools.deny"), "{told}");
    assert_eq!(told["missing"][0]["server"], "broken");
    let one = json!({ "server": "a", "tool": "echo", "schema": true });
    let one = ask(&me, "mcp.tools", one).await;
    assert_eq!(one["tools"].as_array().unwrap().len(), 1);
    assert_eq!(one["tools"][0]["inputSchema"]["required"], json!(["text"]));
    let wrong = json!({ "server": "a", "tool": "ecko" });
    let (_, code, hint) = refused(&me, "mcp.tools", wrong).await;
    assert_eq!((code.as_str(), hint.as_str()), ("UNKNOWN_TOOL", "did you mean `echo`?"));
    stop(gateway).await;
}

#[tokio::test]
async fn resources_and_prompts_are_listed_read_and_filled_in() {
    let (_place, gateway, me) = running(&config(&json!({ "a": entry(&Script::new()) }))).await;
    let resources = ask(&me, "mcp.resources", json!({})).await;
    assert_eq!(resources["resources"][0]["server"], "a");
    let uri = &resources["resources"][0]["uri"];
    let read = ask(&me, "mcp.read", json!({ "server": "a", "uri": uri })).await;
    assert_eq!((&read["isError"], &read["content"][0]["untrusted"]), (&json!(false), &json!(true)));
    let prompts = ask(&me, "mcp.prompts", json!({ "server": "a" })).await;
    let name = &prompts["prompts"][0]["name"];
    let arguments = prompts["prompts"][0]["arguments"].as_array().cloned().unwrap_or_default();
    let filled: serde_json::Map<_, _> = arguments
        .iter()
        .map(|it| (it["name"].as_str().unwrap().to_owned(), json!("value")))
        .collect();
    let params = json!({ "server": "a", "name": name, "args": filled });
    let prompt = ask(&me, "mcp.prompt", params).await;
    assert_eq!(prompt["isError"], false, "{prompt}");
    let (_, code, _) = refused(&me, "mcp.prompt", json!({ "server": "a", "name": "no" })).await;
    assert_eq!(code, "UNKNOWN_TOOL");
    stop(gateway).await;
}

#[tokio::test]
async fn arguments_of_prompts_and_templates_are_completed() {
    let silent = Script::new().capabilities(json!({ "tools": {}, "prompts": {} }));
    let servers = json!({ "a": entry(&Script::new()), "old": entry(&Script::new().legacy()), "b": entry(&silent) });
    let (_place, gateway, me) = running(&config(&servers)).await;
    for (server, of) in [("a", "greet"), ("old", "greet"), ("a", "test://echo/{text}")] {
        let argument = if of == "greet" { "name" } else { "text" };
        let params = json!({ "server": server, "of": of, "argument": argument, "value": "A" });
        let found = ask(&me, "mcp.complete", params).await;
        // A value with an escape sequence is not offered.
        assert_eq!(found["values"], json!(["Ada", "Alan", "Anna Maria"]), "{found}");
        assert_eq!(found["hasMore"], false);
    }
    let by_command = json!({ "of": "mcp__a__greet", "argument": "name", "value": "G" });
    assert_eq!(ask(&me, "mcp.complete", by_command).await["values"], json!(["Grace"]));
    for (server, of, argument, expected) in [
        ("a", "great", "name", "UNKNOWN_TOOL"),
        ("nowhere", "greet", "name", "UNKNOWN_SERVER"),
        ("b", "greet", "name", "TOOL_UNUSABLE"),
    ] {
        let params = json!({ "server": server, "of": of, "argument": argument });
        assert_eq!(refused(&me, "mcp.complete", params).await.1, expected, "{server} {of}");
    }
    let wrong = json!({ "server": "a", "of": "greet", "argument": "who" });
    let (message, ..) = refused(&me, "mcp.complete", wrong).await;
    assert!(message.contains("has no argument `who`"), "{message}");
    stop(gateway).await;
}

#[tokio::test]
async fn a_refresh_reports_new_tools_and_unreachable_servers() {
    let changed = [Tool::new("count").description("Another."), Tool::new("added")];
    let script = Script::new()
        .tools([Tool::new("count"), Tool::new("gone")])
        .changed_tools(changed)
        .list_changed_after_calls(1);
    let servers = json!({ "a": entry(&script), "broken": broken() });
    let (_place, gateway, me) = running(&config(&servers)).await;
    let same = ask(&me, "mcp.refresh", json!({ "server": "a" })).await;
    assert_eq!((&same["ok"], &same["servers"][0]["added"]), (&json!(true), &json!([])));
    let all = ask(&me, "mcp.refresh", json!({})).await;
    assert_eq!((&all["ok"], &all["servers"][1]["ok"]), (&json!(false), &json!(false)));
    assert!(all["servers"][1]["error"].as_str().unwrap().contains("broken"), "{all}");
    stop(gateway).await;
}

#[tokio::test]
async fn logs_of_a_server_are_returned_and_unknown_ones_are_rejected() {
    let (_place, gateway, me) = running(&config(&json!({ "a": entry(&Script::new()) }))).await;
    let told = ask(&me, "mcp.logs", json!({ "server": "a", "lines": 5 })).await;
    let lines = told["lines"].as_array().unwrap();
    assert!(lines.iter().any(|line| line.as_str().unwrap().contains("Ready")), "{told}");
    let (_, code, _) = refused(&me, "mcp.logs", json!({ "server": "../a" })).await;
    assert_eq!(code, "UNKNOWN_SERVER");
    stop(gateway).await;
}

#[tokio::test]
async fn a_reload_tells_what_became_of_the_servers() {
    let a = entry(&Script::new());
    let (place, gateway, me) =
        running(&config(&json!({ "a": a, "gone": entry(&Script::new()) }))).await;
    place.write(&config(&json!({ "a": a, "new": entry(&Script::new()) })));
    let told = ask(&me, "mcp.reload", json!({})).await;
    let expected = json!({ "ok": true, "added": ["new"], "removed": ["gone"], "restarted": [], "updated": [] });
    assert_eq!(told, expected);
    place.write(&json!({ "mcp": { "servers": 17 } }));
    let told = ask(&me, "mcp.reload", json!({})).await;
    assert_eq!(told["ok"], false);
    assert!(!told["issues"].as_array().unwrap().is_empty(), "{told}");
    ask(&me, "mcp.status", json!({ "server": "new" })).await;
    stop(gateway).await;
}
