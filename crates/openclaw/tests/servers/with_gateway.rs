//! With a running gateway, commands use its servers.

use std::process::Stdio;

use nix::sys::signal::Signal;
use openclaw_testkit::{Ask, Script, TestServer, Tool, processes};

use crate::common::gateway::RunningGateway;
use crate::common::signal;
use crate::support::{LONG, Place, at_a_terminal};
use crate::terminal::assert_progress_is_shown;

/// Starts a gateway with a log file.
pub(crate) fn gateway(place: &Place) -> RunningGateway {
    let mut command = place.command(&["gateway", "run", "--port", "0"]);
    let log = std::fs::File::create(place.path("gateway.log")).unwrap();
    let child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
    RunningGateway::of(child, place.folder.path())
}

#[test]
fn calls_use_the_servers_of_the_gateway_unless_no_gateway_is_set() {
    let place = Place::new(&[("a", &Script::new())]);
    let (code, _, stderr) = place.said(&["mcp", "reload"]);
    assert_eq!(code, 3, "{stderr}");
    assert!(stderr.contains("nothing to reload"), "{stderr}");
    let running = gateway(&place);
    for expected in ["1", "2", "3"] {
        let (code, stdout, stderr) = place.said(&["mcp", "call", "a", "count"]);
        assert_eq!((code, stdout.trim()), (0, expected), "{stderr}");
    }
    let (_, stdout, _) = place.said(&["mcp", "call", "--no-gateway", "a", "count"]);
    assert_eq!(stdout.trim(), "1", "its own server");
    let (code, _, stderr) = place.said(&["mcp", "call", "a", "echo", "text=x", "y=1"]);
    let (alone, _, without) = place.said(&["mcp", "call", "--no-gateway", "a", "ecko", "text=x"]);
    assert_eq!((code, alone), (0, 2), "{stderr}{without}");
    let (_, _, there) = place.said(&["mcp", "call", "a", "ecko", "text=x"]);
    let (note, without) = without.split_once('\n').unwrap();
    assert!(note.contains("not using the gateway (PID "), "{note}");
    assert!(note.ends_with("): `--no-gateway` is set"), "{note}");
    assert_eq!(there, without, "the same message");
    let (code, stdout, _) = place.said(&["mcp", "reload"]);
    assert_eq!((code, stdout.trim()), (0, "no changes to servers"));
    drop(running);
    let (code, stdout, stderr) = place.said(&["mcp", "call", "a", "count"]);
    assert_eq!((code, stdout.trim()), (0, "1"), "a killed gateway is ignored: {stderr}");
}

#[test]
fn a_running_gateway_knows_what_a_command_has_written_when_the_command_exits() {
    let place = Place::new(&[("a", &Script::new())]);
    let _running = gateway(&place);
    let (program, args) = TestServer::stdio_from(&place.path("new.script.json"), &Script::new());
    let add = ["mcp", "add", "--no-check", "new", "--", program.to_str().unwrap()];
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    place.ok(&[&add[..], &args].concat());
    place.ok(&["mcp", "call", "new", "count"]);
    assert_eq!(place.said(&["config", "set", "mcp.servers.new.enabled", "false"]).0, 0);
    let (code, _, stderr) = place.said(&["mcp", "call", "new", "count"]);
    assert_eq!(code, 3, "{stderr}");
    assert_eq!(place.said(&["mcp", "remove", "new"]).0, 0);
    let (code, _, stderr) = place.said(&["mcp", "call", "new", "count"]);
    assert_eq!(code, 2, "{stderr}");
}

#[test]
fn a_changed_tool_of_a_gateway_is_called_only_when_it_is_approved() {
    let script = Script::new()
        .tools([Tool::new("count")])
        .changed_tools([Tool::new("count").description("Something else.")])
        .list_changed_after_calls(1);
    let place = Place::new(&[("a", &script)]);
    let _running = gateway(&place);
    let call = ["mcp", "call", "a", "count"];
    assert_eq!(place.said(&call).0, 0, "calling a new tool approves it");
    assert_eq!(place.said(&["mcp", "refresh", "a"]).0, 0);
    let (code, _, stderr) = place.said(&call);
    assert_eq!(code, 4, "{stderr}");
    place.ok(&["mcp", "call", "--approve", "a", "count"]);
    assert_eq!(place.said(&call).0, 0, "the changed tool is approved");
}

#[test]
fn a_deleted_configuration_is_reported_and_changes_nothing() {
    let place = Place::new(&[("a", &Script::new())]);
    let _running = gateway(&place);
    std::fs::remove_file(place.path("openclaw.json")).unwrap();
    let (code, _, stderr) = place.said(&["mcp", "reload"]);
    assert_eq!(code, 78, "{stderr}");
    assert!(stderr.contains("openclaw.json was deleted") && !stderr.contains(": :"), "{stderr}");
    place.ok(&["mcp", "call", "a", "count"]);
}

