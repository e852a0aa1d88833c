//! Approvals for later calls: they outlive the gateway, are listed, revoked and added (B17), and a
//! denial may say what to do instead.

use openclaw_testkit::Script;
use serde_json::{Value, json};

use crate::support::{KEY, Someone, config, entry_with, running, start, stop};

/// A server whose calls may need approval.
fn asking() -> Value {
    let entry = entry_with(&Script::new(), &json!({ "approval": "auto" }));
    config(&json!({ "x": entry }))
}

fn exec(command: &str) -> String {
    format!("/call exec {}", json!({ "command": command }))
}

/// Runs a call that must be asked about, and answers.
async fn answered(user: &mut Someone, run: &str, call: &str, answer: Value) {
    let asked = user.asked(run, call).await;
    let mut answer = answer;
    answer["id"] = asked["id"].clone();
    user.ask("approvals.respond", answer).await.unwrap();
    assert_eq!(user.end_of(run).await["state"], "final");
}

/// Runs a call that must not be asked about.
async fn free(user: &mut Someone, run: &str, call: &str) {
    user.say(run, call).await;
    assert!(!user.heard_so_far().iter().any(|(name, _)| name == "approval.requested"), "{call}");
}

/// Runs a call that must be asked about, and denies it.
async fn asked(user: &mut Someone, run: &str, call: &str) {
    answered(user, run, call, json!({ "decision": "deny" })).await;
}

#[tokio::test]
async fn a_command_prefix_outlives_the_gateway_and_is_revoked() {
    let (place, gateway, mut user) = running(&asking()).await;
    let always = json!({ "decision": "allow-always", "always": 2 });
    answered(&mut user, "r1", &exec("echo a"), always).await;
    stop(&gateway).await;

    let (gateway, mut user) = start(&place).await;
    free(&mut user, "r2", &exec("echo b")).await;
    for (nth, escape) in ["echo b; id", "echo $(id)", "echo b\nid", "echo b > x", "echo b | sh"]
        .into_iter()
        .enumerate()
    {
        asked(&mut user, &format!("e{nth}"), &exec(escape)).await;
    }
    let listed = user.ask("approvals.rules", json!({})).await.unwrap();
    let [rule] = listed["rules"].as_array().unwrap().as_slice() else { panic!("{listed}") };
    assert_eq!(rule["words"], "every harmless `echo` command");
    let wrong = user.ask("approvals.revoke", json!({ "ids": ["ffffffff0"] })).await.unwrap_err();
    assert!(wrong.message.contains("no approval"), "{wrong}");
    let writer = Someone::writer(&gateway);
    for method in ["approvals.rules", "approvals.revoke", "approvals.allow"] {
        assert!(writer.ask(method, json!({})).await.unwrap_err().message.contains("operator."));
    }
    let revoked = user.ask("approvals.revoke", json!({ "ids": [rule["id"]] })).await.unwrap();
    assert_eq!(revoked["rules"], json!([rule]));
    asked(&mut user, "r3", &exec("echo b")).await;
    stop(&gateway).await;
}

#[tokio::test]
async fn a_stored_prefix_that_is_not_known_to_be_harmless_is_listed_and_allows_nothing() {
    let (place, gateway, user) = running(&asking()).await;
    let allow = json!({ "tool": "exec", "command": "echo" });
    user.ask("approvals.allow", allow).await.unwrap();
    stop(&gateway).await;
    let file = place.path().join("state/approvals.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("\"echo\"", "\"env\"")).unwrap();

    let (gateway, mut user) = start(&place).await;
    let listed = user.ask("approvals.rules", json!({})).await.unwrap();
    let words = "nothing any more: commands that begin with `env` are not known to be harmless";
    assert_eq!(listed["rules"][0]["words"], words);
    asked(&mut user, "r1", &exec("env echo a")).await;
    stop(&gateway).await;
}

