//! The context of a client of the hub reaches its server.

use openclaw_testkit::{Recording, Script, StdioClient, TestServer};
use serde_json::{Value, json};

use crate::collector::{Collector, only};
use crate::editor::Place;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// Calls a tool through the hub, and returns the `_meta` that its server has received.
fn received(place: &Place, variables: &[(&str, &str)], parent: &str) -> Value {
    let recording = Recording::at(place.path("box.jsonl"));
    let script = Script::new().record(recording.path());
    let (program, args) = TestServer::stdio_from(&place.path("box.script.json"), &script);
    let entry = json!({ "command": program, "args": args, "approval": "never" });
    let config = json!({ "mcp": { "servers": { "box": entry } } });
    std::fs::write(place.path("openclaw.json"), config.to_string()).unwrap();
    let mut command = place.command(&["mcp-server", "--hub"]);
    let mut hub = StdioClient::run(command.envs(variables.iter().copied()));
    hub.initialize("2025-11-25");
    let listed = hub.request("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let name = tools.iter().filter_map(|it| it["name"].as_str()).find(|it| it.contains("echo"));
    let answer = hub.request(
        "tools/call",
        &json!({
            "name": name.unwrap(), "arguments": { "text": "hello" },
            "_meta": { "traceparent": parent, "tracestate": "rojo=1", "baggage": "a=b" },
        }),
    );
    assert_eq!(answer["result"]["content"][0]["type"], "text", "{answer}");
    hub.close();
    assert!(hub.wait().unwrap().success());
    let calls = recording.of_method("tools/call");
    calls.first().unwrap()["params"]["_meta"].clone()
}

#[test]
fn a_program_that_sends_no_spans_passes_the_context_on() {
    let place = Place::new();
    let parent = format!("00-{TRACE}-{PARENT}-01");
    let meta = received(&place, &[], &parent);
    assert_eq!(meta["traceparent"], *parent);
    assert_eq!((&meta["tracestate"], &meta["baggage"]), (&json!("rojo=1"), &json!("a=b")));
}

#[test]
fn an_invalid_context_is_not_passed_on() {
    let place = Place::new();
    let meta = received(&place, &[], "00-nonsense");
    for name in ["traceparent", "tracestate", "baggage"] {
        assert_eq!(meta.get(name), None, "{meta}");
    }
}

#[test]
fn the_context_of_a_client_is_continued() {
    let place = Place::new();
    let collector = Collector::start();
    let parent = format!("00-{TRACE}-{PARENT}-01");
    let meta = received(&place, &collector.variables(), &parent);
    let spans = collector.spans(1);
    let span = only(&spans, "tools/call echo");
    assert_eq!((span.trace.as_str(), span.parent.as_str()), (TRACE, PARENT));
    assert_eq!(meta["traceparent"], span.traceparent());
    assert_eq!((&meta["tracestate"], &meta["baggage"]), (&json!("rojo=1"), &json!("a=b")));
}

#[test]
fn a_client_that_does_not_sample_is_followed() {
    let place = Place::new();
    let collector = Collector::start();
    let meta = received(&place, &collector.variables(), &format!("00-{TRACE}-{PARENT}-00"));
    let sent = meta["traceparent"].as_str().unwrap();
    assert!(sent.starts_with(&format!("00-{TRACE}-")) && sent.ends_with("-00"), "{sent}");
    assert_eq!(collector.text(), "");
}