#[test]
fn gateway_status_marks_a_server_that_has_failed() {
    let place = Place::new(&[("a", &Script::new())]);
    let _running = gateway(&place);
    let missing = ["mcp", "add", "--no-check", "missing", "/nonexistent/program"];
    assert_eq!(place.said(&missing).0, 0);
    let is_marked = || place.said(&["gateway", "status"]).1.contains("  ✗ missing  program `/non");
    assert!(processes::wait_until(LONG, is_marked), "{}", place.said(&["gateway", "status"]).1);
}

#[test]
fn gateway_status_reports_a_broken_configuration_file_until_it_is_repaired() {
    let place = Place::new(&[("a", &Script::new())]);
    let _running = gateway(&place);
    let file = place.path("openclaw.json");
    let valid = std::fs::read_to_string(&file).unwrap();
    let is_reported = || {
        let (_, stdout, _) = place.said(&["gateway", "status"]);
        stdout.contains("has errors; the last valid version is used")
    };
    std::fs::write(&file, "{ nonsense").unwrap();
    assert!(processes::wait_until(LONG, is_reported), "not reported");
    let (code, shown, _) = place.said(&["status"]);
    assert_eq!(code, 1, "{shown}");
    std::fs::write(&file, valid).unwrap();
    assert!(processes::wait_until(LONG, || !is_reported()), "still reported");
    let log = std::fs::read_to_string(place.path("gateway.log")).unwrap();
    let (rejected, repaired) =
        (log.find("configuration rejected"), log.find("the configuration is valid again"));
    assert!(rejected.is_some() && rejected < repaired, "{log}");
}

#[test]
fn through_a_gateway_an_elicitation_is_prompted_on_the_terminal() {
    let place = Place::new(&[("test", &Script::new().ask(Ask::Elicitation))]);
    let _running = gateway(&place);
    let call = ["mcp", "call", "test", "echo", "text=hi"];
    let (exit, shown) = at_a_terminal(&place, "name: ", "Ada", &call);
    assert_eq!(exit, 0, "{shown}");
    assert!(shown.contains("asks: What is your name?"), "{shown}");
    assert!(shown.contains(r#""action":"accept","content":{"name":"Ada"}"#), "{shown}");
    let (_, stdout, stderr) = place.said(&call);
    let said = format!("{stdout}{stderr}");
    assert!(!said.contains("What is your name?"), "no prompt without a terminal: {said}");
}

#[test]
fn through_a_gateway_the_progress_of_a_call_is_shown_on_the_terminal() {
    let place = Place::new(&[("test", &Script::new())]);
    let _running = gateway(&place);
    assert_progress_is_shown(&place);
}

#[test]
fn an_interrupted_call_is_cancelled_at_the_server_of_the_gateway() {
    let place = Place::new(&[]);
    let record = place.path("record");
    place.configure(&[("test", &Script::new().record(&record))]);
    let _running = gateway(&place);
    let mut command = place.command(&["mcp", "call", "test", "sleep", "ms=600000"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let received = |word| {
        let has_it = || std::fs::read_to_string(&record).is_ok_and(|text| text.contains(word));
        processes::wait_until(LONG, has_it)
    };
    assert!(received("tools/call"), "never called");
    signal(child.id(), Signal::SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(received("notifications/cancelled"), "never cancelled");
}

#[test]
fn with_another_configuration_every_command_runs_standalone_with_a_note() {
    let place = Place::new(&[("a", &Script::new())]);
    let _running = gateway(&place);
    let other = place.path("other.json");
    std::fs::copy(place.path("openclaw.json"), &other).unwrap();
    let other = other.to_str().unwrap();
    for verb in [
        &["mcp", "call", "a", "count"][..],
        &["mcp", "servers"],
        &["agent", "--message", "hello"],
        &["sessions", "list"],
    ] {
        let args = [&["--config", other], verb].concat();
        let (code, stdout, stderr) = place.said(&args);
        assert_eq!(code, 0, "{verb:?}: {stdout}{stderr}");
        assert!(stderr.contains("): it uses the configuration "), "{verb:?}: {stderr}");
        let (_, _, stderr) = place.said(verb);
        assert!(!stderr.contains("not using the gateway"), "{verb:?}: {stderr}");
    }
    let (_, stdout, _) = place.said(&["mcp", "call", "a", "count"]);
    assert_eq!(stdout.trim(), "2", "the server of the gateway: {stdout}");
}
