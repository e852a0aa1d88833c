//! Configuration changes while servers run: changed options keep the connection, changed
//! connection settings restart the server, and new rules do not wait for old processes (C9, L7,
//! L10).

use std::sync::Arc;
use std::time::{Duration, Instant};

use openclaw_config::{ApprovalPolicy, Config, ServerChange};
use openclaw_mcp::fleet::Fleet;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp::server::status::ServerState;
use openclaw_testkit::{Recording, Script, TestServer, Tool, processes};
use openclaw_tools::ToolFailure;
use serde_json::{Value, json};

use crate::support::{
    assert_nothing_left, call, config, entry, entry_with, ready, servers, start, tools,
};

fn pid(tools: &AgentTools, server: &str) -> u32 {
    tools.server(server).unwrap().status().pid.unwrap()
}

/// The change of a server of the default agent.
fn change(fleet: &Fleet, config: &Config, server: &str) -> ServerChange {
    fleet.apply(config).changes.agents["main"].servers[server]
}

/// Waits until a server has a call in flight.
async fn until_called(tools: &AgentTools, server: &str) {
    let live = tools.server(server).unwrap().ready().await.unwrap();
    let called = async {
        while live.connection().in_flight() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), called).await.unwrap();
}

/// The levels that a server was told.
fn levels(recording: &Recording) -> Vec<Value> {
    let told = recording.of_method("logging/setLevel");
    told.into_iter().map(|mut message| message["params"]["level"].take()).collect()
}

#[tokio::test]
async fn the_configured_log_level_is_set_at_every_connect_and_when_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::at(folder.path().join("legacy"));
    let script = Script::new().legacy().record(recording.path());
    let with =
        |level: &str| servers(json!({ "x": entry_with(&script, json!({ "logLevel": level })) }));
    let (fleet, _) = ready(&with("warning")).await;
    assert_eq!(levels(&recording), ["warning"]);

    assert_eq!(change(&fleet, &with("debug"), "x"), ServerChange::Updated);
    let (heard, wanted) = (recording.clone(), json!({ "level": "debug" }));
    let told = tokio::task::spawn_blocking(move || {
        heard.wait_for(Duration::from_secs(60), |line| line["params"] == wanted)
    });
    assert!(told.await.unwrap().is_some(), "{:?}", levels(&recording));

    let gone = call(&tools(&fleet), "mcp_x_crash", json!({})).await;
    assert!(gone.is_error, "{gone:?}");
    let (heard, count) = (recording.clone(), 3);
    let told = tokio::task::spawn_blocking(move || {
        heard.wait_for(Duration::from_secs(60), |_| levels(&heard).len() == count)
    });
    assert!(told.await.unwrap().is_some());
    assert_eq!(levels(&recording), ["warning", "debug", "debug"]);
    fleet.stop().await;
}

#[tokio::test]
async fn the_configured_log_level_is_part_of_every_request_since_2026_07_28_and_of_none_without() {
    for level in [Some("notice"), None] {
        let folder = tempfile::tempdir().unwrap();
        let recording = Recording::at(folder.path().join("modern"));
        let script = Script::new().modern().record(recording.path());
        let more = level.map_or(json!({}), |level| json!({ "logLevel": level }));
        let (fleet, _) = ready(&servers(json!({ "x": entry_with(&script, more) }))).await;
        call(&tools(&fleet), "mcp_x_echo", json!({ "text": "a" })).await;
        for method in ["tools/list", "tools/call"] {
            let request = recording.of_method(method).remove(0);
            let told = &request["params"]["_meta"]["io.modelcontextprotocol/logLevel"];
            assert_eq!(told.as_str(), level, "{request}");
        }
        assert_eq!(levels(&recording), Vec::<Value>::new());
        fleet.stop().await;
    }
}

