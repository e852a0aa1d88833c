//! The hub on stdio beside a running gateway: one fleet serves all clients.

use openclaw_testkit::{Ask, Script};
use serde_json::json;

use crate::asks::call_and_answer;
use crate::place::{Place, next, text};

#[test]
fn clients_on_stdio_use_the_servers_of_the_running_gateway() {
    let place = Place::with("one", &Script::new());
    let gateway = place.gateway();
    let pid = |hub: &mut openclaw_testkit::StdioClient| hub.call_text("pids", &json!({}));
    let (mut first, mut second) = (place.hub(&["--no-wrap"]), place.hub(&["--no-wrap"]));
    let server = pid(&mut first);
    assert!(!server.is_empty());
    assert_eq!(pid(&mut second), server, "one process serves both");
    first.close();
    assert!(first.wait().is_some_and(|status| status.success()));
    assert_eq!(pid(&mut second), server);
    drop(gateway);
    second.close();
    assert!(second.wait().is_some());
    place.assert_nothing_left();
}

#[test]
fn a_client_keeps_its_tools_when_the_gateway_ends() {
    let place = Place::with("one", &Script::new());
    let gateway = place.gateway();
    let mut hub = place.hub(&["--no-wrap"]);
    let server = hub.call_text("pids", &json!({}));
    let id = hub.ask("tools/call", &json!({ "name": "sleep", "arguments": { "ms": 60_000 } }));
    // The call has arrived when a later request is answered.
    assert_eq!(hub.request("ping", &json!({}))["result"], json!({}));
    drop(gateway);
    let failed = next(&mut hub, |it| it["id"] == id);
    let why = failed["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("the gateway has stopped"), "{failed}");
    assert_ne!(hub.call_text("pids", &json!({})), server, "it has its own servers now");
    hub.close();
    assert!(hub.wait().is_some_and(|status| status.success()));
    place.assert_nothing_left();
}

#[test]
fn the_options_and_questions_of_a_client_reach_the_gateway() {
    let place = Place::with("one", &Script::new().ask(Ask::Elicitation));
    let _gateway = place.gateway();
    let mut hub = place.hub_for(&[], &json!({ "elicitation": {} }));
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    let (_, reply) = call_and_answer(&mut hub, "echo", answer);
    assert!(text(&reply).contains("Ada"), "{reply}");
    assert!(text(&reply).starts_with("This is output from MCP server"), "{reply}");
}

#[test]
fn another_configuration_is_not_mixed_with_that_of_the_gateway() {
    let place = Place::with("one", &Script::new());
    let _gateway = place.gateway();
    let other = place.path("other.json");
    std::fs::write(&other, r#"{"mcp":{"servers":{}}}"#).unwrap();
    let mut command = place.command(&["--config", other.to_str().unwrap(), "mcp-server", "--hub"]);
    let mut hub = openclaw_testkit::StdioClient::run(&mut command);
    hub.initialize("2025-11-25");
    assert_eq!(hub.request("tools/list", &json!({}))["result"]["tools"], json!([]));
}
