//! What a caller can choose for a session: `models.list` and `sessions.patch`.

use std::time::Duration;

use openclaw_testkit::{ModelServer, Piece, Script};
use serde_json::{Value, json};

use crate::support::{KEY, Place, Someone, config, entry, text};

fn with_models(server: &ModelServer) -> Value {
    let mut config = config(&json!({}));
    config["models"]["providers"]["local"] = server.entry();
    config["agents"]["defaults"]["model"] =
        json!({ "primary": "local/big", "fallbacks": ["local/small"] });
    config
}

#[tokio::test]
async fn a_session_uses_the_model_that_was_chosen_for_it() {
    let server = ModelServer::start(|asked| vec![Piece::text(asked["model"].as_str().unwrap())]);
    let place = Place::new(&with_models(&server));
    let gateway = place.start().await;
    let mut someone = Someone::new(&gateway);
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
        assert_eq!(patched["entry"].get("model").cloned().unwrap_or_default(), model);
        let run = format!("r{nth}");
        someone.send(KEY, &run, "who are you?").await;
        assert_eq!(text(&someone.end_of(&run).await), expected);
    }
    let patch = json!({ "key": KEY, "model": "other/one" });
    let error = someone.ask("sessions.patch", patch).await.unwrap_err();
    assert!(error.message.contains("configured: local/big, local/small"), "{error}");
    gateway.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn a_mode_is_stored_and_never_allows_more_than_the_configuration() {
    let mut with_server = config(&json!({ "x": entry(&Script::new()) }));
    with_server["mcp"]["servers"]["x"]["approval"] = json!("never");
    let place = Place::new(&with_server);
    let gateway = place.start().await;
    gateway.fleet().tried().await;
    let mut someone = Someone::with(&gateway, &["read", "write"]);
    for mode in ["workspace", "full"] {
        let patch = json!({ "key": KEY, "permissionMode": mode });
        let error = someone.ask("sessions.patch", patch).await.unwrap_err();
        assert!(error.message.contains("allow more than the configuration"), "{error}");
    }
    let patch = json!({ "key": KEY, "permissionMode": "read-only", "label": "Plans" });
    let patched = someone.ask("sessions.patch", patch).await.unwrap();
    assert_eq!(patched["entry"]["permissionMode"], "read-only");
    // The configuration would not ask.
    someone.send(KEY, "r1", "/call mcp_x_count {}").await;
    let end = text(&someone.end_of("r1").await);
    assert!(end.contains("this session is read-only"), "{end}");
    someone.send(KEY, "r2", "/call mcp_x_echo {\"text\":\"hi\"}").await;
    assert!(text(&someone.end_of("r2").await).ends_with("hi"));
    // Every change needs an approval, and no approver is connected.
    let patch = json!({ "key": KEY, "permissionMode": "guarded" });
    someone.ask("sessions.patch", patch).await.unwrap();
    someone.send(KEY, "r3", "/call mcp_x_count {}").await;
    let end = text(&someone.end_of("r3").await);
    assert!(end.contains("needs the user's approval"), "{end}");
    someone.ask("sessions.patch", json!({ "key": KEY, "permissionMode": null })).await.unwrap();
    someone.send(KEY, "r4", "/call mcp_x_count {}").await;
    let end = text(&someone.end_of("r4").await);
    assert!(end.contains("`mcp_x_count` returned: "), "{end}");

    let listed = someone.ask("sessions.list", json!({ "includeDerivedTitles": true })).await;
    let listed = listed.unwrap();
    let row = &listed["sessions"][0];
    assert_eq!(row["displayName"], "Plans", "{row}");
    assert_eq!(row["derivedTitle"], "/call mcp_x_count {}", "{row}");
    let unknown = json!({ "key": KEY, "icon": "x" });
    assert!(someone.ask("sessions.patch", unknown).await.is_err());
    gateway.stop(Duration::ZERO).await;
}