#[tokio::test]
async fn a_server_that_is_treated_differently_keeps_its_process_and_the_call_in_flight() {
    let script = Script::new().name("openclaw-tag-reload-treated");
    let (fleet, _) = ready(&servers(json!({ "x": entry(&script) }))).await;
    let before = tools(&fleet);
    let pid_before = pid(&before, "x");
    let in_flight = {
        let before = Arc::clone(&before);
        tokio::spawn(async move { call(&before, "mcp_x_sleep", json!({ "ms": 2_000 })).await })
    };
    until_called(&before, "x").await;
    for options in [
        json!({ "toolTimeout": 1_000 }),
        json!({ "approval": "never" }),
        json!({ "tools": { "deny": ["sleep"] } }),
        json!({ "rateLimit": 7 }),
        json!({ "maxResultChars": 100 }),
        json!({ "toolPrefix": "y" }),
        json!({ "timeout": 59_000 }),
        json!({ "restartOnCrash": false }),
        json!({ "maxRestarts": 1 }),
        json!({ "lazy": true }),
        json!({ "supportsParallelToolCalls": false }),
        json!({ "required": true }),
        json!({ "resources": ["test://a"] }),
        json!({ "logLevel": "error" }),
    ] {
        let config = servers(json!({ "x": entry_with(&script, options.clone()) }));
        assert_eq!(change(&fleet, &config, "x"), ServerChange::Updated, "{options}");
        assert_eq!(pid(&tools(&fleet), "x"), pid_before, "{options}");
    }
    let outcome = in_flight.await.unwrap();
    assert!(outcome.text().contains("slept 2000 ms"), "{outcome:?}");
    assert_eq!(pid(&tools(&fleet), "x"), pid_before);
    fleet.stop().await;
    assert_nothing_left("openclaw-tag-reload-treated").await;
}

#[tokio::test]
async fn a_changed_option_applies_immediately() {
    let script = Script::new().name("openclaw-tag-reload-rules");
    let (fleet, _) = ready(&servers(json!({ "x": entry(&script) }))).await;
    let with = |more: Value| servers(json!({ "x": entry_with(&script, more) }));

    fleet.apply(&with(json!({ "tools": { "deny": ["echo"] } })));
    let denied = call(&tools(&fleet), "mcp_x_echo", json!({ "text": "a" })).await;
    assert_eq!(denied.details.failure, Some(ToolFailure::Denied), "{denied:?}");

    fleet.apply(&with(json!({ "approval": "never" })));
    let catalogue = tools(&fleet).catalogue();
    let echo = catalogue.get("mcp_x_echo").unwrap();
    assert_eq!(echo.options().approval, ApprovalPolicy::Never);
    fleet.apply(&with(json!({ "approval": "always" })));
    let catalogue = tools(&fleet).catalogue();
    let echo = catalogue.get("mcp_x_echo").unwrap();
    assert_eq!(echo.options().approval, ApprovalPolicy::Always);

    fleet.apply(&with(json!({ "toolTimeout": 200 })));
    let late = call(&tools(&fleet), "mcp_x_sleep", json!({ "ms": 2_000, "every": 9_000 })).await;
    assert_eq!(late.details.failure, Some(ToolFailure::TimedOut), "{late:?}");

    fleet.apply(&with(json!({ "maxResultChars": 100 })));
    let cut = call(&tools(&fleet), "mcp_x_big", json!({ "bytes": 5_000 })).await;
    assert!(cut.text().len() < 2_000, "{}", cut.text().len());

    fleet.apply(&with(json!({ "toolPrefix": "y" })));
    let named = call(&tools(&fleet), "mcp_y_echo", json!({ "text": "a" })).await;
    assert!(!named.is_error, "{named:?}");

    fleet.apply(&with(json!({ "rateLimit": 1 })));
    let limited = call(&tools(&fleet), "mcp_x_echo", json!({ "text": "a" })).await;
    assert_eq!(limited.details.failure, Some(ToolFailure::RateLimited), "earlier calls count");
    fleet.apply(&with(json!({ "rateLimit": 0 })));
    let unlimited = call(&tools(&fleet), "mcp_x_echo", json!({ "text": "a" })).await;
    assert!(!unlimited.is_error, "{unlimited:?}");
    fleet.stop().await;
    assert_nothing_left("openclaw-tag-reload-rules").await;
}

