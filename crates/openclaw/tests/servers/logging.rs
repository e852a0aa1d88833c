//! Logs must not disturb the program: neither a log that is watched, nor one that is not read.

use std::fs;
use std::io::{PipeReader, PipeWriter, Write as _, pipe};
use std::process::{ExitStatus, Stdio};

use nix::sys::signal::Signal;
use openclaw_testkit::{Script, processes};
use serde_json::json;

use crate::common::gateway::RunningGateway;
use crate::common::signal;
use crate::support::{LONG, Place};

/// Starts a gateway with this log level.
fn start(
    place: &Place,
    level: &str,
    stdout: impl Into<Stdio>,
    stderr: impl Into<Stdio>,
) -> RunningGateway {
    let mut command = place.command(&["gateway", "run", "--port", "0"]);
    command.env("OPENCLAW_LOG", level).stdout(stdout).stderr(stderr);
    RunningGateway::of(command.spawn().unwrap(), place.folder.path())
}

fn wait_for(what: &str, is_there: impl Fn() -> bool) {
    assert!(processes::wait_until(LONG, is_there), "{what}");
}

/// Saves a configuration with one more server, and waits until the gateway has applied it.
fn reload(place: &Place) {
    place.configure(&[("a", &Script::new()), ("b", &Script::new())]);
    wait_for("the gateway never reloaded", || {
        let (code, _, _) = place.said(&["mcp", "call", "b", "count"]);
        code == 0
    });
}

/// Sends SIGTERM, and returns the status.
fn end(gateway: &mut RunningGateway) -> ExitStatus {
    let pid = gateway.child.id();
    signal(pid, Signal::SIGTERM);
    wait_for("SIGTERM had no effect", || !processes::is_alive(pid));
    gateway.child.wait().unwrap()
}

/// A pipe that is full and never read: a write to it blocks.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = pipe().unwrap();
    let size = nix::fcntl::fcntl(&writer, nix::fcntl::FcntlArg::F_GETPIPE_SZ).unwrap();
    writer.write_all(&vec![b'x'; size.try_into().unwrap()]).unwrap();
    (reader, writer)
}

#[test]
fn a_log_in_the_watched_folder_does_not_feed_itself() {
    let place = Place::new(&[("a", &Script::new())]);
    let log = place.path("gateway.log");
    let mut gateway = start(&place, "trace", Stdio::null(), fs::File::create(&log).unwrap());
    reload(&place);
    assert!(end(&mut gateway).success());
    let text = fs::read_to_string(&log).unwrap();
    assert!(text.contains("configuration reloaded"), "{text}");
    assert!(!text.contains("notify::"), "the watcher logs: {} bytes", text.len());
}

#[test]
fn a_log_that_is_not_read_does_not_stop_the_gateway() {
    let place = Place::new(&[("a", &Script::new())]);
    let (_reader, stderr) = full_pipe();
    let mut gateway = start(&place, "trace", Stdio::null(), stderr);
    reload(&place);
    assert!(end(&mut gateway).success());
}

#[test]
fn a_signal_ends_a_program_that_hangs() {
    let place = Place::configured(&json!({}));
    // It hangs while it writes its address to stdout, before it can handle a signal.
    let (_reader, stdout) = full_pipe();
    let mut gateway = start(&place, "trace", stdout, Stdio::null());
    assert_eq!(end(&mut gateway).code(), Some(143));
}

#[test]
fn a_command_does_not_log_what_its_servers_write() {
    let place = Place::new(&[("a", &Script::new().stderr_line("ERROR: broken"))]);
    let (code, _, stderr) = place.said(&["mcp", "call", "a", "count"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let (_, stdout, _) = place.said(&["mcp", "logs", "a"]);
    assert!(stdout.contains("ERROR: broken"), "{stdout}");
}

#[test]
fn a_line_of_a_server_has_the_level_that_it_names() {
    let script = Script::new().stderr_line("ready on stdio").stderr_line("WARNING: deprecated");
    let place = Place::new(&[("a", &script.stderr_line("ERROR: broken"))]);
    let log = place.path("gateway.log");
    let mut gateway = start(&place, "info", Stdio::null(), fs::File::create(&log).unwrap());
    let level = |text: &str| {
        let log = fs::read_to_string(&log).unwrap();
        let line = log.lines().find(|line| line.contains(text))?.to_owned();
        ["ERROR", "WARN", "INFO"].into_iter().find(|level| line.contains(&format!(" {level} ")))
    };
    for (text, expected) in [("ready on", "INFO"), ("deprecated", "WARN"), ("broken", "ERROR")] {
        wait_for(text, || level(text).is_some());
        assert_eq!(level(text), Some(expected), "{text}");
    }
    end(&mut gateway);
}
