//! Connections to local servers, from the start to the end of the process.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use openclaw_config::{Surroundings, Transport, load_text};
use openclaw_mcp::backoff::Backoff;
use openclaw_mcp::era::{Era, Finding};
use openclaw_mcp::guard::Guard;
use openclaw_mcp::local::{ConnectError, LocalConnection, LocalDial, Plan, Step};
use openclaw_mcp::process::{Launch, Patience};
use openclaw_mcp::supervisor::{Snapshot, State, Supervisor};
use openclaw_mcp::wire::{CallError, Closed};
use openclaw_secrets::{Environment, Redactor, Resolver, Settings};
use openclaw_testkit::{Discover, Script, TestServer, processes};
use serde_json::value::RawValue;

use crate::support::{LIMITS, client};

fn plan(script: &Script) -> Plan {
    let (program, args) = TestServer::stdio(script);
    let program = program.to_str().unwrap().to_owned();
    let launch = Launch { program, args, env: BTreeMap::new(), cwd: None };
    let timeout = Duration::from_secs(60);
    Plan { server: "test".to_owned(), launch, client: client(), known_era: None, timeout }
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

/// Asserts that nothing of a server is left, which its script names by a tag.
async fn assert_nothing_left(tag: &'static str) {
    let left = tokio::task::spawn_blocking(move || {
        processes::wait_until_none(Duration::from_secs(20), || processes::mentioning(tag))
    });
    assert_eq!(left.await.unwrap(), Vec::<u32>::new());
}

#[tokio::test]
async fn a_server_of_every_version_is_connected_to_listed_and_ended() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let script = Script::new().versions([version]).name("openclaw-tag-versions");
        let connection = LocalConnection::open(plan(&script), &Guard::none()).await.unwrap();
        assert_eq!(connection.version(), Some(version));
        let listing = connection.list_tools(LIMITS).await.unwrap();
        assert!(listing.tools.iter().any(|tool| tool.name == "echo"));
        let result =
            connection.call_tool("echo", &raw(r#"{"text":"hello"}"#), LIMITS).await.unwrap();
        assert!(result.get().contains("hello"), "{version}: {result}");
        connection.close(Patience::default()).await;
    }
    assert_nothing_left("openclaw-tag-versions").await;
}

#[tokio::test]
async fn a_server_that_ignores_everything_is_gone_when_its_connection_is_closed() {
    let script = Script::new()
        .ignore_sigterm()
        .ignore_stdin_close()
        .grandchild()
        .name("openclaw-tag-stubborn");
    let connection = LocalConnection::open(plan(&script), &Guard::none()).await.unwrap();
    let pid = connection.pid();
    let hurry =
        Patience { after_close: Duration::from_millis(50), after_term: Duration::from_millis(200) };
    connection.close(hurry).await;
    assert!(processes::in_group(pid).is_empty());
    assert_nothing_left("openclaw-tag-stubborn").await;
}

#[tokio::test]
async fn a_server_that_ends_at_once_is_quoted() {
    let script =
        Script::new().stderr_line("no API key given").exit_at_start(3).name("openclaw-tag-ends");
    let error = LocalConnection::open(plan(&script), &Guard::none()).await.unwrap_err();
    let ConnectError::Ended { status, last_lines, .. } = &error else { panic!("{error:?}") };
    assert!(status.contains('3'), "{status}");
    assert_eq!(last_lines, &["no API key given"]);
    assert!(error.to_string().starts_with("it ended with exit status: 3 while"), "{error}");
    assert_nothing_left("openclaw-tag-ends").await;
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up_and_killed() {
    let script = Script::new()
        .legacy()
        .discover(Discover::Silence)
        .initialize_silence()
        .name("openclaw-tag-silent");
    let plan = Plan { timeout: Duration::from_secs(1), ..plan(&script) };
    let error = LocalConnection::open(plan, &Guard::none()).await.unwrap_err();
    assert!(matches!(error, ConnectError::TimedOut { step: Step::Initializing, .. }), "{error:?}");
    assert_nothing_left("openclaw-tag-silent").await;
}

#[tokio::test]
async fn a_server_that_is_slow_to_start_and_silent_on_the_probe_is_connected_to() {
    let script = Script::new().legacy().discover(Discover::Silence).start_delay_ms(700);
    let connection = LocalConnection::open(plan(&script), &Guard::none()).await.unwrap();
    assert_eq!(connection.finding(), Finding::Silent);
    connection.close(Patience::default()).await;
}

#[tokio::test]
async fn an_era_that_is_known_is_not_asked_for_again() {
    let script = Script::new().legacy().discover(Discover::Crash);
    let plan = Plan { known_era: Some(Era::Legacy), ..plan(&script) };
    let connection = LocalConnection::open(plan, &Guard::none()).await.unwrap();
    connection.close(Patience::default()).await;
}

#[tokio::test]
async fn a_supervised_server_that_crashes_comes_back() {
    let (program, args) = TestServer::stdio(&Script::new().name("openclaw-tag-comes-back"));
    let entry =
        serde_json::json!({ "mcp": { "servers": { "x": { "command": program, "args": args } } } });
    let surroundings = Surroundings { variable: &|_| None, home: None };
    let config =
        load_text(Path::new("openclaw.json"), &entry.to_string(), surroundings).config.unwrap();
    let Transport::Stdio(config) = config.agents[0].mcp.servers["x"].transport.clone() else {
        panic!("not stdio")
    };
    let host: Environment = [("PATH", "/bin")].into_iter().collect();
    let dial = LocalDial {
        server: "x".to_owned(),
        config,
        resolver: Resolver::new(Settings::default(), host.clone(), Redactor::new()),
        host,
        guard: Guard::none(),
        client: client(),
        known_era: None,
        timeout: Duration::from_secs(60),
    };
    let supervisor = Supervisor::start("x".to_owned(), dial, Backoff::process(5), false);
    let mut snapshots = supervisor.snapshots();
    let is_ready = |snapshot: &Snapshot<LocalConnection>| snapshot.state == State::Ready;
    let first = snapshots.wait_for(is_ready).await.unwrap().connection.clone().unwrap();
    let crashed = first.call_tool("crash", &raw("{}"), LIMITS).await;
    assert!(matches!(crashed, Err(CallError::Closed(Closed::ByServer))), "{crashed:?}");
    snapshots.wait_for(|snapshot| snapshot.state == State::Restarting).await.unwrap();
    let second = snapshots.wait_for(is_ready).await.unwrap().connection.clone().unwrap();
    assert_ne!(first.pid(), second.pid());
    assert!(second.call_tool("count", &raw("{}"), LIMITS).await.is_ok());
    supervisor.stop().await;
    assert_nothing_left("openclaw-tag-comes-back").await;
}
