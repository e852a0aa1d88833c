//! Clients that do not read what they get.

use std::io::Write as _;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use openclaw_testkit::{ModelServer, Piece, Script, Tool, processes};
use serde_json::{Value, json};

use crate::common::{self, LONG};
use crate::editor::{Editor, PNG, Place};

/// Resident memory of a process, in MB.
fn memory(child: &Child) -> u64 {
    common::memory(child.id(), "VmHWM") / 1024
}

/// An agent whose output is not read.
struct Unread {
    child: Child,
    input: Option<ChildStdin>,
}

impl Unread {
    fn start(place: &Place) -> Self {
        let mut command = place.command(&["acp"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        Self { child, input }
    }
}

fn frame(id: u64, method: &str, params: &Value) -> String {
    format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
}

#[test]
fn a_client_that_sends_and_never_reads_is_held_back() {
    let place = Place::new();
    let mut agent = Unread::start(&place);
    let mut input = agent.input.take().unwrap();
    let hello = frame(0, "initialize", &json!({ "protocolVersion": 1 }));
    input.write_all(hello.as_bytes()).unwrap();
    let sent = Arc::new(AtomicUsize::new(0));
    let (tell, told) = mpsc::channel();
    let flood = std::thread::spawn({
        let sent = Arc::clone(&sent);
        move || {
            // Each line is answered: with an error, or with a list.
            let lines = format!("garbage\n{}", frame(1, "session/list", &json!({})));
            // Far more than may be unanswered, and than fits into the pipes.
            for _ in 0..200_000 {
                if input.write_all(lines.as_bytes()).is_err() {
                    break;
                }
                sent.fetch_add(2, Ordering::Relaxed);
            }
            let _ = tell.send(());
        }
    });
    // Held back: it makes no progress any more.
    let mut before = usize::MAX;
    while before != sent.load(Ordering::Relaxed) {
        before = sent.load(Ordering::Relaxed);
        let ended = told.recv_timeout(Duration::from_secs(3));
        assert!(ended.is_err(), "all {before} lines were read");
    }
    assert!(before < 100_000, "{before} lines were read");
    assert!(memory(&agent.child) < 300, "{} MB", memory(&agent.child));
    // The client goes: it is killed, which closes both ends.
    drop(agent.child.stdout.take());
    agent.child.wait().unwrap();
    flood.join().unwrap();
    place.assert_nothing_left();
}

#[test]
fn a_client_that_closes_its_end_without_reading_the_rest_does_not_keep_the_agent() {
    let place = Place::new();
    let mut agent = Unread::start(&place);
    let mut input = agent.input.take().unwrap();
    let hello = frame(0, "initialize", &json!({ "protocolVersion": 1 }));
    input.write_all(hello.as_bytes()).unwrap();
    // Their errors are more than a pipe holds.
    input.write_all("garbage\n".repeat(1_000).as_bytes()).unwrap();
    drop(input);
    let has_exited = || agent.child.try_wait().unwrap().is_some();
    assert!(processes::wait_until(LONG, has_exited), "it does not exit");
}

#[test]
fn long_output_that_is_not_read_costs_little_memory_and_the_client_gets_the_rest_later() {
    const PIECES: usize = 350;
    let long = "x".repeat(10_000);
    let server = ModelServer::start(move |_| {
        // Thoughts and text in turn, so that they are not joined: 3.5 MB in total.
        let piece = |nth: usize| match nth % 2 {
            0 => Piece::thought(long.clone()),
            _ => Piece::text(long.clone()),
        };
        (0..PIECES).map(piece).chain([Piece::text("the end")]).collect()
    });
    let place = Place::with_models(&server);
    let (mut editor, session) = Editor::open(&place, &[place.stdio("one", &Script::new())]);
    let before = memory(&editor.child);
    editor.pause(true);
    let id = editor.send_prompt(&session, "talk");
    assert!(processes::wait_until(LONG, || server.answered() > 0), "the turn hangs");
    let more = memory(&editor.child) - before;
    assert!(more < 100, "{more} MB more");
    editor.pause(false);
    assert_eq!(editor.answer(id).unwrap()["stopReason"], "end_turn");
    let text = editor.text();
    assert!(text.contains("Some output is missing here"), "{} bytes", text.len());
    let (stop, text) = editor.prompt(&session, "/mcp servers");
    assert!(stop == "end_turn" && text.contains("one: ready"), "{text}");
    assert_eq!(editor.close(), 0);
    place.assert_nothing_left();
}

#[test]
fn output_that_comes_in_a_burst_is_complete_in_the_end() {
    let server = ModelServer::start(|_| {
        let piece = |nth: usize| match nth % 2 {
            0 => Piece::thought(format!("thought {nth} ")),
            _ => Piece::text(format!("word {nth} ")),
        };
        (0..2_000).map(piece).collect()
    });
    let place = Place::with_models(&server);
    let (mut editor, session) = Editor::open(&place, &[]);
    let all: String =
        (0..2_000).filter(|nth| nth % 2 == 1).map(|nth| format!("word {nth} ")).collect();
    let (_, text) = editor.prompt(&session, "talk");
    assert!(text.ends_with(&all), "{text}");
}

#[test]
fn the_result_of_an_editor_s_server_is_shown_in_full_with_its_pictures() {
    let place = Place::new();
    let long = format!("{}\u{1b}[2Jend", "x".repeat(9_000));
    let result = json!({ "content": [
        { "type": "text", "text": long },
        { "type": "image", "data": PNG, "mimeType": "image/png" },
    ] });
    let tool =
        Tool::new("show").with("annotations", json!({ "readOnlyHint": true })).result(&result);
    let (mut editor, session) =
        Editor::open(&place, &[place.stdio("box", &Script::new().tools([tool]))]);
    editor.prompt(&session, "/call mcp__box__show {}");
    let shown = editor.of_kind("tool_call_update").pop().unwrap()["content"].clone();
    let text = shown[0]["content"]["text"].as_str().unwrap();
    assert_eq!(text, format!("{}\\u{{1b}}[2Jend", "x".repeat(9_000)));
    let mut shown = shown.as_array().unwrap().iter();
    assert!(shown.any(|it| it["content"]["data"] == PNG), "no picture");
}

#[test]
fn a_result_is_shown_to_those_it_is_for_also_if_it_is_an_error() {
    let place = Place::new();
    let part = |text: &str, audience: &str| json!({ "type": "text", "text": text, "annotations": { "audience": [audience] } });
    let image = json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
    let tool = |name: &str, is_error: bool| {
        let content = json!([part("for you", "user"), part("for the model", "assistant"), image]);
        let result = json!({ "content": content, "isError": is_error });
        Tool::new(name).with("annotations", json!({ "readOnlyHint": true })).result(&result)
    };
    let script = Script::new().tools([tool("good", false), tool("bad", true)]);
    let mut editor = Editor::start(&place, &[], &json!({}));
    let session = editor.session(&place, &[place.stdio("box", &script)]);
    for (name, status) in [("good", "completed"), ("bad", "failed")] {
        let (_, told) = editor.prompt(&session, &format!("/call mcp__box__{name} {{}}"));
        let update = editor.of_kind("tool_call_update").pop().unwrap();
        assert_eq!(update["status"], status);
        let shown = update["content"].to_string();
        assert!(shown.contains("for you") && !shown.contains("for the model"), "{shown}");
        assert!(shown.contains(PNG), "no picture");
        assert!(told.contains("for the model") && !told.contains("for you"), "{told}");
    }
}