#[tokio::test]
async fn a_tool_is_denied_while_an_old_server_is_still_stopping() {
    const SLOW: &str = "openclaw-tag-reload-slow";
    let stays = Script::new().name("openclaw-tag-reload-stays");
    let slow = Script::new().name(SLOW).ignore_stdin_close().ignore_sigterm();
    let (fleet, _) = ready(&servers(json!({ "a": entry(&stays), "slow": entry(&slow) }))).await;
    let denied = entry_with(&stays, json!({ "tools": { "deny": ["echo"] } }));
    let began = Instant::now();
    let reloaded = fleet.apply(&servers(json!({ "a": denied })));
    let outcome = call(&tools(&fleet), "mcp_a_echo", json!({ "text": "a" })).await;
    assert_eq!(outcome.details.failure, Some(ToolFailure::Denied), "{outcome:?}");
    assert!(!processes::mentioning(SLOW).is_empty(), "it is still running");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    reloaded.settled().await;
    assert_nothing_left(SLOW).await;
    fleet.stop().await;
    assert_nothing_left("openclaw-tag-reload-stays").await;
}

#[tokio::test]
async fn agents_that_share_a_process_have_their_own_rules() {
    let script = Script::new().name("openclaw-tag-reload-shared");
    let treated = |more: Value| json!({ "servers": { "x": more } });
    let config = config(&json!({
        "mcp": { "servers": { "x": entry(&script) } },
        "agents": { "list": [
            { "id": "open", "mcp": treated(json!({ "approval": "never" })) },
            { "id": "strict", "mcp": treated(json!({
                "tools": { "deny": ["env"] }, "toolPrefix": "y", "maxResultChars": 100,
                "approval": "always", "lazy": true,
            })) },
        ] },
    }));
    // None of them is the default agent.
    let fleet = start(&config);
    fleet.tried().await;
    let (open, strict) = (fleet.agent("open").unwrap(), fleet.agent("strict").unwrap());
    assert_eq!(fleet.servers().len(), 1);
    assert_eq!(pid(&open, "x"), pid(&strict, "x"));
    assert_eq!(processes::mentioning("openclaw-tag-reload-shared").len(), 1, "one process");
    let free = call(&open, "mcp_x_env", json!({ "name": "PATH" })).await;
    assert!(!free.is_error, "{free:?}");
    let denied = call(&strict, "mcp_y_env", json!({ "name": "PATH" })).await;
    assert_eq!(denied.details.failure, Some(ToolFailure::Denied), "{denied:?}");
    let (long, short) = (json!({ "bytes": 5_000 }), json!({ "bytes": 5_000 }));
    assert!(call(&open, "mcp_x_big", long).await.text().len() >= 5_000);
    assert!(call(&strict, "mcp_y_big", short).await.text().len() < 2_000);
    let approval =
        |agent: &AgentTools, name: &str| agent.catalogue().get(name).unwrap().options().approval;
    assert_eq!(approval(&open, "mcp_x_echo"), ApprovalPolicy::Never);
    assert_eq!(approval(&strict, "mcp_y_echo"), ApprovalPolicy::Always);
    assert_eq!((open.statuses()[0].lazy, strict.statuses()[0].lazy), (false, true));
    fleet.stop().await;
    assert_nothing_left("openclaw-tag-reload-shared").await;
}

#[tokio::test]
async fn a_server_with_other_connection_settings_is_restarted_and_no_other() {
    let a = Script::new().name("openclaw-tag-reload-a");
    let b = Script::new().name("openclaw-tag-reload-b").ignore_stdin_close();
    let with = |value: &str| entry_with(&b, json!({ "env": { "COLOUR": value } }));
    let (fleet, _) = ready(&servers(json!({ "a": entry(&a), "b": with("red") }))).await;
    let before = tools(&fleet);
    let (pid_a, pid_b) = (pid(&before, "a"), pid(&before, "b"));
    let reloaded = fleet.apply(&servers(json!({ "a": entry(&a), "b": with("blue") })));
    let servers = &reloaded.changes.agents["main"].servers;
    assert_eq!((servers["a"], servers["b"]), (ServerChange::Same, ServerChange::Restarted));
    // The replacement is in progress: the call waits for the new server.
    let after = tools(&fleet);
    let colour = call(&after, "mcp_b_env", json!({ "name": "COLOUR" })).await;
    assert!(colour.text().contains("blue"), "{colour:?}");
    assert_eq!(processes::mentioning("openclaw-tag-reload-b"), [pid(&after, "b")]);
    assert_eq!(pid(&after, "a"), pid_a);
    assert_ne!(pid(&after, "b"), pid_b);
    fleet.stop().await;
    assert_nothing_left("openclaw-tag-reload-a").await;
    assert_nothing_left("openclaw-tag-reload-b").await;
}

