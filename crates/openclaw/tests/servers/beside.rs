//! Beside a gateway that runs, nothing is started here.

use std::process::{Child, Stdio};

use openclaw_testkit::{Script, Tool, processes};

use crate::support::{LONG, Place};

/// A gateway that is killed when the test is over; its servers go with it.
pub(crate) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn gateway(place: &Place) -> Running {
    let mut command = place.command(&["gateway", "run", "--port", "0"]);
    let running = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let is_missing = || if place.path("gateway.json").exists() { Vec::new() } else { vec![0] };
    assert!(processes::wait_until_none(LONG, is_missing).is_empty(), "it never listened");
    running
}

#[test]
fn calls_reach_the_servers_of_the_gateway_unless_somebody_wants_others() {
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
    assert_eq!(stdout.trim(), "1", "a server of its own");
    let (code, _, stderr) = place.said(&["mcp", "call", "a", "echo", "text=x", "y=1"]);
    let (alone, _, without) = place.said(&["mcp", "call", "--no-gateway", "a", "ecko", "text=x"]);
    assert_eq!((code, alone), (0, 2), "{stderr}{without}");
    let (_, _, there) = place.said(&["mcp", "call", "a", "ecko", "text=x"]);
    assert_eq!(there, without, "the same words");
    let (code, stdout, _) = place.said(&["mcp", "reload"]);
    assert_eq!((code, stdout.trim()), (0, "no server has changed"));
    drop(running);
    let (code, stdout, stderr) = place.said(&["mcp", "call", "a", "count"]);
    assert_eq!((code, stdout.trim()), (0, "1"), "a killed gateway is not believed: {stderr}");
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
    assert_eq!(place.said(&call).0, 0, "who calls a new tool approves it");
    assert_eq!(place.said(&["mcp", "refresh", "a"]).0, 0);
    let (code, _, stderr) = place.said(&call);
    assert_eq!(code, 4, "{stderr}");
    let (code, _, stderr) = place.said(&["mcp", "call", "--approve", "a", "count"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(place.said(&call).0, 0, "it is approved as it is now");
}

#[test]
fn a_configuration_that_is_gone_changes_nothing_and_that_is_told() {
    let place = Place::new(&[("a", &Script::new())]);
    let _running = gateway(&place);
    std::fs::remove_file(place.path("openclaw.json")).unwrap();
    let (code, _, stderr) = place.said(&["mcp", "reload"]);
    assert_eq!(code, 78, "{stderr}");
    assert!(stderr.contains("openclaw.json is gone") && !stderr.contains(": :"), "{stderr}");
    let (code, _, stderr) = place.said(&["mcp", "call", "a", "count"]);
    assert_eq!(code, 0, "{stderr}");
}
