//! Sessions and turns.

use openclaw_testkit::{HOSTILE_FILE, ModelServer, Piece, assert_is_external_file};
use serde_json::{Value, json};

use crate::editor::{Editor, PNG, Place};

fn demo() -> Value {
    let program = env!("CARGO_BIN_EXE_openclaw");
    json!({ "mcp": { "servers": { "demo": { "command": program, "args": ["demo-server"] } } } })
}

#[test]
fn a_prompt_is_answered_with_its_calls_and_text() {
    let place = Place::with(&demo());
    let (mut editor, session) = Editor::open(&place, &[]);
    let (stop, text) = editor.prompt(&session, "add 2 and 3");
    assert_eq!((stop.as_str(), text.as_str()), ("end_turn", "`mcp_demo_add` returned: 5"));
    let call = editor.of_kind("tool_call")[0];
    assert_eq!((&call["kind"], &call["rawInput"]), (&json!("read"), &json!({"a": 2, "b": 3})));
    let update = editor.of_kind("tool_call_update")[0];
    assert_eq!(update["status"], "completed");
    assert_eq!(update["rawOutput"]["text"], "5");
    let (_, text) = editor.prompt(&session, "/mcp servers");
    assert!(text.contains("demo"), "{text}");
    assert_eq!(editor.close(), 0);
}

#[test]
fn a_loaded_session_is_replayed_and_goes_on() {
    let place = Place::with(&demo());
    let (mut editor, session) = Editor::open(&place, &[]);
    editor.prompt(&session, "add 2 and 3");
    assert_eq!(editor.close(), 0);

    let mut editor = Editor::start(&place, &[], &json!({}));
    let listed = editor.ask("session/list", json!({ "cwd": place.project() })).unwrap();
    assert_eq!(listed["sessions"][0]["sessionId"], json!(session));
    let load = json!({ "sessionId": session, "cwd": place.project(), "mcpServers": [] });
    editor.ask("session/load", load.clone()).unwrap();
    let kinds: Vec<&str> =
        editor.updates.iter().filter_map(|it| it["sessionUpdate"].as_str()).collect();
    let expected = ["user_message_chunk", "tool_call", "tool_call_update", "agent_message_chunk"];
    assert_eq!(kinds[..4], expected);
    assert_eq!(editor.prompt(&session, "add 1 and 1").1, "`mcp_demo_add` returned: 2");
    editor.ask("session/resume", load).unwrap();
    assert_eq!(editor.of_kind("user_message_chunk").len(), 0, "nothing is replayed");
    let only = json!({ "sessionId": session });
    editor.ask("session/close", only.clone()).unwrap();
    let error = editor.error("session/close", only.clone());
    assert!(error.contains("not found"), "{error}");
    editor.ask("session/delete", only).unwrap();
    let listed = editor.ask("session/list", json!({})).unwrap();
    assert_eq!(listed["sessions"], json!([]));
}

#[test]
fn commands_and_prompts_of_servers_are_listed_once_they_are_known() {
    let place = Place::with(&demo());
    let (mut editor, session) = Editor::open(&place, &[]);
    editor.prompt(&session, "hello");
    let has_prompt = |editor: &Editor| {
        let menus = editor.of_kind("available_commands_update");
        let last = menus.last().map(|menu| menu["availableCommands"].to_string());
        last.is_some_and(|menu| menu.contains("\"mcp\"") && menu.contains("mcp__demo__"))
    };
    while !has_prompt(&editor) {
        editor.frame();
    }
}

#[test]
fn a_cancelled_prompt_ends_with_that_reason_and_the_next_one_runs() {
    let place = Place::new();
    let mut editor = Editor::start(&place, &[], &json!({}));
    let slow = openclaw_testkit::Script::new().call_delay_ms(60_000);
    let session = editor.session(&place, &[place.stdio("slow", &slow)]);
    let first = editor.send_prompt(&session, "/call mcp__slow__echo {\"text\":\"x\"}");
    editor.wait_for("tool_call");
    let second = editor.send_prompt(&session, "hello");
    let error = editor.answer(second).unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("already running"), "{error}");
    editor.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(editor.answer(first).unwrap()["stopReason"], "cancelled");
    assert_eq!(editor.prompt(&session, "hello").0, "end_turn");
    assert_eq!(editor.close(), 0);
    place.assert_nothing_left();
}

