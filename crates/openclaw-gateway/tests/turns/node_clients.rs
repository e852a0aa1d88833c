//! What clients of the Node gateway rely on. `cargo xtask compat` runs the clients themselves.

use openclaw_protocol::connect::caps;
use openclaw_testkit::Script;
use serde_json::{Value, json};

use crate::common::ALL_SCOPES;
use crate::streaming::{provider, talking_to};
use crate::support::{KEY, Someone, config, entry_with, one_server, running, stop, text};

#[tokio::test]
async fn deltas_have_the_text_so_far_for_clients_that_do_not_assemble_it() {
    let (url, serving) = provider(&["The ", "sea ", "is "], false).await;
    let (_place, gateway, mut node) = running(&talking_to(&url)).await;
    let mut ours = Someone::who(&gateway, &ALL_SCOPES, &[caps::DELTA_TEXT]);
    ours.ask("chat.history", json!({ "sessionKey": KEY })).await.unwrap();
    node.send(KEY, "r", "what is the sea like?").await;
    let mut deltas = String::new();
    loop {
        let chat = node.hear_of("chat").await;
        deltas.push_str(chat["deltaText"].as_str().unwrap());
        assert_eq!(text(&chat), deltas, "{chat}");
        if deltas == "The sea is " {
            break;
        }
    }
    let mut heard = String::new();
    for seq in 1.. {
        let chat = ours.hear_of("chat").await;
        assert!(chat.get("message").is_none() && chat["seq"] == seq, "{chat}");
        heard.push_str(chat["deltaText"].as_str().unwrap());
        if heard == "The sea is " {
            break;
        }
    }
    stop(&gateway).await;
    serving.abort();
}

#[tokio::test]
async fn agent_events_name_their_session_and_tools_their_results() {
    let (_place, gateway, mut someone) = running(&one_server()).await;
    someone.send(KEY, "r", "/call mcp_x_echo {\"text\":\"hello\"}").await;
    let heard = someone.hear_run("r").await;
    let agent: Vec<&Value> =
        heard.iter().filter(|(name, _)| name == "agent").map(|(_, it)| it).collect();
    assert!(agent.iter().all(|it| it["sessionKey"] == KEY), "{agent:#?}");
    let ended = agent.iter().find(|it| it["data"]["phase"] == "result").unwrap();
    let result = &ended["data"]["result"]["content"][0];
    assert_eq!(result, &json!({ "type": "text", "text": ended["data"]["text"] }));
    let changed = someone.hear_of("sessions.changed").await;
    assert_eq!((&changed["hasActiveRun"], &changed["activeRunIds"]), (&json!(false), &json!([])));
    stop(&gateway).await;
}

#[tokio::test]
async fn approvals_are_requested_and_answered_under_their_published_names() {
    let asking = entry_with(&Script::new(), &json!({ "approval": "always" }));
    let (_place, gateway, mut someone) = running(&config(&json!({ "x": asking }))).await;
    for (run, resolve) in [("r1", "plugin.approval.resolve"), ("r2", "exec.approval.resolve")] {
        someone.send(KEY, run, "/call mcp_x_echo {\"text\":\"hello\"}").await;
        let asked = someone.hear_of("plugin.approval.requested").await;
        assert_eq!(asked["request"]["toolName"], "mcp_x_echo");
        assert_eq!(asked["request"]["sessionKey"], KEY);
        assert!(asked["request"]["description"].as_str().unwrap().contains("hello"), "{asked}");
        let list = someone.ask("plugin.approval.list", json!({})).await.unwrap();
        assert_eq!(list[0]["id"], asked["id"]);
        let id = json!({ "id": asked["id"] });
        let details = someone.ask("exec.approval.get", id).await.unwrap();
        assert_eq!(details["allowedDecisions"], asked["request"]["allowedDecisions"]);
        let answer = json!({ "id": asked["id"], "decision": "allow-once" });
        assert_eq!(someone.ask(resolve, answer).await.unwrap(), json!({ "ok": true }));
        let resolved = someone.hear_of("plugin.approval.resolved").await;
        assert_eq!((&resolved["id"], &resolved["decision"]), (&asked["id"], &json!("allow-once")));
        assert_eq!(someone.end_of(run).await["state"], "final");
    }
    stop(&gateway).await;
}

