//! The states with which clients of 2026-07-28 continue requests: what is not continued is refused, and
//! no tool runs twice.

use openclaw_testkit::{Ask, Recording, Script, StdioClient};
use serde_json::{Value, json};

use crate::common::gateway::RunningGateway;
use crate::common::rpc::meta;
use crate::http::send;
use crate::place::{Place, text};

/// A folder with one server, which asks during each call and records what it receives.
fn asking(script: Script) -> (Place, Recording) {
    let mut place = Place::new();
    let recording = Recording::at(place.path("record"));
    let script = script.ask(Ask::Elicitation).record(recording.path());
    place.add("one", &script, json!({ "approval": "never" }));
    (place, recording)
}

fn call(words: &str) -> Value {
    let meta = meta(json!({ "elicitation": {} }));
    json!({ "name": "echo", "arguments": { "text": words, "more": [1, { "b": 2, "a": 1 }] }, "_meta": meta })
}

/// The request that answers a result, with this state.
fn answer(call: &Value, asked: &Value, state: &Value) -> Value {
    let mut again = call.clone();
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    let keys = asked["result"]["inputRequests"].as_object().unwrap().keys();
    again["inputResponses"] = keys.map(|key| (key.clone(), answer.clone())).collect::<Value>();
    if !state.is_null() {
        again["requestState"] = state.clone();
    }
    again
}

fn asked(hub: &mut StdioClient, call: &Value) -> Value {
    let asked = hub.request("tools/call", call);
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    asked
}

/// Requests that do not continue the call that was asked about.
fn wrong_answers(call: &Value, asked: &Value) -> Vec<Value> {
    let state = asked["result"]["requestState"].as_str().unwrap();
    let with = |state: &str| answer(call, asked, &json!(state));
    let mut other_tool = with(state);
    other_tool["name"] = json!("count");
    let mut other_arguments = with(state);
    other_arguments["arguments"]["text"] = json!("y");
    vec![
        with(""),
        with("openclaw-hub:00000000000000000000000000000000"),
        with(&state[1..]),
        with(&format!("{state}x")),
        with(&state.to_uppercase()),
        other_tool,
        other_arguments,
    ]
}

fn assert_refused(refused: &Value) {
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("Nothing was called"), "{refused}");
}

#[test]
fn a_request_that_continues_nothing_is_refused_and_its_tool_runs_once() {
    for script in [Script::new().legacy(), Script::new().modern()] {
        let is_modern = script == Script::new().modern();
        let (place, recording) = asking(script);
        let mut hub = place.spawn(&["--no-wrap"]);
        let call = call("x");
        let asked = asked(&mut hub, &call);
        for wrong in wrong_answers(&call, &asked) {
            assert_refused(&hub.request("tools/call", &wrong));
        }
        // Another process knows nothing of it.
        let state = &asked["result"]["requestState"];
        let mut other = place.spawn(&["--no-wrap"]);
        assert_refused(&other.request("tools/call", &answer(&call, &asked, state)));
        let times = recording.of_method("tools/call").len();
        assert_eq!(times, 1, "{is_modern}");
        // The arguments are the same in another order.
        let mut right = answer(&call, &asked, state);
        right["arguments"] = json!({ "more": [1, { "a": 1, "b": 2 }], "text": "x" });
        let done = hub.request("tools/call", &right);
        assert!(text(&done).contains("Ada"), "{done}");
        assert_eq!(done["result"]["resultType"], "complete", "{done}");
        assert_eq!(recording.of_method("tools/call").len(), if is_modern { 2 } else { 1 });
    }
}

#[test]
fn a_state_is_accepted_once_whatever_server_it_belongs_to() {
    for (script, times) in [(Script::new().legacy(), 1), (Script::new().modern(), 2)] {
        let (place, recording) = asking(script);
        let mut hub = place.spawn(&["--no-wrap"]);
        let call = call("x");
        let asked = asked(&mut hub, &call);
        let answer = answer(&call, &asked, &asked["result"]["requestState"]);
        assert!(text(&hub.request("tools/call", &answer)).contains("Ada"));
        assert_refused(&hub.request("tools/call", &answer));
        assert_eq!(recording.of_method("tools/call").len(), times);
    }
}

#[test]
fn a_state_that_is_not_a_string_is_refused() {
    for script in [Script::new().legacy(), Script::new().modern()] {
        let (place, recording) = asking(script);
        let gateway = place.gateway();
        let mut hub = place.spawn(&["--no-wrap"]);
        for state in [Value::Null, json!(5), json!({})] {
            let mut call = call("x");
            call["requestState"] = state;
            assert_refused(&hub.request("tools/call", &call));
            assert_refused(&post(&gateway, &call));
        }
        assert!(recording.of_method("tools/call").is_empty());
    }
}

#[test]
fn input_that_an_earlier_server_cannot_have_requested_is_refused() {
    let (place, recording) = asking(Script::new().legacy());
    let mut hub = place.spawn(&["--no-wrap"]);
    let call = call("x");
    let asked = asked(&mut hub, &call);
    let refused = hub.request("tools/call", &answer(&call, &asked, &Value::Null));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert_eq!(recording.of_method("tools/call").len(), 1);
}

#[test]
fn input_that_is_missing_is_asked_for_again() {
    let (place, recording) = asking(Script::new().legacy());
    let mut hub = place.spawn(&["--no-wrap"]);
    let call = call("x");
    let first = asked(&mut hub, &call);
    let mut without = answer(&call, &first, &first["result"]["requestState"]);
    without["inputResponses"] = json!({ "another": { "action": "accept" } });
    let second = asked(&mut hub, &without);
    assert_eq!(first["result"]["inputRequests"], second["result"]["inputRequests"]);
    let done =
        hub.request("tools/call", &answer(&call, &second, &second["result"]["requestState"]));
    assert!(text(&done).contains("Ada"), "{done}");
    assert_eq!(recording.of_method("tools/call").len(), 1);
}

#[test]
fn a_state_stays_sealed_with_boundaries_around_texts() {
    let (place, recording) = asking(Script::new().modern());
    let mut hub = place.spawn(&[]);
    let call = call("x");
    let asked = asked(&mut hub, &call);
    let state = &asked["result"]["requestState"];
    assert!(state.as_str().unwrap().starts_with("openclaw."), "{asked}");
    let done = hub.request("tools/call", &answer(&call, &asked, state));
    assert!(text(&done).contains("Ada"), "{done}");
    let calls = recording.of_method("tools/call");
    assert_eq!(calls[1]["params"]["requestState"], "asked once: \"é\\/\u{1f980}\"", "its own");
}

/// Sends a call without a session.
fn post(gateway: &RunningGateway, call: &Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call });
    let name = call["name"].as_str().unwrap();
    let headers =
        [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", name)];
    let response = send(gateway, "POST", &headers, &body.to_string());
    response.messages.into_iter().next().unwrap()
}

#[test]
fn a_request_without_a_session_that_continues_nothing_is_refused() {
    let (place, recording) = asking(Script::new().legacy());
    let gateway = place.gateway();
    let call = call("x");
    let asked = post(&gateway, &call);
    for wrong in wrong_answers(&call, &asked) {
        assert_refused(&post(&gateway, &wrong));
    }
    assert_eq!(recording.of_method("tools/call").len(), 1);
    let done = post(&gateway, &answer(&call, &asked, &asked["result"]["requestState"]));
    assert!(text(&done).contains("Ada"), "{done}");
    assert_eq!(recording.of_method("tools/call").len(), 1);
}