#[tokio::test]
async fn calls_are_allowed_in_advance_by_prefix_and_by_argument() {
    let (_place, gateway, mut user) = running(&asking()).await;
    for bad in [
        json!({ "tool": "exec" }),
        json!({ "tool": "exec", "command": " " }),
        json!({ "tool": "mcp_x_nothing" }),
        json!({ "tool": "mcp_x_add", "arguments": { "a": [2] } }),
        json!({ "tool": "mcp_x_add", "arguments": { "aa": 2 } }),
        json!({ "tool": "write", "arguments": { "pth": "a.txt" } }),
        json!({ "tool": "web_fetch" }),
        json!({ "tool": "write", "workspace": "relative" }),
    ] {
        user.ask("approvals.allow", bad).await.unwrap_err();
    }
    let allow = json!({ "tool": "exec", "command": "echo a" });
    user.ask("approvals.allow", allow).await.unwrap();
    free(&mut user, "r1", &exec("echo a b")).await;
    asked(&mut user, "r2", &exec("echo b")).await;
    let allow = json!({ "tool": "exec", "command": "env echo c" });
    let allowed = user.ask("approvals.allow", allow).await.unwrap();
    assert_eq!(allowed["rules"][0]["words"], "exactly the command `env echo c`");
    free(&mut user, "x1", &exec("env echo c")).await;
    asked(&mut user, "x2", &exec("env echo c d")).await;
    let outside = json!({ "tool": "exec", "command": "ls /" });
    user.ask("approvals.allow", outside).await.unwrap();
    free(&mut user, "x3", &exec("ls /")).await;
    asked(&mut user, "x4", &exec("ls / -l")).await;

    asked(&mut user, "r3", "/call mcp_x_add {\"a\":2,\"b\":3}").await;
    let allow = json!({ "tool": "mcp_x_add", "arguments": { "a": 2 } });
    let allowed = user.ask("approvals.allow", allow).await.unwrap();
    assert_eq!(allowed["rules"][0]["words"], "`add` with a=2");
    free(&mut user, "r4", "/call mcp_x_add {\"a\":2,\"b\":4}").await;
    asked(&mut user, "r5", "/call mcp_x_add {\"a\":3,\"b\":4}").await;
    stop(&gateway).await;
}

#[tokio::test]
async fn a_denial_gives_the_model_the_words_of_the_user() {
    let (_place, gateway, mut user) = running(&asking()).await;
    let answer = json!({ "decision": "deny", "instead": "use the other branch" });
    answered(&mut user, "r1", &exec("git push"), answer).await;
    let history = user.ask("chat.history", json!({ "sessionKey": KEY })).await.unwrap();
    let text = history.to_string();
    assert!(text.contains("The user denied this call and says: use the other branch"), "{text}");
    let asked = user.asked("r2", &exec("git push")).await;
    let odd = json!({ "id": asked["id"], "decision": "allow-once", "instead": "x" });
    user.ask("approvals.respond", odd).await.unwrap_err();
    stop(&gateway).await;
}

#[tokio::test]
async fn a_client_works_in_a_folder_of_its_own() {
    let (_place, gateway, mut user) = running(&asking()).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("here.txt"), "found it").unwrap();
    let read = "/call read {\"path\":\"here.txt\"}";
    let send = |run: &str, workspace: &str| json!({ "sessionKey": KEY, "message": read, "idempotencyKey": run, "workspace": workspace });
    let path = folder.path().to_str().unwrap();
    user.ask("chat.send", send("r1", path)).await.unwrap();
    assert_eq!(user.end_of("r1").await["state"], "final");
    let history = user.ask("chat.history", json!({ "sessionKey": KEY })).await.unwrap().to_string();
    assert!(history.contains("found it"), "{history}");
    // Others stay in the agent's workspace.
    user.send(KEY, "r2", read).await;
    let end = user.end_of("r2").await;
    assert!(!end.to_string().contains("found it"), "{end}");
    for bad in ["relative", "/no/such/folder"] {
        user.ask("chat.send", send("r3", bad)).await.unwrap_err();
    }
    let writer = Someone::writer(&gateway);
    let error = writer.ask("chat.send", send("r4", path)).await.unwrap_err();
    assert!(error.message.contains("operator.admin"), "{error}");
    stop(&gateway).await;
}
