//! Servers that start, stop, fail and recover (L1–L3, L6, L7, L9).

use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use openclaw_mcp::fleet::{Fleet, FleetSetup};
use openclaw_mcp::server::status::ServerState;
use openclaw_mcp::server::{StartMode, StorageFolders};
use openclaw_testkit::{Grandchild, Script, Tool, processes};
use openclaw_tools::ToolFailure;
use serde_json::json;

use crate::common::until;
use crate::support::{
    assert_nothing_left, call, config, entry, entry_with, ready, ready_with, servers, setup, start,
    tools,
};

#[tokio::test]
async fn a_server_that_fails_harms_no_other() {
    let good = Script::new().name("openclaw-tag-fleet-good");
    let bad = Script::new().stderr_line("no licence").exit_at_start(4);
    let config = servers(json!({
        "good": entry(&good),
        "bad": entry_with(&bad, json!({ "restartOnCrash": false, "required": true })),
        "missing": { "command": "openclaw-no-such-program" },
        "off": { "command": "x", "enabled": false },
        "unset": { "command": "x", "args": ["${OPENCLAW_NO_SUCH}"], "required": true },
        "unset-and-off": {
            "command": "${OPENCLAW_NO_SUCH}", "required": true, "enabled": false
        },
    }));
    let fleet = start(&config);
    let tried = fleet.tried().await;
    assert_eq!((tried.ready, tried.of), (1, 3));
    assert_eq!(tried.missing, ["bad", "unset"], "one that cannot be tried is missing, too");
    let tools = tools(&fleet);
    let outcome = call(&tools, "mcp_good_echo", json!({ "text": "hello" })).await;
    assert!(outcome.rendered().contains("hello") && !outcome.is_error, "{outcome:?}");

    let statuses = tools.statuses();
    let names: Vec<&str> = statuses.iter().map(|status| status.name.as_str()).collect();
    assert_eq!(names, ["bad", "good", "missing", "off", "unset", "unset-and-off"]);
    let good = &statuses[1];
    assert_eq!(good.state, ServerState::Ready);
    assert!(good.pid.is_some() && good.tools > 5 && good.calls == 1 && good.p50_ms.is_some());
    let trouble = statuses[0].last_error.clone().unwrap();
    assert!(trouble.message.contains("exited with status 4"), "{trouble:?}");
    assert_eq!(trouble.last_lines, ["no licence"]);
    let missing = statuses[2].last_error.clone().unwrap();
    assert!(missing.message.contains("openclaw-no-such-program"), "{missing:?}");
    assert_eq!(statuses[3].state, ServerState::Disabled);
    fleet.stop().await;
    assert_nothing_left("openclaw-tag-fleet-good").await;
}

#[tokio::test]
async fn the_start_mode_decides_which_servers_start_immediately() {
    let config = servers(json!({
        "eager": entry(&Script::new().name("openclaw-tag-fleet-mode")),
        "lazy": entry_with(&Script::new().name("openclaw-tag-fleet-mode"), json!({ "lazy": true })),
    }));
    for (start, expected) in [
        (StartMode::Eager, vec!["eager"]),
        (StartMode::OnUse, vec![]),
        (StartMode::Only("lazy".to_owned()), vec!["lazy"]),
    ] {
        let (fleet, tools) =
            ready_with(&config, FleetSetup { start: start.clone(), ..setup() }).await;
        let statuses = tools.statuses();
        let running = statuses.iter().filter(|status| status.pid.is_some());
        let running: Vec<&str> = running.map(|status| status.name.as_str()).collect();
        assert_eq!(running, expected, "{start:?}");
        fleet.stop().await;
    }
    assert_nothing_left("openclaw-tag-fleet-mode").await;
}

#[tokio::test]
async fn a_server_that_crashes_keeps_its_tools_and_comes_back() {
    let script = Script::new().name("openclaw-tag-fleet-crash");
    let (fleet, tools) = ready(&servers(json!({ "x": entry(&script) }))).await;
    let server = Arc::clone(tools.server("x").unwrap());
    let pid = server.status().pid;
    let crashed = call(&tools, "mcp_x_crash", json!({})).await;
    assert_eq!(crashed.details.failure, Some(ToolFailure::Unavailable), "{crashed:?}");
    let mut snapshots = server.snapshots();
    snapshots.wait_for(|snapshot| snapshot.state == ServerState::Restarting).await.unwrap();
    assert!(tools.catalogue().get("mcp_x_echo").is_some(), "it stays listed");
    let meanwhile = call(&tools, "mcp_x_echo", json!({ "text": "a" })).await;
    assert_eq!(meanwhile.details.failure, Some(ToolFailure::Unavailable), "{meanwhile:?}");
    snapshots.wait_for(|snapshot| snapshot.state == ServerState::Ready).await.unwrap();
    assert_ne!(server.status().pid, pid);
    let after = call(&tools, "mcp_x_echo", json!({ "text": "again" })).await;
    assert!(after.text().contains("again"), "{after:?}");
    fleet.stop().await;
    assert_nothing_left("openclaw-tag-fleet-crash").await;
}

