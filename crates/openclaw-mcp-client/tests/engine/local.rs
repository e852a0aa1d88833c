//! Connections to local servers, from spawn to exit.

use std::time::Duration;

use openclaw_mcp_client::connection::Connection;
use openclaw_mcp_client::connection::era::Era;
use openclaw_mcp_client::connection::local::{self, LocalConnectError, LocalOptions, LocalStep};
use openclaw_mcp_client::process::ShutdownTimeouts;
use openclaw_mcp_client::wire::json::Json;
use openclaw_mcp_client::wire::{CallError, TimeLimits, WireCall};
use openclaw_process::Guard;
use openclaw_testkit::{Discover, Junk, Script, processes};
use openclaw_tools::CallOptions;
use serde_json::value::RawValue;

use crate::common::{self, assert_nothing_left};
use crate::support::LIMITS;

pub(crate) fn plan(script: &Script) -> LocalOptions {
    common::plan(common::scripted(script))
}

/// Calls a tool like a user, without headers.
pub(crate) fn call<'a>(
    connection: &'a Connection,
    tool: &'a str,
    arguments: &'a RawValue,
    limits: TimeLimits,
) -> impl Future<Output = Result<Json, CallError>> + Send + 'a {
    let call =
        WireCall { tool, arguments, meta: "", more: "", headers: &[], trace: None, work: None };
    connection.call_tool(call, limits, CallOptions::default())
}

pub(crate) fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