#[tokio::test]
async fn the_answer_of_a_run_is_the_response_to_agent() {
    let (_place, gateway, someone) = running(&one_server()).await;
    let params =
        json!({ "message": "/call mcp_x_echo {\"text\":\"hello\"}", "idempotencyKey": "r1" });
    let answer = someone.ask("agent", params.clone()).await.unwrap();
    assert_eq!((&answer["status"], &answer["runId"]), (&json!("ok"), &json!("r1")));
    assert!(
        answer["result"]["payloads"][0]["text"].as_str().unwrap().contains("hello"),
        "{answer}"
    );
    let again = someone.ask("agent", params).await.unwrap();
    assert_eq!(again["status"], "ok", "it does not run twice");
    let wait = json!({ "runId": "r1", "timeoutMs": 60_000 });
    assert_eq!(someone.ask("agent.wait", wait).await.unwrap()["status"], "ok");
    let model =
        |name: &str, run: &str| json!({ "message": "hi", "model": name, "idempotencyKey": run });
    let error = someone.ask("agent", model("nobody/x", "r2")).await.unwrap_err();
    assert!(error.message.contains("unknown model `nobody/x`"), "{error}");
    let answer = someone.ask("agent", model("openclaw/offline", "r3")).await.unwrap();
    assert_eq!(answer["status"], "ok", "{answer}");
    let unknown = json!({ "runId": "r9", "timeoutMs": 1 });
    assert_eq!(someone.ask("agent.wait", unknown).await.unwrap()["status"], "timeout");
    stop(&gateway).await;
}

#[tokio::test]
async fn sessions_are_created_read_found_and_reset() {
    let (_place, gateway, mut someone) = running(&config(&json!({}))).await;
    let created =
        json!({ "key": "tui-1", "label": "plans", "message": "hello", "idempotencyKey": "r1" });
    let created = someone.ask("sessions.create", created).await.unwrap();
    let key = created["key"].as_str().unwrap().to_owned();
    assert_eq!((key.as_str(), &created["runStarted"]), ("agent:main:tui-1", &json!(true)));
    someone.end_of("r1").await;
    let read = someone.ask("sessions.get", json!({ "key": key })).await.unwrap();
    let first = &read["messages"][0];
    assert_eq!(first["content"][0]["text"], "hello");
    assert_eq!(first["__openclaw"]["idempotencyKey"], "r1:user", "how a client knows its message");
    let found = someone.ask("sessions.resolve", json!({ "label": "plans" })).await.unwrap();
    let expected = json!({ "ok": true, "key": key, "agentId": "main", "displayName": "plans" });
    assert_eq!(found, expected);
    let by_id = json!({ "message": "and then?", "sessionId": created["sessionId"],
        "idempotencyKey": "r2" });
    assert_eq!(someone.ask("agent", by_id).await.unwrap()["sessionKey"], key.as_str());
    let startup = someone.ask("chat.startup", json!({ "sessionKey": key })).await.unwrap();
    let row = &startup["sessionInfo"];
    assert_eq!((&row["hasActiveRun"], &row["model"]), (&json!(false), &json!("offline")));
    assert!(row["totalTokens"].as_u64().unwrap() > 0, "{row}");
    let reset = someone.ask("sessions.reset", json!({ "key": key })).await.unwrap();
    assert_ne!(reset["entry"]["sessionId"], created["sessionId"]);
    let read = someone.ask("sessions.get", json!({ "key": key })).await.unwrap();
    assert_eq!(read["messages"], json!([]));
    stop(&gateway).await;
}

#[tokio::test]
async fn conversations_are_listed_with_an_address_a_title_and_their_last_message() {
    let (_place, gateway, mut someone) = running(&config(&json!({}))).await;
    someone.send(KEY, "r1", "hello there").await;
    someone.end_of("r1").await;
    let wanted = json!({ "includeDerivedTitles": true, "includeLastMessage": true });
    let listed = someone.ask("sessions.list", wanted).await.unwrap();
    let row = &listed["sessions"][0];
    // `openclaw mcp serve` lists what has a channel and an address.
    assert_eq!(row["deliveryContext"], json!({ "channel": "webchat", "to": KEY }));
    assert_eq!(row["derivedTitle"], "hello there");
    assert!(!row["lastMessagePreview"].as_str().unwrap().is_empty(), "{row}");
    let plain = someone.ask("sessions.list", json!({})).await.unwrap();
    assert!(plain["sessions"][0]["lastMessagePreview"].is_null(), "only on request");
    stop(&gateway).await;
}

#[tokio::test]
async fn unknown_fields_are_ignored_and_unknown_methods_named() {
    let (_place, gateway, someone) = running(&config(&json!({}))).await;
    someone.ask("status", json!({ "includeChannelSummary": true })).await.unwrap();
    someone.ask("chat.history", json!({ "sessionKey": KEY, "maxBytes": 1 })).await.unwrap();
    let error = someone.ask("cron.add", json!({})).await.unwrap_err();
    assert_eq!(error.message, "unknown method: cron.add");
    assert!(error.is_unknown_method());
    let jobs = someone.ask("cron.list", json!({})).await.unwrap();
    assert_eq!(jobs["jobs"], json!([]), "there are none");
    let reader = Someone::with(&gateway, &["read"]);
    let error = reader.ask("device.pair.list", json!({})).await.unwrap_err();
    let details: Value = serde_json::from_str(error.details.unwrap().get()).unwrap();
    let scope = "operator.admin";
    let expected =
        json!({ "code": "MISSING_SCOPE", "missingScope": scope, "requiredScopes": [scope] });
    assert_eq!(details, expected, "it needs a scope, too");
    stop(&gateway).await;
}
