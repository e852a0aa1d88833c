//! No process of a server is left, however the program exits (L5).

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Instant;

use nix::sys::signal::Signal;
use openclaw_testkit::{Script, processes};
use serde_json::json;

use crate::common::signal;
use crate::support::{LONG, Place};

fn record(place: &Path) -> Script {
    Script::new().record(place.join("record"))
}

/// Starts a command whose output is read at its end.
fn spawn(place: &Place, args: &[&str]) -> Child {
    place.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Starts a call that hangs, and waits until the server has received it.
fn hanging(place: &Place) -> Child {
    let script = record(place.folder.path()).stderr_per_call();
    place.configure(&[("test", &script)]);
    let args = ["mcp", "call", "test", "sleep", "ms=600000", "--timeout", "600000"];
    let child = spawn(place, &args);
    // The server records its requests: once the call is among them, it hangs.
    let record = place.path("record");
    let is_called = || fs::read_to_string(&record).is_ok_and(|text| text.contains("tools/call"));
    assert!(processes::wait_until(LONG, is_called), "the tool was never called");
    child
}

#[test]
fn an_interrupted_call_leaves_no_server_behind() {
    for sent in [Signal::SIGINT, Signal::SIGTERM] {
        let place = Place::new(&[]);
        let child = hanging(&place);
        signal(child.id(), sent);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        place.assert_nothing_left();
    }
}

#[test]
fn a_killed_program_leaves_no_server_behind() {
    let place = Place::new(&[]);
    let mut child = hanging(&place);
    signal(child.id(), Signal::SIGKILL);
    child.wait().unwrap();
    place.assert_nothing_left();
}

#[test]
fn a_program_killed_while_it_starts_a_server_leaves_none_behind() {
    let place = Place::new(&[]);
    let tag = place.folder.path().to_str().unwrap().to_owned();
    // It ignores that its stdin is closed.
    let server = json!({ "command": "sh", "args": ["-c", "while :; do sleep 1000; done", tag] });
    place.change(|config| config["mcp"]["servers"]["test"] = server);
    for args in [&["mcp", "call", "test", "count"][..], &["gateway", "run", "--port", "0"]] {
        for _ in 0..10 {
            let mut child =
                place.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let deadline = Instant::now() + LONG;
            while processes::mentioning(&tag).is_empty() {
                assert!(Instant::now() < deadline, "{args:?}: the server never started");
            }
            signal(child.id(), Signal::SIGKILL);
            child.wait().unwrap();
            place.assert_nothing_left();
        }
    }
}

#[test]
fn a_killed_program_leaves_no_command_behind() {
    let place = Place::configured(&json!({
        "agents": { "defaults": { "approval": { "fallback": "allow" }, "model": "offline" } },
    }));
    let (began, stray) = (place.path("began"), place.path("stray"));
    // One process stays in the group of the command, one leaves it.
    let command = format!(
        "setsid sh -c 'echo $$ > \"{}\"; exec sleep 600' & echo $$ > '{}'; sleep 600; true",
        stray.display(),
        began.display()
    );
    let call = format!("/call exec {}", json!({ "command": command }));
    let mut child = place
        .command(&["agent", "--message", &call])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = |file| fs::read_to_string(file).ok().and_then(|it| it.trim().parse::<u32>().ok());
    let (group, stray) = (|| pid(&began), || pid(&stray));
    let runs = || group().is_some() && stray().is_some();
    assert!(processes::wait_until(LONG, runs), "the command never ran");
    let (group, stray) = (group().unwrap(), stray().unwrap());
    assert!(!processes::in_group(group).is_empty() && processes::is_alive(stray));
    signal(child.id(), Signal::SIGKILL);
    child.wait().unwrap();
    let left = processes::wait_until_none(LONG, || processes::in_group(group));
    assert_eq!(left, Vec::<u32>::new());
    assert!(processes::wait_until(LONG, || !processes::is_alive(stray)));
}

#[test]
fn a_server_that_hangs_at_the_start_can_be_interrupted() {
    let place = Place::new(&[]);
    let script = record(place.folder.path()).start_delay_ms(600_000).stderr_line("warming up");
    place.configure(&[("test", &script)]);
    let mut child = spawn(&place, &["mcp", "servers", "--log-level", "openclaw_mcp=trace"]);
    // The log has the line as soon as the server runs.
    let log = place.path("logs/mcp-test.log");
    let runs = || fs::read_to_string(&log).is_ok_and(|text| text.contains("warming up"));
    assert!(processes::wait_until(LONG, runs), "the server never started");
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let drain = std::thread::spawn(move || stderr.lines().count());
    signal(child.id(), Signal::SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drain.join().unwrap();
    place.assert_nothing_left();
}