#[tokio::test]
async fn a_server_killed_from_outside_is_noticed_and_restarted() {
    let holds = Grandchild { hold_pipes: true, ..Grandchild::default() };
    let script = Script::new().name("openclaw-tag-fleet-killed").grandchild_like(holds);
    let (fleet, tools) = ready(&servers(json!({ "x": entry(&script) }))).await;
    let server = Arc::clone(tools.server("x").unwrap());
    let pid = server.status().pid.unwrap();
    kill(Pid::from_raw(pid.try_into().unwrap()), Signal::SIGKILL).unwrap();
    let mut snapshots = server.snapshots();
    // Sooner than missed pings would be noticed.
    let lost = snapshots.wait_for(|snapshot| snapshot.state == ServerState::Restarting);
    let lost = tokio::time::timeout(Duration::from_secs(25), lost).await.unwrap().unwrap().clone();
    let trouble = lost.last_error.unwrap();
    assert!(trouble.message.contains("was killed by signal 9"), "{trouble:?}");
    assert!(trouble.last_lines.iter().any(|line| line.starts_with("grandchild")), "{trouble:?}");
    snapshots.wait_for(|snapshot| snapshot.state == ServerState::Ready).await.unwrap();
    assert!(processes::in_group(pid).is_empty(), "its descendants are gone, too");
    fleet.stop().await;
    assert_nothing_left("openclaw-tag-fleet-killed").await;
}

#[tokio::test]
async fn a_lazy_server_shows_its_tools_and_starts_when_one_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new().name("openclaw-tag-fleet-lazy");
    let with_memory = || {
        let mut setup = setup();
        setup.folders = StorageFolders { catalogue: Some(folder.path().to_owned()), logs: None };
        setup
    };
    let eager = servers(json!({ "x": entry(&script) }));
    let (fleet, _) = ready_with(&eager, with_memory()).await;
    fleet.stop().await;

    let lazy = servers(json!({ "x": entry_with(&script, json!({ "lazy": true })) }));
    let fleet = Fleet::start(&lazy, with_memory());
    assert_eq!(fleet.tried().await.ready, 1);
    let tools = tools(&fleet);
    let status = tools.server("x").unwrap().status();
    assert_eq!((status.state, status.pid), (ServerState::Idle, None));
    assert!(tools.catalogue().get("mcp_x_echo").is_some(), "cached by the previous run");
    let outcome = call(&tools, "mcp_x_echo", json!({ "text": "awake" })).await;
    assert!(outcome.rendered().contains("awake"), "{outcome:?}");
    fleet.stop().await;
    assert_nothing_left("openclaw-tag-fleet-lazy").await;
}

#[tokio::test]
async fn agents_that_connect_in_the_same_way_share_a_server_and_others_do_not() {
    let script = Script::new().name("openclaw-tag-fleet-shared");
    let treated = json!({ "mcp": { "servers": { "x": { "toolTimeout": 5_000 } } } });
    let connected = json!({ "mcp": { "servers": { "x": { "env": { "A": "1" } } } } });
    let config = config(&json!({
        "mcp": { "servers": { "x": entry(&script) } },
        "agents": { "list": [
            { "id": "one" },
            { "id": "two" },
            { "id": "three", "mcp": treated["mcp"] },
            { "id": "four", "mcp": connected["mcp"] },
        ] },
    }));
    // None of them is the default agent.
    let fleet = start(&config);
    fleet.tried().await;
    assert_eq!(fleet.servers().len(), 2);
    let server = |agent: &str| Arc::clone(fleet.agent(agent).unwrap().server("x").unwrap());
    assert!(Arc::ptr_eq(&server("one"), &server("two")));
    assert!(Arc::ptr_eq(&server("one"), &server("three")), "only the options differ");
    assert!(!Arc::ptr_eq(&server("one"), &server("four")));
    fleet.stop().await;
    assert_nothing_left("openclaw-tag-fleet-shared").await;
}

