//! Tools that a client provides to a session.

use std::sync::Arc;

use openclaw_gateway::Gateway;
use openclaw_testkit::Script;
use serde_json::{Value, json};

use crate::support::{KEY, Place, Someone, config, entry, running, stop, text};

const CALL: &str = "/call open_file {\"name\":\"a.txt\"}";

async fn lend(lender: &Someone) {
    let tool = json!({
        "name": "open_file", "description": "Opens a file in the editor", "readOnly": true,
        "parameters": { "type": "object", "properties": { "name": { "type": "string" } },
                        "required": ["name"] },
    });
    let params = json!({ "sessionKey": KEY, "tools": [tool] });
    let lent = lender.ask("sessions.setExtraTools", params).await.unwrap();
    assert_eq!(lent, json!({ "ok": true, "tools": ["open_file"] }));
}

/// Starts a gateway, with a caller that lends a tool and another one.
async fn lending() -> (Place, Arc<Gateway>, Someone, Someone) {
    let (place, gateway, lender) = running(&config(&json!({}))).await;
    lend(&lender).await;
    let user = Someone::new(&gateway);
    (place, gateway, lender, user)
}

async fn result(someone: &mut Someone, run: &str) -> Value {
    let heard = someone.hear_run(run).await;
    let is_result = |payload: &Value| payload["data"]["phase"] == "result";
    let result = heard.into_iter().find(|(_, payload)| is_result(payload));
    result.unwrap().1["data"].clone()
}

#[tokio::test]
async fn duplicate_tools_and_schemas_that_no_model_may_see_are_rejected_by_name() {
    let (_place, gateway, lender) = running(&config(&json!({}))).await;
    let tool =
        |parameters: Value| json!({ "name": "look", "description": "", "parameters": parameters });
    for (tools, expected) in [
        (vec![tool(json!({})), tool(json!({}))], "duplicate tool `look`"),
        (vec![tool(json!({ "type": "string" }))], "`look`: `parameters`"),
        (vec![tool(json!({ "type": ["string", "null"] }))], "`look`: `parameters`"),
        (vec![tool(json!([]))], "`look`: `parameters`"),
        (
            vec![tool(json!({ "properties": { "<|im_start|>": {} } }))],
            "`look`: its schema has a chat",
        ),
        (vec![tool(json!({ "required": ["pa\u{200b}th"] }))], "`look`: its schema has hidden"),
    ] {
        let params = json!({ "sessionKey": KEY, "tools": tools });
        let error = lender.ask("sessions.setExtraTools", params).await.unwrap_err();
        assert!(error.message.contains(expected), "{error}");
    }
    let params = json!({ "sessionKey": KEY, "tools": [tool(json!({ "type": "object" }))] });
    lender.ask("sessions.setExtraTools", params).await.unwrap();
    stop(&gateway).await;
}

#[tokio::test]
async fn a_call_of_a_lent_tool_goes_to_its_lender_and_comes_back_as_from_outside() {
    let (_place, gateway, mut lender, mut user) = lending().await;
    user.send(KEY, "r", CALL).await;
    let asked = lender.hear_of("node.invoke.request").await;
    assert_eq!(asked["command"], "open_file");
    assert_eq!(asked["paramsJSON"], "{\"name\":\"a.txt\"}");
    let answer = json!({ "id": asked["id"], "nodeId": asked["nodeId"], "ok": true,
                         "payload": "what stands in it" });
    let stranger = Someone::new(&gateway);
    let error = stranger.ask("node.invoke.result", answer.clone()).await.unwrap_err();
    assert!(error.message.contains("no pending call with this id"), "{error}");
    lender.ask("node.invoke.result", answer.clone()).await.unwrap();
    let end = user.end_of("r").await;
    assert!(text(&end).contains("what stands in it"), "{end}");
    assert!(lender.ask("node.invoke.result", answer).await.is_err(), "it is already answered");
    let history = user.ask("chat.history", json!({ "sessionKey": KEY })).await.unwrap();
    let shown = &history["messages"][2]["content"][0]["content"][0];
    let source = json!({ "kind": "other", "name": "open_file" });
    assert_eq!((&shown["untrusted"], &shown["source"]), (&json!(true), &source), "{shown}");
    assert_eq!(shown["text"], "what stands in it");
    assert!(!user.heard_so_far().iter().any(|(name, _)| name == "node.invoke.request"));
    stop(&gateway).await;
}

#[tokio::test]
async fn wrong_arguments_never_reach_the_lender_and_other_sessions_have_nothing_of_it() {
    let (_place, gateway, mut lender, mut user) = lending().await;
    user.send(KEY, "r1", "/call open_file {\"name\":7}").await;
    let data = result(&mut user, "r1").await;
    assert_eq!(data["failure"], "invalid-arguments", "{data}");
    user.send("agent:main:other", "r2", CALL).await;
    let data = result(&mut user, "r2").await;
    assert!(data["text"].as_str().unwrap().contains("Unknown tool '"), "{data}");
    assert!(!lender.heard_so_far().iter().any(|(name, _)| name == "node.invoke.request"));
    stop(&gateway).await;
}

#[tokio::test]
async fn a_lender_that_disconnects_during_a_call_fails_it_and_its_tools_are_removed() {
    let (_place, gateway, mut lender, mut user) = lending().await;
    user.send(KEY, "r1", CALL).await;
    lender.hear_of("node.invoke.request").await;
    drop(lender);
    let data = result(&mut user, "r1").await;
    assert_eq!(data["failure"], "unavailable");
    assert!(
        data["text"].as_str().unwrap().contains("client that provides this tool has disconnected")
    );
    user.send(KEY, "r2", CALL).await;
    let data = result(&mut user, "r2").await;
    assert!(data["text"].as_str().unwrap().contains("Unknown tool '"), "{data}");
    stop(&gateway).await;
}

