//! Remote servers that disappear and return (L4, T10).

use std::sync::Arc;
use std::time::Duration;

use openclaw_mcp::server::status::ServerState;
use openclaw_testkit::{DropStream, Fault, On, Recording, Script, TestServer, Tool};
use openclaw_tools::ToolFailure;
use serde_json::json;

use crate::common::until;
use crate::support::{call, entry as entry_of, ready, servers, start, tools};

#[tokio::test]
async fn a_server_that_was_gone_for_a_moment_is_listed_again() {
    let server = TestServer::http(&Script::new().modern());
    let (fleet, tools) = ready(&servers(json!({ "x": { "url": server.url() } }))).await;
    assert!(tools.catalogue().get("mcp_x_echo").is_some());
    let port = server.port();
    server.kill();
    let changed = Script::new().modern().tools([Tool::new("brand_new")]);
    let _server = TestServer::http_on(port, &changed);
    until(|| tools.catalogue().get("mcp_x_brand_new").is_some()).await;
    fleet.stop().await;
}

#[tokio::test]
async fn in_a_new_session_the_lists_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::at(folder.path().join("record"));
    let script = Script::new().legacy().session_lost_after_calls(1).record(recording.path());
    let server = TestServer::http(&script);
    let (fleet, tools) = ready(&servers(json!({ "x": { "url": server.url() } }))).await;
    call(&tools, "mcp_x_echo", json!({ "text": "before" })).await;
    assert_eq!(recording.of_method("tools/list").len(), 1);
    let after = call(&tools, "mcp_x_echo", json!({ "text": "after" })).await;
    assert!(after.text().contains("after"), "{after:?}");
    for method in ["tools/list", "resources/list", "prompts/list"] {
        until(|| recording.of_method(method).len() >= 2).await;
    }
    fleet.stop().await;
}

#[tokio::test]
async fn a_connection_that_is_cut_during_a_call_counts_as_unavailable() {
    let cut = DropStream { abrupt: true, ids: false, ..DropStream::default() };
    let server = TestServer::http(&Script::new().legacy().drop_stream(cut));
    let (fleet, tools) = ready(&servers(json!({ "x": { "url": server.url() } }))).await;
    let outcome = call(&tools, "mcp_x_echo", json!({ "text": "a" })).await;
    assert_eq!(outcome.details.failure, Some(ToolFailure::Unavailable), "{}", outcome.text());
    assert_eq!(outcome.text(), "MCP server 'x' is not available: connection lost.");
    fleet.stop().await;
}

#[tokio::test]
async fn a_modern_server_is_subscribed_to_before_it_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    for (name, is_local) in [("local", true), ("remote", false)] {
        let recording = Recording::at(folder.path().join(name));
        let script = Script::new().modern().record(recording.path());
        let server = (!is_local).then(|| TestServer::http(&script));
        let entry = server.as_ref().map(|server| json!({ "url": server.url() }));
        let (fleet, _) =
            ready(&servers(json!({ "x": entry.unwrap_or_else(|| entry_of(&script)) }))).await;
        fleet.stop().await;
        let methods: Vec<String> = recording
            .messages()
            .iter()
            .filter_map(|message| message["method"].as_str().map(str::to_owned))
            .collect();
        let first = |method: &str| methods.iter().position(|it| it == method).unwrap();
        assert!(first("subscriptions/listen") < first("tools/list"), "{methods:?}");
    }
}

#[tokio::test]
async fn every_state_change_is_sent_to_listeners_and_the_third_failure_to_the_agent() {
    let server = TestServer::http(&Script::new().legacy());
    let port = server.port();
    let fleet = start(&servers(json!({ "x": { "url": server.url() } })));
    let mut events = fleet.events();
    fleet.tried().await;
    let tools = tools(&fleet);
    let ready = events.recv().await.unwrap();
    assert_eq!((ready.server.as_str(), ready.state), ("x", ServerState::Ready));
    assert_eq!((ready.agents, ready.reason), (vec!["main".to_owned()], None));
    assert!(tools.take_notices().is_empty());

    server.kill();
    tools.server("x").unwrap().reconnect().await;
    let mut notices = Vec::new();
    let mut failures = 0;
    while notices.is_empty() {
        let event = events.recv().await.unwrap();
        if event.state == ServerState::Restarting {
            failures += 1;
            assert!(event.reason.unwrap().contains("cannot connect"));
        }
        notices = tools.take_notices();
    }
    assert!(failures >= 3, "{failures}");
    let expected = "MCP server 'x' has failed 3 times in a row (unreachable).";
    assert!(notices.len() == 1 && notices[0].starts_with(expected), "{notices:?}");
    assert!(tools.take_notices().is_empty(), "reported once");

    let _server = TestServer::http_on(port, &Script::new().legacy());
    while events.recv().await.unwrap().state != ServerState::Ready {}
    assert_eq!(tools.take_notices(), ["MCP server 'x' is available again."]);
    fleet.stop().await;
    while events.recv().await.unwrap().state != ServerState::Closed {}
}