#[tokio::test]
async fn a_new_configuration_affects_only_what_has_changed() {
    let kept = Script::new().name("openclaw-tag-fleet-kept");
    let gone = Script::new().name("openclaw-tag-fleet-gone");
    let new = Script::new().name("openclaw-tag-fleet-new");
    let before = servers(json!({ "kept": entry(&kept), "gone": entry(&gone) }));
    let after = servers(json!({ "kept": entry(&kept), "new": entry(&new) }));
    let (fleet, _) = ready(&before).await;
    let pid = tools(&fleet).server("kept").unwrap().status().pid;
    assert!(tools(&fleet).catalogue().get("mcp_gone_echo").is_some());
    fleet.apply(&after).settled().await;
    fleet.tried().await;
    let tools = tools(&fleet);
    assert_eq!(tools.server("kept").unwrap().status().pid, pid);
    assert!(tools.catalogue().get("mcp_gone_echo").is_none());
    assert!(tools.catalogue().get("mcp_new_echo").is_some());
    assert_nothing_left("openclaw-tag-fleet-gone").await;
    fleet.stop().await;
    assert_nothing_left("openclaw-tag-fleet-kept").await;
    assert_nothing_left("openclaw-tag-fleet-new").await;
}

#[tokio::test]
async fn a_dropped_fleet_stops_its_servers() {
    let script = Script::new().name("openclaw-tag-fleet-dropped").ignore_stdin_close();
    let (fleet, _) = ready(&servers(json!({ "x": entry(&script) }))).await;
    drop(fleet);
    assert_nothing_left("openclaw-tag-fleet-dropped").await;
}

#[tokio::test]
async fn a_server_that_fails_on_the_newest_handshake_gets_an_older_one() {
    let refuses = Script::new().legacy().reject_version("2025-11-25");
    let crashes = Script::new().legacy().crash_on_version("2025-11-25");
    let config = servers(json!({ "refuses": entry(&refuses), "crashes": entry(&crashes) }));
    let (fleet, tools) = ready(&config).await;
    for status in tools.statuses() {
        assert_eq!(status.state, ServerState::Ready, "{status:?}");
        assert_eq!(status.protocol_version.as_deref(), Some("2024-11-05"), "{status:?}");
    }
    fleet.stop().await;
}

#[tokio::test]
async fn a_list_that_changes_is_read_again() {
    for script in [Script::new().legacy(), Script::new().modern()] {
        let script = script
            .changed_tools([Tool::new("brand_new")])
            .list_changed_after_calls(1)
            .name("openclaw-tag-fleet-changed");
        let (fleet, tools) = ready(&servers(json!({ "x": entry(&script) }))).await;
        assert!(tools.catalogue().get("mcp_x_brand_new").is_none());
        call(&tools, "mcp_x_echo", json!({ "text": "a" })).await;
        until(|| tools.catalogue().get("mcp_x_brand_new").is_some()).await;
        fleet.stop().await;
    }
    assert_nothing_left("openclaw-tag-fleet-changed").await;
}

/// A server that rejects the first request and exits.
const SAYS_NO: &str = r#"
    read -r line
    id=$(printf %s "$line" | sed 's/.*"id":\([^,}]*\).*/\1/')
    printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no licence found"}}\n' "$id"
"#;

#[tokio::test]
async fn the_error_of_a_server_that_rejects_the_handshake_and_exits_is_reported() {
    let entry = json!({ "command": "sh", "args": ["-c", SAYS_NO], "maxRestarts": 1 });
    let fleet = start(&servers(json!({ "x": entry })));
    let mut snapshots = tools(&fleet).server("x").unwrap().snapshots();
    let failed = snapshots.wait_for(|snapshot| snapshot.state == ServerState::Failed);
    // Also after it was retried.
    let failed =
        tokio::time::timeout(Duration::from_secs(60), failed).await.unwrap().unwrap().clone();
    let trouble = failed.last_error.unwrap();
    let expected = "startup failed: the server returned error -32000: no licence found";
    assert!(trouble.message.starts_with(expected), "{trouble:?}");
    fleet.stop().await;
}

#[tokio::test]
async fn a_pinned_version_is_the_only_one_that_is_used() {
    let pinned = |version: &str, script: &Script| {
        let mut entry = entry(script);
        entry["protocolVersion"] = json!(version);
        entry
    };
    let (both, old) = (Script::new(), Script::new().legacy());
    let fleet = start(&servers(json!({
        "older": pinned("2025-06-18", &both),
        "newest": pinned("2026-07-28", &both),
        "refused": pinned("2026-07-28", &old),
    })));
    fleet.tried().await;
    let statuses = tools(&fleet).statuses();
    let of = |name: &str| statuses.iter().find(|status| status.name == name).unwrap();
    assert_eq!(of("older").protocol_version.as_deref(), Some("2025-06-18"));
    assert_eq!(of("newest").protocol_version.as_deref(), Some("2026-07-28"));
    let error = of("refused").last_error.as_ref().unwrap();
    assert!(
        error.message.contains("does not support the configured `protocolVersion`"),
        "{error:?}"
    );
    fleet.stop().await;
}