#[tokio::test]
async fn a_server_of_every_version_is_connected_to_listed_and_ended() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let script = Script::new().versions([version]).name("openclaw-tag-versions");
        let connection = local::open(plan(&script), &Guard::none()).await.unwrap();
        assert_eq!(connection.about().version.as_deref(), Some(version));
        let listing = connection.list_tools(LIMITS).await.unwrap();
        assert!(listing.entries.iter().any(|tool| tool.name == "echo"));
        let result = call(&connection, "echo", &raw(r#"{"text":"hello"}"#), LIMITS).await.unwrap();
        assert!(result.get().contains("hello"), "{version}: {result}");
        connection.close(ShutdownTimeouts::default()).await;
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
    let connection = local::open(plan(&script), &Guard::none()).await.unwrap();
    let pid = connection.pid().unwrap();
    let hurry = ShutdownTimeouts {
        after_close: Duration::from_millis(50),
        after_term: Duration::from_millis(200),
    };
    connection.close(hurry).await;
    assert!(processes::in_group(pid).is_empty());
    assert_nothing_left("openclaw-tag-stubborn").await;
}

#[tokio::test]
async fn the_stderr_of_a_server_that_exits_immediately_is_quoted() {
    let script =
        Script::new().stderr_line("no API key given").exit_at_start(3).name("openclaw-tag-ends");
    let error = local::open(plan(&script), &Guard::none()).await.unwrap_err();
    let LocalConnectError::Ended { status, words, .. } = &error else { panic!("{error:?}") };
    assert!(status.contains('3'), "{status}");
    assert_eq!(words.last_lines, ["no API key given"]);
    assert!(error.to_string().starts_with("exited with status 3 during"), "{error}");
    assert_nothing_left("openclaw-tag-ends").await;
}

#[tokio::test]
async fn an_unknown_version_is_rejected() {
    for version in ["banana", "2099-01-01"] {
        let script = Script::new()
            .answer_version(version)
            .discover(Discover::MethodNotFound)
            .name("openclaw-tag-unknown-version");
        let error = local::open(plan(&script), &Guard::none()).await.unwrap_err();
        assert!(matches!(error, LocalConnectError::Refused { .. }), "{error:?}");
        let message = error.to_string();
        assert!(
            message.contains(&format!("unsupported protocol version `{version}` (supported: ")),
            "{message}"
        );
        assert!(message.contains("2024-11-05") && message.contains("2025-11-25"), "{message}");
    }
    assert_nothing_left("openclaw-tag-unknown-version").await;
}

#[tokio::test]
async fn a_server_that_never_responds_times_out_and_is_killed() {
    let script = Script::new()
        .legacy()
        .discover(Discover::Silence)
        .initialize_silence()
        .name("openclaw-tag-silent");
    let plan = LocalOptions { timeout: Duration::from_secs(1), ..plan(&script) };
    let error = local::open(plan, &Guard::none()).await.unwrap_err();
    assert!(
        matches!(error, LocalConnectError::TimedOut { step: LocalStep::Detecting, .. }),
        "{error:?}"
    );
    assert_nothing_left("openclaw-tag-silent").await;
}

#[tokio::test]
async fn many_notifications_before_the_handshake_response_are_accepted() {
    let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
    let mut script = Script::new().name("openclaw-tag-much");
    for _ in 0..2_000 {
        script = script.junk_before(Junk::Line(note.to_owned()));
    }
    let opened = local::open(plan(&script), &Guard::none()).await;
    drop(opened.unwrap());
    assert_nothing_left("openclaw-tag-much").await;
}

#[tokio::test]
async fn output_of_a_server_that_hangs_is_quoted() {
    let script = Script::new()
        .legacy()
        .discover(Discover::MethodNotFound)
        .initialize_silence()
        .stderr_line("waiting for the database")
        .junk_before(Junk::Line("\u{1b}[32mListening on port 80".to_owned()))
        .name("openclaw-tag-talks");
    let plan = LocalOptions { timeout: Duration::from_secs(10), ..plan(&script) };
    let error = local::open(plan, &Guard::none()).await.unwrap_err();
    let LocalConnectError::TimedOut { words, .. } = &error else { panic!("{error:?}") };
    assert_eq!(words.last_lines, ["waiting for the database"]);
    let message = error.to_string();
    assert!(message.contains("printed a line on stdout that is not an MCP message"), "{message}");
    assert!(message.contains("Listening on port 80") && !message.contains('\u{1b}'), "{message}");
    assert_nothing_left("openclaw-tag-talks").await;
}

#[tokio::test]
async fn a_server_that_is_slow_to_start_and_silent_on_the_probe_is_connected_to() {
    let script = Script::new().legacy().discover(Discover::Silence).start_delay_ms(700);
    let connection = local::open(plan(&script), &Guard::none()).await.unwrap();
    assert_eq!(connection.era(), Era::Legacy);
    connection.close(ShutdownTimeouts::default()).await;
}

#[tokio::test]
async fn the_era_is_detected_on_the_connection_that_is_then_used() {
    let mut cases = vec![
        (Script::new().modern(), Era::Modern),
        (Script::new(), Era::Modern),
        (Script::new().modern().start_delay_ms(900), Era::Modern),
        (Script::new().start_delay_ms(900), Era::Modern),
        (Script::new().legacy().discover(Discover::Silence), Era::Legacy),
        (Script::new().legacy().discover(Discover::DelayMs(700)), Era::Legacy),
    ];
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        for refusal in [Discover::MethodNotFound, Discover::InvalidParams] {
            cases.push((Script::new().versions([version]).discover(refusal), Era::Legacy));
        }
    }
    for (script, era) in cases {
        let connection = local::open(plan(&script), &Guard::none()).await.unwrap();
        assert_eq!(connection.era(), era, "{script:?}");
        let result = call(&connection, "echo", &raw(r#"{"text":"hi"}"#), LIMITS).await;
        assert!(result.unwrap().get().contains("hi"), "{script:?}");
        connection.close(ShutdownTimeouts::default()).await;
    }
}

#[tokio::test]
async fn a_known_era_is_not_detected_again() {
    let script = Script::new().legacy().discover(Discover::Crash);
    let plan = LocalOptions { known_era: Some(Era::Legacy), ..plan(&script) };
    let connection = local::open(plan, &Guard::none()).await.unwrap();
    connection.close(ShutdownTimeouts::default()).await;
}

#[tokio::test]
async fn an_endless_first_line_is_reported() {
    let script = Script::new().junk_before(Junk::LineOfMb(200)).name("openclaw-tag-first-line");
    let error = local::open(plan(&script), &Guard::none()).await.unwrap_err();
    assert!(error.to_string().contains("a line longer than 64 MiB"), "{error}");
    assert_nothing_left("openclaw-tag-first-line").await;
}

#[tokio::test]
#[cfg(unix)]
async fn a_server_of_any_era_answers_pings_and_one_that_hangs_does_not() {
    use nix::sys::signal::{Signal, kill};
    let short = TimeLimits { timeout: Duration::from_millis(300), cap: Duration::from_millis(300) };
    for script in [Script::new().legacy(), Script::new().modern()] {
        let script = script.name("openclaw-tag-ping");
        let connection = local::open(plan(&script), &Guard::none()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        let before = connection.last_activity();
        connection.ping(LIMITS).await.unwrap();
        // Some machines have a clock resolution of 4 or 10 ms.
        let grain = Duration::from_millis(10);
        assert!(before + grain >= Duration::from_millis(50), "{before:?}");
        assert!(connection.last_activity() < LIMITS.timeout);
        let pid = nix::unistd::Pid::from_raw(connection.pid().unwrap().try_into().unwrap());
        kill(pid, Signal::SIGSTOP).unwrap();
        let error = connection.ping(short).await.unwrap_err();
        assert!(matches!(error, CallError::TimedOut(_)), "{error:?}");
        assert!(connection.last_activity() + grain >= short.timeout, "nothing was received since");
        kill(pid, Signal::SIGCONT).unwrap();
        connection.close(ShutdownTimeouts::default()).await;
    }
    assert_nothing_left("openclaw-tag-ping").await;
}
