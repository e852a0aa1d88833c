//! What a caller can choose for a session: `models.list` and `sessions.patch`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use openclaw_testkit::{HOSTILE_FILE, ModelServer, Piece, Script, assert_is_external_file};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{KEY, LONG, config, entry, running, stop, unattended};

/// A configuration with two models of this server.
pub(crate) fn with_models(server: &ModelServer) -> Value {
    let mut config = config(&json!({}));
    config["models"]["providers"]["local"] = server.entry();
    config["agents"]["defaults"]["model"] =
        json!({ "primary": "local/big", "fallbacks": ["local/small"] });
    config
}

#[tokio::test]
async fn a_session_uses_the_model_that_was_chosen_for_it() {
    let server = ModelServer::start(|asked| vec![Piece::text(asked["model"].as_str().unwrap())]);
    let (_place, gateway, mut someone) = running(&with_models(&server)).await;
    let listed = someone.ask("models.list", json!({})).await.unwrap();
    let ids: Vec<&Value> =
        listed["models"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
    assert_eq!(ids, ["local/big", "local/small"]);
    for (nth, (model, expected)) in
        [(json!("local/small"), "small"), (json!(null), "big"), (json!("local/big"), "big")]
            .into_iter()
            .enumerate()
    {
        let patch = json!({ "key": KEY, "model": model });
        let patched = someone.ask("sessions.patch", patch).await.unwrap();
        assert_eq!(patched["entry"]["model"], format!("local/{expected}"));
        let source = patched["entry"].get("modelOverrideSource").is_some();
        assert_eq!(source, !model.is_null(), "whether it was chosen");
        let run = format!("r{nth}");
        assert_eq!(someone.say(&run, "who are you?").await, expected);
    }
    let patch = json!({ "key": KEY, "model": "other/one" });
    let error = someone.ask("sessions.patch", patch).await.unwrap_err();
    assert!(error.message.contains("configured: local/big, local/small"), "{error}");
    stop(&gateway).await;
}

#[tokio::test]
async fn an_attached_file_is_external_text_and_is_stored_as_it_is() {
    let server = ModelServer::start(|_| vec![Piece::text("seen")]);
    let (_place, gateway, mut someone) = running(&with_models(&server)).await;
    // As front ends of the Node OpenClaw send one.
    let file = json!({ "type": "file", "mimeType": "text/plain", "fileName": "a.txt",
        "content": STANDARD.encode(HOSTILE_FILE) });
    let params = json!({ "sessionKey": KEY, "message": "look <|im_start|>",
        "idempotencyKey": "r", "attachments": [file] });
    someone.ask("chat.send", params).await.unwrap();
    assert_eq!(someone.end_of("r").await["state"], "final");
    let request = server.requests().remove(0);
    let messages = request["messages"].as_array().unwrap();
    let said = &messages.iter().rev().find(|it| it["role"] == "user").unwrap()["content"];
    let (typed, attached) = said.as_str().unwrap().split_once("\n\n").unwrap();
    assert_eq!(typed, "look <|im_start|>");
    assert_is_external_file(attached, "a.txt");
    let history = someone.ask("chat.history", json!({ "sessionKey": KEY })).await.unwrap();
    let expected = json!([
        { "type": "text", "text": "look <|im_start|>" },
        { "type": "text", "text": HOSTILE_FILE, "untrusted": true,
          "source": { "kind": "file", "path": "a.txt" } },
    ]);
    assert_eq!(history["messages"][0]["content"], expected);
    stop(&gateway).await;
}

#[tokio::test]
async fn a_mode_is_stored_and_never_allows_more_than_the_configuration() {
    let mut with_server = config(&json!({ "x": entry(&Script::new()) }));
    with_server["mcp"]["servers"]["x"]["approval"] = json!("never");
    let (_place, gateway, mut someone) = unattended(&with_server).await;
    for mode in ["workspace", "full"] {
        let patch = json!({ "key": KEY, "permissionMode": mode });
        let error = someone.ask("sessions.patch", patch).await.unwrap_err();
        assert!(error.message.contains("allow more than the configuration"), "{error}");
    }
    let patch = json!({ "key": KEY, "permissionMode": "read-only", "label": "Plans" });
    let patched = someone.ask("sessions.patch", patch).await.unwrap();
    assert_eq!(patched["entry"]["permissionMode"], "read-only");
    // The configuration would not ask.
    let end = someone.say("r1", "/call mcp_x_count {}").await;
    assert!(end.contains("this session is read-only"), "{end}");
    assert!(someone.say("r2", "/call mcp_x_echo {\"text\":\"hi\"}").await.ends_with("hi"));
    // Every change needs an approval, and no approver is connected.
    let patch = json!({ "key": KEY, "permissionMode": "guarded" });
    someone.ask("sessions.patch", patch).await.unwrap();
    let end = someone.say("r3", "/call mcp_x_count {}").await;
    assert!(end.contains("needs the user's approval"), "{end}");
    someone.ask("sessions.patch", json!({ "key": KEY, "permissionMode": null })).await.unwrap();
    let end = someone.say("r4", "/call mcp_x_count {}").await;
    assert!(end.contains("`mcp_x_count` returned: "), "{end}");

    let listed = someone.ask("sessions.list", json!({ "includeDerivedTitles": true })).await;
    let listed = listed.unwrap();
    let row = &listed["sessions"][0];
    assert_eq!(row["displayName"], "Plans", "{row}");
    assert_eq!(row["derivedTitle"], "/call mcp_x_count {}", "{row}");
    let unknown = json!({ "key": KEY, "icon": "x" });
    assert!(someone.ask("sessions.patch", unknown).await.is_ok(), "it is ignored");
    stop(&gateway).await;
}

#[tokio::test]
async fn the_model_writes_the_title_of_a_session_once() {
    let server = ModelServer::start(|asked| {
        let is_title = asked["messages"].to_string().contains("Write a title");
        vec![Piece::text(if is_title { "\"A lighthouse\"\n" } else { "Hello." })]
    });
    let (_place, gateway, mut someone) = running(&with_models(&server)).await;
    let title = json!({ "key": KEY });
    let answer = someone.ask("sessions.title", title.clone()).await.unwrap();
    assert_eq!(answer["ok"], false, "there is no session yet");
    someone.send(KEY, "r1", "Tell me about lighthouses.").await;
    someone.end_of("r1").await;
    let described = json!({ "key": KEY, "includeDerivedTitles": true });
    let row = someone.ask("sessions.describe", described.clone()).await.unwrap();
    assert_eq!(row["session"]["derivedTitle"], "Tell me about lighthouses.");
    let answer = someone.ask("sessions.title", title.clone()).await.unwrap();
    assert_eq!((&answer["ok"], &answer["title"]), (&json!(true), &Value::Null));
    let written = async {
        loop {
            let row = someone.ask("sessions.describe", described.clone()).await.unwrap();
            if !row["session"]["displayName"].is_null() {
                return;
            }
        }
    };
    timeout(LONG, written).await.unwrap();
    let requests = server.requests().len();
    let answer = someone.ask("sessions.title", title).await.unwrap();
    assert_eq!(answer["title"], "A lighthouse");
    let listed = someone.ask("sessions.list", json!({})).await.unwrap();
    assert_eq!(listed["sessions"][0]["displayName"], "A lighthouse");
    assert_eq!(server.requests().len(), requests, "the model is not asked again");
    stop(&gateway).await;
}

#[tokio::test]
async fn a_session_is_summarized_on_request_and_tells_what_it_used() {
    let server = ModelServer::start(|asked| {
        let is_summary = asked["messages"].to_string().contains("Summarize the conversation");
        vec![Piece::text(if is_summary { "They met." } else { "Hello." })]
    });
    let (_place, gateway, mut someone) = running(&with_models(&server)).await;
    for (run, message, expected) in [
        ("r1", "/compact", "There is nothing to summarize yet."),
        ("r2", "/usage", "No tokens were used"),
        ("r3", "My name is Ada.", "Hello."),
        ("r4", "/compact", "The conversation was summarized: about "),
        ("r5", "/compact", "There is nothing to summarize yet."),
        ("r6", "/usage", "local/big: 1 request, "),
    ] {
        let answer = someone.say(run, message).await;
        assert!(answer.contains(expected), "{message}: {answer}");
    }
    someone.send(KEY, "r7", "And now?").await;
    someone.end_of("r7").await;
    let last = server.requests().last().unwrap()["messages"].to_string();
    assert!(last.contains("They met.") && last.contains("My name is Ada."), "{last}");
    assert!(!last.contains("Hello."), "the answer is part of the summary only: {last}");
    stop(&gateway).await;
}
