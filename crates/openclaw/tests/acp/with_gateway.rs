//! A gateway in another process.

use openclaw_testkit::{Script, processes};
use serde_json::json;

use crate::common::LONG;
use crate::editor::{Editor, Place, changing, choose};

#[test]
fn tools_of_the_session_are_called_over_the_socket() {
    let place = Place::new();
    let running = place.gateway();
    for args in [&["--gateway", &running.url] as &[&str], &[]] {
        let can = json!({ "fs": { "readTextFile": true } });
        let mut editor =
            Editor::start(&place, args, &can).answering(|method, params| match method {
                "fs/read_text_file" => Some(json!({ "content": "text" })),
                _ => choose(params, "allow_once"),
            });
        let servers = [place.stdio("box", &changing())];
        let (one, two) = (editor.session(&place, &servers), editor.session(&place, &servers));
        for session in [&one, &two] {
            let (_, text) = editor.prompt(session, "/call mcp__box__change {}");
            assert!(text.ends_with("returned: done"), "{text}");
        }
        assert_eq!(editor.asked.len(), 2, "each session asks");
        let (_, text) = editor.prompt(&one, "/call editor_read_file {\"path\":\"a\"}");
        assert!(text.ends_with("returned: text"), "{text}");
        assert_eq!(editor.close(), 0);
    }
    drop(running);
    place.assert_nothing_left();
}

#[test]
fn losing_the_gateway_ends_the_turn_and_stops_the_servers() {
    let place = Place::new();
    let mut running = place.gateway();
    let mut editor = Editor::start(&place, &["--gateway", &running.url], &json!({}));
    let slow = Script::new().call_delay_ms(60_000);
    let session = editor.session(&place, &[place.stdio("slow", &slow)]);
    let id = editor.send_prompt(&session, "/call mcp__slow__echo {\"text\":\"x\"}");
    editor.wait_for("tool_call");
    running.child.kill().unwrap();
    let error = editor.answer(id).unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("gateway"), "{error}");
    let left = processes::wait_until_none(LONG, || {
        processes::mentioning(&format!("{}/slow", place.folder.path().display()))
    });
    assert_eq!(left, Vec::<u32>::new());
    let prompt = json!([{ "type": "text", "text": "hello" }]);
    let error = editor.error("session/prompt", json!({ "sessionId": session, "prompt": prompt }));
    assert!(error.contains("gateway was lost"), "{error}");
    assert_eq!(editor.close(), 0);
}

#[test]
fn a_gateway_that_does_not_exist_is_reported() {
    let place = Place::new();
    let mut editor = Editor::start(&place, &["--gateway", "ws://127.0.0.1:9"], &json!({}));
    let error = editor.error("session/new", json!({ "cwd": "/", "mcpServers": [] }));
    assert!(error.contains("cannot connect to"), "{error}");
    assert!(error.contains("check that the gateway is running"), "{error}");
    assert_eq!(editor.close(), 3);
}

#[test]
fn an_editor_does_not_decide_about_the_calls_of_another_one_in_the_same_conversation() {
    let place = Place::new();
    let running = place.gateway();
    let start = || Editor::allowing(&place, &["--gateway", &running.url]);
    let (mut idle, mut busy) = (start(), start());
    let session = busy.session(&place, &[]);
    busy.prompt(&session, "hello");
    idle.load(&place, &session, &[]);
    busy.load(&place, &session, &[place.stdio("box", &changing())]);
    busy.prompt(&session, "/call mcp__box__change {}");
    assert_eq!(busy.asked.len(), 1);
    idle.ask("session/list", json!({})).unwrap();
    assert!(idle.asked.is_empty(), "{:?}", idle.asked);
}
