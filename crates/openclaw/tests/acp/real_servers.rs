//! A session with MCP servers of other authors.

use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use openclaw_testkit::{Peer, Peers, processes};
use serde_json::{Value, json};

use crate::common::LONG;
use crate::editor::{Editor, Place};

fn entry(name: &str, peer: &Peer) -> Value {
    json!({ "name": name, "command": peer.program, "args": peer.args, "env": [] })
}

#[test]
fn of_three_real_servers_one_crashes_in_a_call_and_one_never_starts() {
    let place = Place::new();
    let peers = Peers::find();
    // It exits, because its folder does not exist.
    let missing = peers.filesystem(&place.path("missing"));
    let mut crashing = entry("crashing", &peers.fastmcp());
    // A mark in its command line, by which it is found.
    let mark = place.path("mark").to_str().unwrap().to_owned();
    crashing["args"].as_array_mut().unwrap().push(json!(mark));
    let servers = [entry("good", &peers.everything()), crashing, entry("missing", &missing)];
    let mut editor = Editor::allowing(&place, &[]);
    let session = editor.session(&place, &servers);
    let (_, text) = editor.prompt(&session, "/call mcp__good__echo {\"message\":\"one\"}");
    assert!(text.contains("MCP server `missing` is not available: exited"), "{text}");
    assert!(text.contains("Echo: one"), "{text}");

    editor.updates.clear();
    let slow = json!({ "steps": 2, "milliseconds": 60_000 });
    let id = editor.send_prompt(&session, &format!("/call mcp__crashing__slow {slow}"));
    editor.wait_for("tool_call_update");
    // In the middle of the call.
    for pid in processes::mentioning(&mark) {
        let _ = kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGKILL);
    }
    assert_eq!(editor.answer(id).unwrap()["stopReason"], "end_turn");
    let last = editor.of_kind("tool_call_update").pop().unwrap().clone();
    assert_eq!(last["status"], "failed", "{last}");
    // The others go on, and it is restarted.
    let (_, text) = editor.prompt(&session, "/call mcp__good__echo {\"message\":\"two\"}");
    assert!(text.ends_with("Echo: two"), "{text}");
    let again = "/call mcp__crashing__echo {\"text\":\"again\"}";
    let until = Instant::now() + LONG;
    loop {
        let (_, text) = editor.prompt(&session, again);
        if text.ends_with("returned: again") {
            break;
        }
        assert!(text.contains("restarting") && Instant::now() < until, "{text}");
    }
    assert_eq!(editor.close(), 0);
    place.assert_nothing_left();
}
