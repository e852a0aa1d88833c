//! Sampling requests of servers during a call (B16, T11).

use std::path::PathBuf;
use std::sync::Arc;

use openclaw_gateway::Gateway;
use openclaw_testkit::Script;
use serde_json::{Value, json};

use crate::support::{KEY, Place, Someone, config, entry_with, eras, stop};

const REQUESTED: &str = "approval.requested";
const RESOLVED: &str = "approval.resolved";
const RESPOND: &str = "approvals.respond";

/// Starts a gateway with a server `x` whose tool `ask` sends any request to the client. Returns the
/// file of the audit log, too.
async fn start(script: &Script, sampling: &Value) -> (Place, Arc<Gateway>, PathBuf) {
    let more = json!({ "sampling": sampling });
    let place = Place::new(&config(&json!({ "x": entry_with(script, &more) })));
    let (gateway, _, audit) = place.start_audited().await;
    (place, gateway, audit)
}

/// The audit lines of sampling requests.
fn audited(path: &PathBuf) -> Vec<Value> {
    let lines = std::fs::read_to_string(path).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["tool"] == "sampling/createMessage").collect()
}

fn says(text: &str) -> Value {
    json!({ "role": "user", "content": { "type": "text", "text": text } })
}

/// A message that makes the offline model call the tool that sends a sampling request.
fn asking(params: &Value) -> String {
    let arguments = json!({ "method": "sampling/createMessage", "params": params });
    format!("/call mcp_x_ask {arguments}")
}

fn hello() -> Value {
    json!({ "messages": [says("Say hello")], "maxTokens": 500, "systemPrompt": "Be kind." })
}

#[tokio::test]
async fn a_server_that_is_always_allowed_gets_the_models_answer_without_a_question() {
    for script in eras() {
        let (_place, gateway, audit) = start(&script, &json!("always")).await;
        let mut writer = Someone::writer(&gateway);
        let said = writer.say("r", &asking(&hello())).await;
        assert!(said.contains("You asked: Say hello"), "{said}");
        for part in [r#""role":"assistant""#, r#""model":"offline""#, r#""stopReason":"endTurn""#] {
            assert!(said.contains(part), "{part}: {said}");
        }
        stop(&gateway).await;
        let lines = audited(&audit);
        assert_eq!(lines.len(), 1, "{lines:?}");
        let expected = [("outcome", "ok"), ("server", "x"), ("agent", "main"), ("session", KEY)];
        for (key, value) in expected {
            assert_eq!(lines[0][key], value, "{lines:?}");
        }
    }
}

#[tokio::test]
async fn where_the_rule_is_to_ask_the_user_sees_all_of_it_and_decides() {
    for script in eras() {
        let (_place, gateway, audit) =
            start(&script, &json!({ "allow": "ask", "maxTokens": 50 })).await;
        let mut user = Someone::new(&gateway);
        for (run, decision, expected) in [
            ("r0", "deny", "rejected the sampling request"),
            ("r1", "allow-once", "You asked: Say hello"),
            ("r2", "allow-always", "You asked: Say hello"),
        ] {
            user.send(KEY, run, &asking(&hello())).await;
            let asked = user.hear_of(REQUESTED).await;
            assert_eq!(asked["kind"], "sampling");
            assert_eq!(asked["server"], "x");
            assert_eq!(asked["sessionKey"], KEY);
            assert_eq!(asked["tool"], "sampling/createMessage");
            assert_eq!(
                asked["args"],
                json!({
                    "model": "offline", "maxTokens": 50, "systemPrompt": "Be kind.",
                    "messages": [{ "role": "user", "text": "Say hello" }],
                })
            );
            assert_eq!(user.waiting().await, json!([asked]));
            let answer = json!({ "id": asked["id"], "decision": decision });
            user.ask(RESPOND, answer).await.unwrap();
            assert_eq!(user.hear_of(RESOLVED).await["decision"], decision);
            let said = user.answer(run).await;
            assert!(said.contains(expected), "{decision}: {said}");
        }
        assert!(
            user.say("r3", &asking(&hello())).await.contains("You asked: Say hello"),
            "it stays allowed"
        );
        stop(&gateway).await;
        let outcomes: Vec<Value> =
            audited(&audit).into_iter().map(|mut line| line["outcome"].take()).collect();
        assert_eq!(outcomes, ["denied", "ok", "ok", "ok"]);
    }
}

#[tokio::test]
async fn never_is_the_default_and_without_an_approver_it_is_denied() {
    for (sampling, expected) in [
        (Value::from("never"), "sampling is not allowed for this server"),
        (Value::from(false), "sampling is not allowed for this server"),
        (Value::from("ask"), "no user answered"),
        (Value::from(true), "no user answered"),
    ] {
        let (_place, gateway, audit) = start(&Script::new().legacy(), &sampling).await;
        let mut writer = Someone::writer(&gateway);
        let said = writer.say("r", &asking(&hello())).await;
        assert!(said.contains(expected), "{sampling}: {said}");
        stop(&gateway).await;
        let lines = audited(&audit);
        assert_eq!((lines.len(), &lines[0]["outcome"]), (1, &json!("denied")), "{lines:?}");
    }
}

