//! What a loaded session shows of its turns, and sessions that are open twice.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use openclaw_testkit::{ModelServer, Piece, Script, TestServer};
use serde_json::{Value, json};

use crate::common::gateway::RunningGateway;
use crate::editor::{Editor, Place};

/// A WAV file of one sample.
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA==";

/// Kind, name, content and output of the calls in the updates.
fn calls(editor: &Editor) -> Vec<Value> {
    let calls = editor.of_kind("tool_call").into_iter().map(|call| {
        let updates = editor.of_kind("tool_call_update").into_iter();
        let mut of_call = updates.filter(|it| it["toolCallId"] == call["toolCallId"]);
        let last = of_call.next_back().cloned().unwrap_or_default();
        let content = match &last["content"] {
            Value::Null => call["content"].clone(),
            content => content.clone(),
        };
        json!({
            "name": call["name"], "kind": call["kind"], "input": call["rawInput"],
            "locations": call["locations"], "content": content, "status": last["status"],
            "output": last["rawOutput"],
        })
    });
    calls.collect()
}

#[test]
fn a_loaded_session_shows_calls_as_they_were() {
    let (program, args) = TestServer::stdio(&Script::new());
    let place = Place::with(&json!({
        "mcp": { "servers": { "kit": { "command": program, "args": args } } },
    }));
    let mut editor = Editor::allowing(&place, &[]);
    let session = editor.session(&place, &[]);
    let mut live = Vec::new();
    for prompt in [
        "/call write {\"path\":\"a.txt\",\"content\":\"one two\"}",
        "/call edit {\"path\":\"a.txt\",\"old\":\"two\",\"new\":\"2\"}",
        "/call read {\"path\":\"a.txt\"}",
        "/call read {\"path\":\"missing.txt\"}",
        "/call mcp_kit_echo {\"text\":\"hi\"}",
    ] {
        editor.prompt(&session, prompt);
        live.extend(calls(&editor));
    }
    assert_eq!(live.len(), 5);
    assert_eq!(live[1]["kind"], "edit");
    assert_eq!(live[1]["content"][0]["type"], "diff");
    assert_eq!(live[3]["status"], "failed");
    editor.load(&place, &session, &[]);
    let replayed = calls(&editor);
    assert_eq!(replayed.len(), live.len());
    for (live, replayed) in live.iter().zip(&replayed) {
        for field in ["name", "kind", "input", "locations", "status"] {
            assert_eq!(live[field], replayed[field], "{field}");
        }
        assert_eq!(live["content"], replayed["content"]);
        assert_eq!(live["output"]["text"], replayed["output"]["text"]);
        assert!(replayed["output"]["durationMs"].is_number(), "{replayed}");
    }
}

#[test]
fn two_loads_at_once_are_replayed_one_after_the_other() {
    let place = Place::new();
    let (mut editor, session) = Editor::open(&place, &[]);
    for text in ["one", "two", "three"] {
        editor.prompt(&session, text);
    }
    let load = json!({ "sessionId": session, "cwd": place.project(), "mcpServers": [] });
    for _ in 0..5 {
        editor.updates.clear();
        let ids = [(); 2].map(|()| editor.send("session/load", load.clone()));
        for (id, count) in ids.into_iter().zip([3, 6]) {
            while editor.frame()["id"] != id {}
            assert_eq!(editor.of_kind("user_message_chunk").len(), count);
        }
    }
}

#[test]
fn a_replayed_call_of_a_server_has_its_label_and_is_not_failed_first() {
    let place = Place::new();
    let (mut editor, session) = Editor::open(&place, &[place.stdio("box", &Script::new())]);
    editor.prompt(&session, "/call mcp__box__echo {\"text\":\"hi\"}");
    let title = editor.of_kind("tool_call")[0]["title"].clone();
    assert_eq!(title, "MCP: box/echo");
    editor.load(&place, &session, &[]);
    let call = editor.of_kind("tool_call")[0];
    assert_eq!((&call["title"], &call["status"]), (&title, &json!("in_progress")));
    let statuses: Vec<&Value> =
        editor.of_kind("tool_call_update").into_iter().map(|it| &it["status"]).collect();
    assert_eq!(statuses, ["completed"]);
}

#[test]
fn a_loaded_session_shows_how_much_of_the_context_is_used() {
    let server = ModelServer::start(|_| vec![Piece::text("hi")]);
    let place = Place::with_models(&server);
    let (mut editor, session) = Editor::open(&place, &[]);
    editor.prompt(&session, "hello");
    let live = editor.of_kind("usage_update")[0].clone();
    editor.load(&place, &session, &[]);
    let replayed = editor.of_kind("usage_update");
    assert_eq!((replayed.len(), &replayed[0]["used"]), (1, &live["used"]));
}

#[test]
fn a_compaction_makes_room_in_the_context() {
    let server = ModelServer::start(|_| vec![Piece::text("long ".repeat(100))]);
    let place = Place::with_models(&server);
    let (mut editor, session) = Editor::open(&place, &[]);
    editor.prompt(&session, "hello");
    let used = editor.of_kind("usage_update")[0]["used"].as_u64().unwrap();
    for _ in 0..20 {
        editor.prompt(&session, "hello");
    }
    editor.prompt(&session, "/compact");
    let update = editor.of_kind("usage_update")[0].clone();
    assert!(update["used"].as_u64().unwrap() < used, "{update}");
    editor.updates.clear();
    editor.load(&place, &session, &[]);
    assert_eq!(editor.of_kind("usage_update"), [&update]);
}