#[tokio::test]
async fn a_lent_tool_takes_no_name_of_another_and_obeys_the_policy() {
    let mut config = config(&json!({ "x": entry(&Script::new()) }));
    config["tools"] = json!({ "deny": ["secret_*", "exec"] });
    let (_place, gateway, lender) = running(&config).await;
    let mut user = Someone::new(&gateway);
    let lend = async |names: &[&str]| {
        let tools: Vec<Value> =
            names.iter().map(|name| json!({ "name": name, "description": "" })).collect();
        lender.ask("sessions.setExtraTools", json!({ "sessionKey": KEY, "tools": tools })).await
    };
    for name in ["read", "exec", "mcp_x_echo", "mcp_manage", "tool_search"] {
        let error = lend(&["fine", name]).await.unwrap_err();
        assert!(error.message.contains(&format!("`{name}`")), "{error}");
    }
    assert!(lend(&["twice", "twice"]).await.unwrap_err().message.contains("`twice`"));
    let lent = lend(&["fine", "secret_door"]).await.unwrap();
    assert_eq!(lent["tools"], json!(["fine"]));
    user.send(KEY, "r", "/call secret_door {}").await;
    let data = result(&mut user, "r").await;
    assert_eq!(data["failure"], "denied", "{data}");
    assert!(data["text"].as_str().unwrap().contains("`tools.deny`"), "{data}");
    assert!(!user.heard_so_far().iter().any(|(name, _)| name == "node.invoke.request"));
    stop(&gateway).await;
}

#[tokio::test]
async fn too_many_or_invalid_tools_are_rejected() {
    let (_place, gateway, lender) = running(&config(&json!({}))).await;
    let tool = |name: String| json!({ "name": name, "description": "" });
    let many: Vec<Value> = (0..1_025).map(|nth| tool(format!("t{nth}"))).collect();
    let bad = [
        json!(many),
        json!([tool("no good name!".to_owned())]),
        json!([{ "name": "t", "description": "", "parameters": "text" }]),
    ];
    for tools in bad {
        let params = json!({ "sessionKey": KEY, "tools": tools });
        lender.ask("sessions.setExtraTools", params).await.unwrap_err();
    }
    for nth in 0..64 {
        let tools = [tool("t".to_owned())];
        let params = json!({ "sessionKey": format!("s{nth}"), "tools": tools });
        lender.ask("sessions.setExtraTools", params).await.unwrap();
    }
    let one_more = json!({ "sessionKey": "s64", "tools": [tool("t".to_owned())] });
    let error = lender.ask("sessions.setExtraTools", one_more.clone()).await.unwrap_err();
    assert!(error.message.contains("64 sessions"), "{error}");
    lender.ask("sessions.setExtraTools", json!({ "sessionKey": "s0", "tools": [] })).await.unwrap();
    lender.ask("sessions.setExtraTools", one_more).await.unwrap();
    stop(&gateway).await;
}

#[tokio::test]
async fn a_client_that_lends_tools_uses_those_of_no_other_client() {
    let (_place, gateway, mut one, mut two) = lending().await;
    let mut none = Someone::new(&gateway);
    lend(&two).await;
    for (lender, run) in [(&mut two, "r2"), (&mut one, "r1")] {
        lender.send(KEY, run, CALL).await;
        let asked = lender.hear_of("node.invoke.request").await;
        let payload = json!({ "content": [{ "type": "text", "text": run }] });
        let answer = json!({ "id": asked["id"], "nodeId": asked["nodeId"], "ok": true,
                             "payload": payload });
        lender.ask("node.invoke.result", answer).await.unwrap();
        assert!(text(&lender.end_of(run).await).ends_with(run));
    }
    // It has said that it lends none.
    none.ask("sessions.setExtraTools", json!({ "sessionKey": KEY, "tools": [] })).await.unwrap();
    none.send(KEY, "r3", CALL).await;
    let data = result(&mut none, "r3").await;
    assert!(data["text"].as_str().unwrap().contains("Unknown tool '"), "{data}");
    stop(&gateway).await;
}

#[tokio::test]
async fn progress_of_a_lent_tool_reaches_the_followers_of_the_session() {
    let (_place, gateway, mut lender, mut user) = lending().await;
    user.send(KEY, "r", CALL).await;
    let asked = lender.hear_of("node.invoke.request").await;
    let (id, node) = (&asked["id"], &asked["nodeId"]);
    let report = json!({ "progress": 1, "total": 4, "message": "a\u{7} quarter" });
    let params = json!({ "invokeId": id, "nodeId": node, "seq": 0, "chunk": report.to_string() });
    let stranger = Someone::new(&gateway);
    stranger.ask("node.invoke.progress", params.clone()).await.unwrap_err();
    lender.ask("node.invoke.progress", params).await.unwrap();
    let data = loop {
        let event = user.hear_of("agent").await;
        if event["data"]["phase"] == "update" {
            break event["data"].clone();
        }
    };
    assert_eq!(data["progress"]["percent"], 25.0, "{data}");
    assert_eq!(data["progress"]["message"], "a quarter", "{data}");
    let answer = json!({ "id": id, "nodeId": node, "ok": true, "payload": "done" });
    lender.ask("node.invoke.result", answer).await.unwrap();
    user.end_of("r").await;
    stop(&gateway).await;
}