#[test]
fn attached_files_and_images_reach_the_agent() {
    let place = Place::new();
    let (mut editor, session) = Editor::open(&place, &[]);
    let prompt = json!([
        { "type": "text", "text": "hello" },
        { "type": "image", "mimeType": "image/png", "data": PNG },
        { "type": "resource", "resource": { "uri": "file:///a.rs", "text": "fn a() {}" } },
        { "type": "resource_link", "name": "b.rs", "uri": "file:///b.rs" },
    ]);
    let answer = editor.ask("session/prompt", json!({ "sessionId": session, "prompt": prompt }));
    assert_eq!(answer.unwrap()["stopReason"], "end_turn");
    editor.load(&place, &session, &[]);
    let said = serde_json::to_string(&editor.of_kind("user_message_chunk")).unwrap();
    for expected in ["[b.rs](file:///b.rs)", "fn a() {}", PNG] {
        assert!(said.contains(expected), "{expected} in {said}");
    }
}

#[test]
fn attached_files_are_external_text_for_the_model_and_unchanged_in_a_loaded_session() {
    let server = ModelServer::start(|_| vec![Piece::text("seen")]);
    let place = Place::with_models(&server);
    let (mut editor, session) = Editor::open(&place, &[]);
    let file = json!({ "uri": "file:///a.rs", "text": HOSTILE_FILE });
    let prompt = json!([
        { "type": "text", "text": "look <|im_start|>" },
        { "type": "resource", "resource": file },
        { "type": "resource_link", "name": "<|im_start|>.rs", "uri": "file:///b.rs" },
    ]);
    let answer = editor.ask("session/prompt", json!({ "sessionId": session, "prompt": prompt }));
    assert_eq!(answer.unwrap()["stopReason"], "end_turn");
    let request = server.requests().remove(0);
    let messages = request["messages"].as_array().unwrap();
    let said = &messages.iter().rev().find(|it| it["role"] == "user").unwrap()["content"];
    let text = said.as_str().unwrap();
    let (typed, attached) = text.split_once("\n\n").unwrap();
    let mention = "look <|im_start|> [a.rs](file:///a.rs) [[removed token].rs](file:///b.rs)";
    assert_eq!(typed, mention);
    assert_is_external_file(attached, "file:///a.rs");

    editor.load(&place, &session, &[]);
    let chunks = editor.of_kind("user_message_chunk");
    let shown: Vec<&Value> = chunks.iter().map(|chunk| &chunk["content"]).collect();
    let expected = [
        json!({ "type": "text", "text": mention }),
        json!({ "type": "resource", "resource": file }),
    ];
    assert_eq!(shown, expected.iter().collect::<Vec<_>>());
}

#[test]
fn conversations_are_listed_in_the_folder_that_they_were_used_in() {
    let place = Place::new();
    let (here, other) = (place.project(), place.path("other"));
    std::fs::create_dir(&other).unwrap();
    let (mut editor, session) = Editor::open(&place, &[]);
    editor.prompt(&session, "hello");
    assert_eq!(editor.close(), 0);
    let mut editor = Editor::start(&place, &[], &json!({}));
    let mut listed = |params: Value| editor.ask("session/list", params).unwrap()["sessions"].take();
    assert_eq!(listed(json!({ "cwd": other })), json!([]));
    for params in [json!({ "cwd": here }), json!({})] {
        let found = listed(params);
        assert_eq!((&found[0]["sessionId"], &found[0]["cwd"]), (&json!(session), &json!(here)));
    }
}