#[tokio::test]
async fn only_followers_of_the_session_are_asked_and_no_one_outside_a_session() {
    let (_place, gateway, _) = start(&Script::new().legacy(), &json!("ask")).await;
    let mut writer = Someone::writer(&gateway);
    let mut elsewhere = Someone::new(&gateway);
    let said = writer.say("r", &asking(&hello())).await;
    assert!(said.contains("no user answered"), "{said}");
    let args = json!({ "method": "sampling/createMessage", "params": hello() });
    let params = json!({ "server": "x", "tool": "ask", "args": args });
    let outcome = elsewhere.ask("mcp.call", params).await.unwrap();
    assert!(outcome.to_string().contains("no session is using"), "{outcome}");
    let heard = elsewhere.heard_so_far();
    assert!(!heard.iter().any(|(name, _)| name == REQUESTED), "{heard:?}");
    stop(&gateway).await;
}

#[tokio::test]
async fn a_request_is_withdrawn_when_its_turn_is_aborted() {
    for script in eras() {
        let (_place, gateway, audit) = start(&script, &json!("ask")).await;
        let mut user = Someone::new(&gateway);
        user.send(KEY, "r", &asking(&hello())).await;
        let asked = user.hear_of(REQUESTED).await;
        user.ask("chat.abort", json!({ "sessionKey": KEY })).await.unwrap();
        let resolved = user.hear_of(RESOLVED).await;
        assert_eq!(resolved, json!({ "id": asked["id"], "reason": "cancelled" }));
        stop(&gateway).await;
        let lines = audited(&audit);
        assert_eq!((lines.len(), &lines[0]["outcome"]), (1, &json!("cancelled")), "{lines:?}");
    }
}

#[tokio::test]
async fn limits_are_enforced_and_reported() {
    let limits = json!({ "allow": "always", "maxTokens": 4, "requestsPerMinute": 6 });
    let (_place, gateway, audit) = start(&Script::new().legacy(), &limits).await;
    let mut user = Someone::new(&gateway);
    let many: Vec<Value> = (0..101).map(|_| says("x")).collect();
    let long = "x".repeat(300 * 1024);
    let mixed = json!([
        { "type": "text", "text": "x" },
        { "type": "tool_result", "toolUseId": "1", "content": [] },
    ]);
    for (nth, (params, expected)) in [
        (hello(), r#""stopReason":"maxTokens""#),
        (json!({ "messages": many, "maxTokens": 1 }), "more than 100 messages"),
        (json!({ "messages": [says(&long)], "maxTokens": 1 }), "more than 256 KiB of text"),
        (
            json!({ "messages": [{ "role": "user", "content": mixed }], "maxTokens": 1 }),
            "the only content",
        ),
        (json!({ "messages": [], "maxTokens": 1 }), "no messages"),
        (json!({ "messages": [says("x")], "maxTokens": 0 }), "`maxTokens` must not be 0"),
    ]
    .into_iter()
    .enumerate()
    {
        let run = format!("r{nth}");
        let said = user.say(&run, &asking(&params)).await;
        assert!(said.contains(expected), "{expected}: {said}");
    }
    for nth in 0..6 {
        let run = format!("q{nth}");
        let said = user.say(&run, &asking(&hello())).await;
        let expected =
            if nth < 5 { "maxTokens" } else { "6 sampling requests a minute are allowed" };
        assert!(said.contains(expected), "{nth}: {said}");
    }
    stop(&gateway).await;
    let outcome = |it: &Value| it["outcome"].as_str().unwrap().to_owned();
    let outcomes: Vec<String> = audited(&audit).iter().map(outcome).collect();
    assert_eq!(outcomes.len(), 12);
    assert_eq!(outcomes[1..6], ["invalid-arguments"; 5]);
    assert_eq!(outcomes[11], "rate-limited");
}

#[tokio::test]
async fn tools_of_the_server_are_offered_and_calls_go_back_to_the_server() {
    for script in eras() {
        let (_place, gateway, _) = start(&script, &json!("always")).await;
        let mut user = Someone::new(&gateway);
        let echo = json!({
            "name": "echo", "description": "Says it again.",
            "inputSchema": { "type": "object", "properties": { "text": { "type": "string" } } },
        });
        let mut params = json!({
            "messages": [says("echo good morning")], "maxTokens": 100, "tools": [echo],
        });
        let said = user.say("r0", &asking(&params)).await;
        for part in
            [r#""type":"tool_use""#, r#""name":"echo""#, r#""text":"good morning""#, "toolUse"]
        {
            assert!(said.contains(part), "{part}: {said}");
        }
        let used =
            json!({ "type": "tool_use", "id": "1", "name": "echo", "input": { "text": "x" } });
        let result = json!({
            "type": "tool_result", "toolUseId": "1",
            "content": [{ "type": "text", "text": "good evening" }],
        });
        let messages = params["messages"].as_array_mut().unwrap();
        messages.push(json!({ "role": "assistant", "content": [used] }));
        messages.push(json!({ "role": "user", "content": [result] }));
        let said = user.say("r1", &asking(&params)).await;
        assert!(said.contains("good evening") && said.contains("endTurn"), "{said}");
        params["toolChoice"] = json!({ "mode": "none" });
        params["messages"] = json!([says("echo good morning")]);
        let said = user.say("r2", &asking(&params)).await;
        assert!(!said.contains("tool_use") && said.contains("endTurn"), "{said}");
        stop(&gateway).await;
    }
}
