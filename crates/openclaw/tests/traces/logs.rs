//! The lines of the log name the spans that they belong to.

use serde_json::{Value, json};

use crate::collector::{Collector, only};
use crate::editor::Place;

/// A place without a configuration: the built-in one has a demo server.
pub(crate) fn demo() -> Place {
    let place = Place::new();
    std::fs::remove_file(place.path("openclaw.json")).unwrap();
    place
}

#[test]
fn the_log_lines_of_a_call_name_its_span() {
    let place = demo();
    let collector = Collector::start();
    let mut command = place.command(&["--log-level", "debug", "--log-format", "json", "agent"]);
    command.args(["--message", "add 2 and 3"]).envs(collector.variables());
    let output = command.output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{log}");
    // The message, the turn, two requests to the offline model, and a call.
    let spans = collector.spans(5);
    let message = only(&spans, "openclaw agent");
    let turn = only(&spans, "invoke_agent main");
    let call = only(&spans, "tools/call add");
    assert_eq!((&turn.parent, &call.parent), (&message.id, &turn.id));
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let lines: Vec<Value> = lines.filter(|line| line["message"] == "call").collect();
    let [line] = &lines[..] else { panic!("not one line: {log}") };
    assert_eq!(
        (&line["span"]["trace_id"], &line["span"]["span_id"]),
        (&json!(call.trace), &json!(call.id))
    );
}

#[test]
fn without_a_collector_lines_and_servers_get_no_trace() {
    let place = demo();
    let mut command = place.command(&["--log-level", "debug", "--log-format", "json", "agent"]);
    let output = command.args(["--message", "add 2 and 3"]).output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{log}");
    assert!(!log.contains("trace_id"), "{log}");
    let audit = std::fs::read_to_string(place.path("logs/audit.jsonl")).unwrap();
    assert!(!audit.contains("traceId"), "{audit}");
}
