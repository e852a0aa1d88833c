//! Every way in which a session can end leaves no process.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use openclaw_testkit::{Script, processes};
use serde_json::json;

use crate::common::{LONG, signal};
use crate::editor::{Editor, Place};

fn servers_of(place: &Place) -> usize {
    processes::mentioning(&format!("{}/", place.folder.path().display())).len()
}

fn wait_for_servers(place: &Place, count: usize) {
    let have_started = || servers_of(place) >= count;
    assert!(processes::wait_until(LONG, have_started), "the servers did not start");
}

#[test]
fn closing_a_session_stops_its_servers_only() {
    let place = Place::new();
    let mut editor = Editor::start(&place, &[], &json!({}));
    let one = editor.session(&place, &[place.stdio("one", &Script::new())]);
    let two = editor.session(&place, &[place.stdio("two", &Script::new())]);
    wait_for_servers(&place, 2);
    editor.ask("session/close", json!({ "sessionId": one })).unwrap();
    let file = format!("{}/one.script.json", place.folder.path().display());
    let left = processes::wait_until_none(LONG, || processes::mentioning(&file));
    assert_eq!(left, Vec::<u32>::new());
    let (_, text) = editor.prompt(&two, "/call mcp__two__echo {\"text\":\"still here\"}");
    assert!(text.ends_with("still here"), "{text}");
    assert_eq!(editor.close(), 0);
    place.assert_nothing_left();
}

#[test]
fn closing_or_loading_a_session_during_a_turn_ends_the_turn() {
    let place = Place::new();
    let mut editor = Editor::start(&place, &[], &json!({}));
    let slow = place.stdio("slow", &Script::new().call_delay_ms(60_000));
    for method in ["session/close", "session/load", "session/delete"] {
        let session = editor.session(&place, std::slice::from_ref(&slow));
        editor.updates.clear();
        let id = editor.send_prompt(&session, "/call mcp__slow__echo {\"text\":\"x\"}");
        editor.wait_for("tool_call");
        let params = json!({ "sessionId": session, "cwd": place.project(), "mcpServers": [] });
        editor.ask(method, params).unwrap();
        assert_eq!(editor.answer(id).unwrap()["stopReason"], "cancelled", "{method}");
        let file = format!("{}/slow.script.json", place.folder.path().display());
        let left = processes::wait_until_none(LONG, || processes::mentioning(&file));
        assert_eq!(left, Vec::<u32>::new(), "{method}");
        if method == "session/load" {
            assert_eq!(editor.prompt(&session, "hello").0, "end_turn");
        }
    }
    assert_eq!(editor.close(), 0);
    place.assert_nothing_left();
}

#[test]
fn a_client_that_closes_its_end_during_a_call_leaves_nothing() {
    let place = Place::new();
    let mut editor = Editor::start(&place, &[], &json!({}));
    let slow = Script::new().call_delay_ms(60_000).grandchild();
    let session = editor.session(&place, &[place.stdio("slow", &slow)]);
    editor.send_prompt(&session, "/call mcp__slow__echo {\"text\":\"x\"}");
    editor.wait_for("tool_call");
    assert_eq!(editor.close(), 0);
    place.assert_nothing_left();
}

#[test]
fn signals_leave_nothing() {
    for sent in [Signal::SIGTERM, Signal::SIGKILL] {
        let place = Place::new();
        let mut editor = Editor::start(&place, &[], &json!({}));
        let stubborn = Script::new().ignore_stdin_close().ignore_sigterm();
        let servers = [place.stdio("a", &Script::new()), place.stdio("b", &stubborn)];
        let session = editor.session(&place, &servers);
        editor.prompt(&session, "hello");
        signal(editor.child.id(), sent);
        editor.child.wait().unwrap();
        place.assert_nothing_left();
    }
}

/// A client that opens sessions with a server each, says so, and does nothing more.
const CLIENT: &str = r#"
import json, subprocess, sys
program, cwd, server, sessions = sys.argv[1:]
agent = subprocess.Popen([program, "acp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def ask(id, method, params):
    frame = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    agent.stdin.write(json.dumps(frame) + "\n")
    agent.stdin.flush()
    while json.loads(agent.stdout.readline()).get("id") != id:
        pass
ask(0, "initialize", {"protocolVersion": 1})
for id in range(1, int(sessions) + 1):
    ask(id, "session/new", {"cwd": cwd, "mcpServers": [json.loads(server)]})
print("open", flush=True)
agent.wait()
"#;

#[test]
fn fifty_sessions_dropped_by_killing_the_client_leave_nothing() {
    let place = Place::new();
    let server = place.stdio("one", &Script::new()).to_string();
    for nth in 0..5 {
        let mut command = Command::new("python3");
        let program = env!("CARGO_BIN_EXE_openclaw");
        command.args(["-c", CLIENT, program, &place.project(), &server, "10"]);
        place.prepare(&mut command).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut client = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(client.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "open\n");
        if nth % 2 == 0 {
            // Otherwise it is killed while the servers are starting.
            wait_for_servers(&place, 10);
        }
        client.kill().unwrap();
        client.wait().unwrap();
        place.assert_nothing_left();
    }
}
