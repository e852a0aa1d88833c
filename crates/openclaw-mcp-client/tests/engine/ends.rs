//! Local servers that exit on their own, most of them while a child holds their pipes open.

use std::collections::BTreeMap;
use std::time::Duration;

use openclaw_mcp_client::connection::Connection;
use openclaw_mcp_client::connection::local::{self, LocalConnectError, LocalOptions};
use openclaw_mcp_client::process::{Launch, ShutdownTimeouts};
use openclaw_mcp_client::wire::{CallError, Closed, TimeLimits};
use openclaw_process::Guard;
use openclaw_testkit::{Grandchild, Script, processes};

use crate::common::assert_nothing_left;
use crate::local::{call, plan, raw};

/// Longer than any test may take.
const FOREVER: Duration = Duration::from_secs(600);
const PATIENT: TimeLimits = TimeLimits { timeout: FOREVER, cap: FOREVER };
/// Enough for a busy machine, and far less than forever.
const SOON: Duration = Duration::from_secs(60);

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, future).await.unwrap()
}

fn script_with_a_child(tag: &str) -> Script {
    let holds = Grandchild { hold_pipes: true, ..Grandchild::default() };
    Script::new().grandchild_like(holds).name(tag)
}

async fn open(script: &Script) -> Connection {
    local::open(plan(script), &Guard::none()).await.unwrap()
}

fn code_of(error: &CallError) -> Option<i32> {
    match error {
        CallError::Closed(Closed::Ended(status)) => status.code(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn calls_fail_immediately_with_the_exit_status_even_if_a_child_holds_the_pipes() {
    for script in [script_with_a_child("openclaw-tag-exits"), Script::new()] {
        let script = script.name("openclaw-tag-exits");
        let connection = open(&script).await;
        let (none, code) = (raw(r#"{"ms":600000}"#), raw(r#"{"code":3}"#));
        let slow = call(&connection, "sleep", &none, PATIENT);
        let crash = call(&connection, "crash", &code, PATIENT);
        let (slow, crash) = soon(Box::pin(async { tokio::join!(slow, crash) })).await;
        assert_eq!(code_of(&slow.unwrap_err()), Some(3));
        assert_eq!(code_of(&crash.unwrap_err()), Some(3));
        let late = soon(call(&connection, "echo", &raw("{}"), PATIENT)).await;
        assert_eq!(code_of(&late.unwrap_err()), Some(3));
        connection.close(ShutdownTimeouts::default()).await;
    }
    assert_nothing_left("openclaw-tag-exits").await;
}

#[tokio::test]
#[cfg(unix)]
async fn a_signal_that_kills_a_server_is_reported() {
    use nix::sys::signal::{Signal, kill};
    let connection = open(&script_with_a_child("openclaw-tag-signal")).await;
    let pid = connection.pid().unwrap();
    kill(nix::unistd::Pid::from_raw(pid.try_into().unwrap()), Signal::SIGKILL).unwrap();
    let cause = soon(connection.until_closed()).await;
    assert!(cause.contains("was killed by signal 9"), "{cause}");
    let words = soon(connection.last_words()).await;
    assert!(words.iter().any(|line| line.starts_with("grandchild ")), "{words:?}");
    connection.close(ShutdownTimeouts::default()).await;
    assert!(processes::in_group(pid).is_empty(), "the child is gone too");
    assert_nothing_left("openclaw-tag-signal").await;
}

#[tokio::test]
async fn a_response_from_before_the_exit_is_delivered() {
    for _ in 0..3 {
        let script = script_with_a_child("openclaw-tag-last-answer").crash_after_calls(1);
        let connection = open(&script).await;
        let text = "x".repeat(30_000);
        let arguments = raw(&format!(r#"{{"text":"{text}"}}"#));
        let answer = soon(call(&connection, "echo", &arguments, PATIENT)).await;
        assert!(answer.unwrap().get().contains(&text));
        let cause = soon(connection.until_closed()).await;
        assert!(cause.contains("exited with status 1"), "{cause}");
        connection.close(ShutdownTimeouts::default()).await;
    }
    assert_nothing_left("openclaw-tag-last-answer").await;
}

/// Why a server that is a command of a shell cannot be connected.
#[cfg(unix)]
async fn failure_of(command: &str) -> LocalConnectError {
    let launch = Launch {
        program: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), command.to_owned()],
        env: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned().into())]),
        cwd: None,
    };
    let plan = LocalOptions { launch, timeout: FOREVER, ..plan(&Script::new()) };
    soon(local::open(plan, &Guard::none())).await.unwrap_err()
}

#[tokio::test]
#[cfg(unix)]
async fn a_server_that_exits_at_startup_and_leaves_a_child_is_quoted_immediately() {
    let command = "echo 'license missing' >&2; sleep 511111.25 & exit 3";
    let error = failure_of(command).await;
    let LocalConnectError::Ended { status, words, .. } = &error else { panic!("{error:?}") };
    assert!(status.contains('3'), "{status}");
    assert_eq!(words.last_lines, ["license missing"]);
    assert_nothing_left("sleep 511111.25").await;
}

#[tokio::test]
#[cfg(unix)]
async fn an_invalid_handshake_response_is_reported_although_the_server_exits_afterwards() {
    let command = r#"while read -r line; do
        id=${line#*\"id\":}
        echo "{\"jsonrpc\":\"2.0\",\"id\":${id%%,*},\"result\":{}}"
    done"#;
    let error = failure_of(command).await;
    assert!(matches!(error, LocalConnectError::Refused { .. }), "{error:?}");
    assert!(error.to_string().contains("response to the handshake is invalid"), "{error}");
}
