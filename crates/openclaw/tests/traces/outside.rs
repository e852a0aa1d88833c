//! Every front end continues the trace of its client, up to the server.

use openclaw_testkit::StdioClient;
use serde_json::{Value, json};

use crate::collector::only;
use crate::trees::Traced;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// The context of a client.
fn context() -> Value {
    let parent = format!("00-{TRACE}-{PARENT}-01");
    json!({ "traceparent": parent, "tracestate": "rojo=1", "baggage": "a=b" })
}

/// Checks that the six spans of a turn are part of the client's trace, and that the server got its
/// context.
fn check(traced: &Traced, front: &str) {
    let spans = traced.collector.spans(6);
    let root = only(&spans, front);
    assert_eq!((root.trace.as_str(), root.parent.as_str()), (TRACE, PARENT));
    assert_eq!(root.kind, "SPAN_KIND_SERVER");
    assert!(spans.iter().all(|span| span.trace == TRACE), "{spans:#?}");
    assert_eq!(only(&spans, "invoke_agent main").parent, root.id);
    let calls = traced.recording.of_method("tools/call");
    assert_eq!(calls.len(), 2);
    for call in calls {
        let meta = &call["params"]["_meta"];
        let span =
            only(&spans, &format!("tools/call {}", call["params"]["name"].as_str().unwrap()));
        assert_eq!(meta["traceparent"], span.traceparent());
        assert_eq!((&meta["tracestate"], &meta["baggage"]), (&json!("rojo=1"), &json!("a=b")));
    }
}

#[test]
fn the_trace_of_an_editor_is_continued() {
    let traced = Traced::new();
    traced.prompt_in(&[], &[], &context());
    check(&traced, "session/prompt");
}

#[test]
fn state_and_baggage_cross_the_socket_of_a_gateway() {
    let traced = Traced::new();
    let running = traced.gateway();
    traced.prompt_in(&["--gateway", &running.url], &[], &context());
    check(&traced, "session/prompt");
}

#[test]
fn the_trace_of_a_client_of_order_openclaw_is_continued() {
    let traced = Traced::new();
    let mut command = traced.place.command(&["mcp-server"]);
    let mut client = StdioClient::run(command.envs(traced.variables()));
    client.initialize("2025-11-25");
    let arguments = json!({ "message": "do it" });
    let params = json!({ "name": "order_openclaw", "arguments": arguments, "_meta": context() });
    let answer = client.request("tools/call", &params);
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    client.close();
    assert!(client.wait().unwrap().success());
    check(&traced, "tools/call order_openclaw");
}
