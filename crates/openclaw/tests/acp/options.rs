//! The model and the mode of a session.

use openclaw_testkit::{ModelServer, Piece};
use serde_json::{Value, json};

use crate::editor::{Editor, Place, changing, choose};

/// A configuration with two models, whose answer is their name.
fn two_models() -> (ModelServer, Place) {
    let server =
        ModelServer::start(|request| vec![Piece::text(request["model"].as_str().unwrap())]);
    let place = Place::with_models(&server);
    (server, place)
}

fn option<'o>(answer: &'o Value, id: &str) -> &'o Value {
    let options = answer["configOptions"].as_array().unwrap();
    options.iter().find(|option| option["id"] == id).unwrap()
}

fn set(editor: &mut Editor, session: &str, id: &str, value: &str) -> Result<Value, Value> {
    let params = json!({ "sessionId": session, "configId": id, "value": value });
    editor.ask("session/set_config_option", params)
}

#[test]
fn the_client_chooses_the_model_and_the_session_keeps_it() {
    let (_server, place) = two_models();
    let mut editor = Editor::start(&place, &[], &json!({}));
    let new = json!({ "cwd": place.project(), "mcpServers": [] });
    let opened = editor.ask("session/new", new).unwrap();
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    let model = option(&opened, "model");
    assert_eq!(model["category"], "model");
    assert_eq!(model["currentValue"], "local/big");
    let values: Vec<&Value> =
        model["options"].as_array().unwrap().iter().map(|it| &it["value"]).collect();
    assert_eq!(values, ["local/big", "local/small"]);
    assert_eq!(editor.prompt(&session, "who are you?").1, "big");
    let usage = editor.of_kind("usage_update");
    assert_eq!(usage[0]["used"], 42, "{usage:?}");

    let changed = set(&mut editor, &session, "model", "local/small").unwrap();
    assert_eq!(option(&changed, "model")["currentValue"], "local/small");
    assert_eq!(editor.prompt(&session, "who are you?").1, "small");
    for (id, value, expected) in [
        ("model", "local/huge", "unknown model `local/huge`; configured: local/big, local/small"),
        ("mode", "full", "unknown mode"),
        ("colour", "red", "unknown option"),
    ] {
        let error = set(&mut editor, &session, id, value).unwrap_err();
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().unwrap().contains(expected), "{error}");
    }
    // Another session has its own.
    let other = editor.session(&place, &[]);
    assert_eq!(editor.prompt(&other, "who are you?").1, "big");
    assert_eq!(editor.close(), 0);

    let mut editor = Editor::start(&place, &[], &json!({}));
    let loaded = editor.load(&place, &session, &[]);
    assert_eq!(option(&loaded, "model")["currentValue"], "local/small");
    assert_eq!(editor.prompt(&session, "who are you?").1, "small");
}

const CHANGE: &str = "/call mcp__box__change {}";

#[test]
fn a_read_only_session_changes_nothing_and_asks_nothing() {
    let place = Place::new();
    let mut editor = Editor::start(&place, &[], &json!({}))
        .answering(|_, params| choose(params, "allow_always"));
    let opened = editor
        .ask(
            "session/new",
            json!({ "cwd": place.project(), "mcpServers": [place.stdio("box", &changing())] }),
        )
        .unwrap();
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(opened["modes"]["currentModeId"], "default");
    assert_eq!(option(&opened, "mode")["category"], "mode");
    assert!(editor.prompt(&session, CHANGE).1.ends_with("returned: done"));

    let mode = json!({ "sessionId": session, "modeId": "read-only" });
    editor.ask("session/set_mode", mode).unwrap();
    editor.wait_for("config_option_update");
    editor.asked.clear();
    let (_, text) = editor.prompt(&session, CHANGE);
    assert!(text.contains("this session is read-only"), "{text}");
    let (_, text) = editor.prompt(&session, "/call write {\"path\":\"a\",\"content\":\"b\"}");
    assert!(text.contains("this session is read-only"), "{text}");
    assert!(editor.asked.is_empty(), "{:?}", editor.asked);

    // Whatever was allowed always is asked about again.
    set(&mut editor, &session, "mode", "guarded").unwrap();
    editor.wait_for("current_mode_update");
    let mut guarded = editor.answering(|_, params| choose(params, "allow_once"));
    for _ in 0..2 {
        assert!(guarded.prompt(&session, CHANGE).1.ends_with("returned: done"));
    }
    assert_eq!(guarded.asked.len(), 2);
    let unknown = json!({ "sessionId": session, "modeId": "full" });
    assert!(guarded.error("session/set_mode", unknown).contains("unknown mode"));
    let loaded = guarded.load(&place, &session, &[]);
    assert_eq!(loaded["modes"]["currentModeId"], "guarded");
    assert_eq!(guarded.close(), 0);
    place.assert_nothing_left();
}