#[test]
fn audio_reaches_the_agent_and_is_replayed() {
    let place = Place::new();
    let (mut editor, session) = Editor::open(&place, &[]);
    let prompt = json!([
        { "type": "text", "text": "listen" },
        { "type": "audio", "mimeType": "audio/wav", "data": WAV },
    ]);
    let answer = editor.ask("session/prompt", json!({ "sessionId": session, "prompt": prompt }));
    assert_eq!(answer.unwrap()["stopReason"], "end_turn");
    let bad = json!([{ "type": "audio", "mimeType": "audio/wav", "data": "not base64" }]);
    let error = editor.error("session/prompt", json!({ "sessionId": session, "prompt": bad }));
    assert!(error.contains("base64"), "{error}");
    editor.load(&place, &session, &[]);
    let audio = json!({ "type": "audio", "mimeType": "audio/wav", "data": WAV });
    let chunks = editor.of_kind("user_message_chunk");
    assert!(chunks.iter().any(|it| it["content"] == audio), "{chunks:?}");
}

#[test]
fn a_message_with_much_media_and_what_follows_are_replayed() {
    let place = Place::new();
    let (mut editor, session) = Editor::open(&place, &[]);
    let mut audio = STANDARD.decode(WAV).unwrap();
    audio.resize(400_000, 0);
    let audio = json!({
        "type": "audio", "mimeType": "audio/wav", "data": STANDARD.encode(audio),
    });
    let mut prompt = vec![json!({ "type": "text", "text": "listen" })];
    prompt.extend(vec![audio; 5]);
    let answer = editor.ask("session/prompt", json!({ "sessionId": session, "prompt": prompt }));
    assert_eq!(answer.unwrap()["stopReason"], "end_turn");
    editor.prompt(&session, "second");
    editor.load(&place, &session, &[]);
    let chunks = editor.of_kind("user_message_chunk");
    let kinds: Vec<&Value> = chunks.iter().map(|chunk| &chunk["content"]["type"]).collect();
    assert_eq!(kinds, ["text", "audio", "audio", "audio", "audio", "audio", "text"]);
}

#[test]
fn two_editors_with_the_same_session_use_their_own_servers() {
    let place = Place::new();
    let running = place.gateway();
    let start = || Editor::allowing(&place, &["--gateway", &running.url]);
    let (mut one, mut two) = (start(), start());
    let session = one.session(&place, &[place.stdio("same", &Script::new())]);
    let count = "/call mcp__same__count {}";
    for expected in ["1", "2"] {
        assert!(one.prompt(&session, count).1.ends_with(&format!("returned: {expected}")));
    }
    // The second editor has a server of the same name, and then none.
    two.load(&place, &session, &[place.stdio("same", &Script::new())]);
    assert!(two.prompt(&session, count).1.ends_with("returned: 1"), "{}", two.text());
    assert!(one.prompt(&session, count).1.ends_with("returned: 3"), "{}", one.text());
    two.load(&place, &session, &[]);
    let (_, text) = two.prompt(&session, count);
    assert!(!text.contains("returned"), "{text}");
    assert_eq!((one.close(), two.close()), (0, 0));
    drop(running);
    place.assert_nothing_left();
}

#[test]
fn a_session_is_loaded_again_after_the_gateway_was_restarted() {
    let place = Place::new();
    let running = place.gateway();
    let (mut editor, session) = Editor::open(&place, &[]);
    assert_eq!(editor.prompt(&session, "hello").0, "end_turn");
    let port = running.url.rsplit_once(':').unwrap().1.to_owned();
    drop(running);
    let command = place.command(&["gateway", "run", "--port", &port]);
    let _running = RunningGateway::start(command, place.folder.path());
    editor.load(&place, &session, &[]);
    assert_eq!(editor.of_kind("user_message_chunk").len(), 1);
    assert_eq!(editor.prompt(&session, "hello again").0, "end_turn");
    assert_eq!(editor.close(), 0);
}

#[test]
fn a_plan_is_shown_as_one_and_replayed_and_the_session_gets_a_title() {
    let place = Place::new();
    let mut editor = Editor::start(&place, &[], &json!({}));
    let session = editor.session(&place, &[]);
    let steps = json!([
        { "step": "Read the file", "status": "completed" },
        { "step": "Correct it", "status": "in_progress" },
        { "step": "Test it", "status": "pending" },
    ]);
    editor.prompt(&session, &format!("/call update_plan {}", json!({ "plan": steps })));
    let entry = |nth: usize| {
        let (content, status) = (&steps[nth]["step"], &steps[nth]["status"]);
        json!({ "content": content, "priority": "medium", "status": status })
    };
    let expected = json!([entry(0), entry(1), entry(2)]);
    assert_eq!(editor.of_kind("plan")[0]["entries"], expected);
    assert!(editor.of_kind("tool_call").is_empty(), "{:?}", editor.updates);
    assert!(editor.of_kind("session_info_update")[0]["title"].is_string());
    let two = json!([steps[1], steps[1]]);
    editor.prompt(&session, &format!("/call update_plan {}", json!({ "plan": two })));
    assert!(editor.of_kind("plan").is_empty(), "only one step is the current one");
    assert!(editor.of_kind("session_info_update").is_empty(), "it is known");
    editor.load(&place, &session, &[]);
    let replayed = editor.of_kind("plan");
    assert_eq!((replayed.len(), &replayed[0]["entries"]), (1, &expected));
}