/// A server that cannot start while another instance is running.
const ALONE: &str = r#"mkdir "$LOCK" || exit 9; "$@"; rmdir "$LOCK""#;

#[tokio::test]
async fn a_server_starts_after_the_one_it_replaces_has_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("lock");
    let (program, args) = TestServer::stdio(&Script::new().name("openclaw-tag-reload-alone"));
    let alone = |value: &str| {
        let mut all = vec!["-c".to_owned(), ALONE.replace('$', "$$"), "sh".to_owned()];
        all.push(program.display().to_string());
        all.extend(args.clone());
        let env = json!({ "LOCK": lock, "COLOUR": value });
        servers(json!({ "x": {
            "command": "sh", "args": all, "env": env, "restartOnCrash": false,
        } }))
    };
    let (fleet, _) = ready(&alone("red")).await;
    assert_eq!(tools(&fleet).statuses()[0].state, ServerState::Ready);
    // The second waits for the first. The third replaces the second before it has started, and
    // waits as well.
    fleet.apply(&alone("green"));
    fleet.apply(&alone("blue"));
    let colour = call(&tools(&fleet), "mcp_x_env", json!({ "name": "COLOUR" })).await;
    assert!(colour.text().contains("blue"), "{colour:?}");
    assert_eq!(tools(&fleet).statuses()[0].last_error, None);
    fleet.stop().await;
    assert_nothing_left("openclaw-tag-reload-alone").await;
}

#[tokio::test]
async fn a_call_that_waited_for_a_replaced_server_is_checked_against_the_new_tool() {
    let wants = |name: &str| json!({ "type": "object", "properties": { name: { "type": "string" } }, "required": [name] });
    let red = Script::new().tools([Tool::new("paint").schema(wants("red"))]);
    let blue =
        Script::new().tools([Tool::new("paint").schema(wants("blue"))]).initialize_delay_ms(300);
    let (fleet, _) = ready(&servers(json!({ "x": entry(&red) }))).await;
    fleet.apply(&servers(json!({ "x": entry(&blue) })));
    let outcome = call(&tools(&fleet), "mcp_x_paint", json!({ "red": "a" })).await;
    assert_eq!(outcome.details.failure, Some(ToolFailure::InvalidArguments), "{outcome:?}");
    assert!(outcome.text().contains("blue"), "{outcome:?}");
    fleet.stop().await;
}

#[tokio::test]
async fn a_server_that_was_given_up_is_tried_again_when_its_entry_changes() {
    let folder = tempfile::tempdir().unwrap();
    // Each of the three handshakes fails at first.
    let script = Script::new().failing_starts(3, folder.path().join("starts"));
    let once = |more: Value| {
        let mut entry = entry_with(&script, more);
        entry["restartOnCrash"] = json!(false);
        servers(json!({ "x": entry }))
    };
    let (fleet, _) = ready(&once(json!({}))).await;
    let mut snapshots = tools(&fleet).server("x").unwrap().snapshots();
    let failed = snapshots.wait_for(|snapshot| snapshot.state == ServerState::Failed);
    tokio::time::timeout(Duration::from_secs(60), failed).await.unwrap().unwrap();
    fleet.apply(&once(json!({ "timeout": 50_000 })));
    let ready = snapshots.wait_for(|snapshot| snapshot.state == ServerState::Ready);
    tokio::time::timeout(Duration::from_secs(60), ready).await.unwrap().unwrap();
    fleet.stop().await;
}
