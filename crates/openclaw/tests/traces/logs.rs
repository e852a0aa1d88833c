//! The lines of the log name the spans that they belong to.

use serde_json::{Value, json};

use crate::collector::{Collector, hex, only};
use crate::editor::Place;
use crate::trees::Traced;

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
    assert_eq!(line["span"]["trace_id"], call.trace);
    assert_eq!(line["span"]["span_id"], call.id);
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

#[test]
fn a_collector_gets_the_lines_with_their_spans_and_without_secrets() {
    let traced = Traced::new();
    let mut command = traced.place.command(&["--log-level", "debug", "agent"]);
    command.args(["--message", "do it"]).envs(traced.variables());
    command.envs([("OTEL_LOGS_EXPORTER", "otlp"), ("OTEL_RESOURCE_ATTRIBUTES", "team=red")]);
    let output = command.output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{log}");
    let spans = traced.collector.spans(6);
    let call = only(&spans, "tools/call echo");
    let requests = traced.collector.requests();
    let list = |of: &Value, name: &str| of[name].as_array().cloned().unwrap_or_default();
    let resources: Vec<_> =
        requests.iter().flat_map(|it| list(&it["request"], "resourceLogs")).collect();
    let team = json!({ "key": "team", "value": { "stringValue": "red" } });
    assert!(resources.iter().all(|it| list(&it["resource"], "attributes").contains(&team)));
    let scopes: Vec<_> = resources.iter().flat_map(|it| list(it, "scopeLogs")).collect();
    let lines = scopes.iter().flat_map(|scope| {
        let lines = list(scope, "logRecords");
        lines.into_iter().map(|line| (scope["scope"]["name"].clone(), line))
    });
    let has_name = |line: &Value| {
        list(line, "attributes").iter().any(|it| it["value"]["stringValue"] == "mcp_box_echo")
    };
    let lines: Vec<_> =
        lines.filter(|(_, line)| line["body"]["stringValue"] == "call" && has_name(line)).collect();
    let [(scope, line)] = &lines[..] else { panic!("not one line: {resources:?}") };
    assert_eq!(*scope, "openclaw_tools::pipeline::record");
    assert_eq!(line["severityText"], "DEBUG");
    assert_eq!(line["severityNumber"], "SEVERITY_NUMBER_DEBUG");
    let id = |name: &str| hex(line[name].as_str().unwrap());
    assert_eq!((id("traceId"), id("spanId")), (call.trace.clone(), call.id.clone()));
    // The same lines are on stderr.
    assert!(log.contains("mcp_box_echo"), "{log}");
    let sent: Vec<_> = requests.iter().map(|it| it["request"].to_string()).collect();
    assert!(!sent.iter().any(|it| it.contains("canary")), "{sent:?}");
}