#[tokio::test]
async fn a_server_that_refuses_a_key_says_which_setting_it_came_from() {
    let server = TestServer::http(&Script::new().bearer("sesame", None));
    let (url, wrong) = (server.url(), "wr0ng-key-0123456789");
    let fleet = start(&servers(json!({
        "plain": { "url": url, "apiKey": wrong },
        "header": { "url": url, "headers": { "Authorization": format!("Bearer {wrong}") } },
        "none": { "url": url },
    })));
    fleet.tried().await;
    let said = |name: &str| {
        let trouble = tools(&fleet).server(name).unwrap().status().last_error.unwrap();
        format!("{} / {}", trouble.message, trouble.hint.unwrap())
    };
    let (plain, header, none) = (said("plain"), said("header"), said("none"));
    assert!(plain.contains("rejected the configured key") && plain.contains("`apiKey`"), "{plain}");
    assert!(header.contains("`headers.Authorization`"), "{header}");
    assert!(none.contains("requires authorization") && none.contains("set `apiKey`"), "{none}");
    assert!(!format!("{plain}{header}").contains(wrong));
    fleet.stop().await;
}

#[tokio::test]
async fn a_401_during_a_call_changes_the_state_to_needs_auth() {
    let refuses = Fault::status(401).on(On::Call);
    let server = TestServer::http(&Script::new().legacy().fault(refuses));
    let (fleet, tools) = ready(&servers(json!({ "x": { "url": server.url() } }))).await;
    let outcome = call(&tools, "mcp_x_echo", json!({ "text": "a" })).await;
    assert!(outcome.rendered().contains("requires authorization"), "{}", outcome.rendered());
    let mut snapshots = tools.server("x").unwrap().snapshots();
    let waits = snapshots.wait_for(|snapshot| snapshot.state == ServerState::NeedsAuth);
    tokio::time::timeout(Duration::from_secs(60), waits).await.unwrap().unwrap();
    let status = tools.server("x").unwrap().status();
    assert_eq!(status.state, ServerState::NeedsAuth);
    let trouble = status.last_error.unwrap();
    assert!(trouble.hint.unwrap().contains("run `openclaw mcp login x`, or set `apiKey`"));
    let again = call(&tools, "mcp_x_echo", json!({ "text": "a" })).await;
    assert!(again.text().contains("login required"), "{}", again.text());
    fleet.stop().await;
}

#[tokio::test]
async fn a_key_from_a_secret_is_resolved_again_before_a_login_is_required() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    std::fs::write(&key, "sesame-0123456789").unwrap();
    let refuses_once = Fault::status(401).on(On::Call).times(1);
    let server = TestServer::http(&Script::new().legacy().fault(refuses_once));
    let key = format!("secret://file/{}", key.display());
    let (fleet, tools) =
        ready(&servers(json!({ "x": { "url": server.url(), "apiKey": key } }))).await;
    let server = tools.server("x").unwrap();
    let first = Arc::clone(server.snapshots().borrow().connection.as_ref().unwrap());
    let outcome = call(&tools, "mcp_x_echo", json!({ "text": "a" })).await;
    assert!(outcome.rendered().contains("requires authorization"), "{}", outcome.rendered());
    let mut snapshots = server.snapshots();
    let is_new = |now: &Arc<_>| !Arc::ptr_eq(now, &first);
    let anew = snapshots.wait_for(|snapshot| snapshot.connection.as_ref().is_some_and(is_new));
    tokio::time::timeout(Duration::from_secs(60), anew).await.unwrap().unwrap();
    let outcome = call(&tools, "mcp_x_echo", json!({ "text": "a" })).await;
    assert!(!outcome.is_error, "{}", outcome.rendered());
    fleet.stop().await;
}
