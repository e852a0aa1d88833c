//! Both lanes of a connection, against a real server that misbehaves on command.

use std::time::Duration;

use openclaw_mcp_client::wire::{CallError, Closed, TimeLimits};
use openclaw_testkit::{Ask, Junk, Recording, Script};

use crate::support::{Connection, LIMITS};

/// Asserts that the server is told that a call is cancelled.
async fn assert_cancelled(recording: Recording) {
    let told = tokio::task::spawn_blocking(move || {
        recording.wait_for(Duration::from_secs(60), |message| {
            message.to_string().contains("notifications/cancelled")
        })
    });
    assert!(told.await.unwrap().is_some());
}

#[tokio::test]
async fn calls_and_rmcp_share_one_connection() {
    let connection = Connection::open(&Script::new()).await;
    let (text, tools) =
        tokio::join!(connection.echo("hello\n\u{2028}\"x\""), connection.rmcp.list_all_tools());
    assert_eq!(text, "hello\n\u{2028}\"x\"");
    assert!(tools.unwrap().iter().any(|tool| tool.name == "echo"));
    connection.close().await;
}

#[tokio::test]
async fn concurrent_calls_each_get_their_own_response() {
    let connection = Connection::open(&Script::new()).await;
    let texts: Vec<String> =
        (0..500).map(|number| format!("{number} {}", "x".repeat(number))).collect();
    let answers =
        futures_util::future::join_all(texts.iter().map(|text| connection.echo(text))).await;
    assert_eq!(answers, texts);
    assert_eq!(connection.fast.in_flight(), 0);
    connection.close().await;
}

#[tokio::test]
async fn unusual_responses_are_understood() {
    let junk = Script::new()
        .junk_before(Junk::Line("Server listening…".into()))
        .junk_between(Junk::NonUtf8)
        .junk_between(Junk::Blank)
        .junk_between(Junk::Line("{\"not\": \"a message\"}".into()));
    for script in [
        junk,
        Script::new().string_ids(),
        Script::new().answer_twice(),
        Script::new().batch_answers(),
        Script::new().unsolicited(),
        Script::new().split_messages(5),
        Script::new().crlf(),
        Script::new().log_notifications(),
    ] {
        let connection = Connection::open(&script).await;
        for number in 0..3 {
            let text = number.to_string();
            assert_eq!(connection.echo(&text).await, text, "{script:?}");
        }
        connection.close().await;
    }
}

#[tokio::test]
async fn requests_from_the_server_are_answered_during_a_call() {
    for ask in [Ask::Ping, Ask::Roots, Ask::Sampling] {
        let connection = Connection::open(&Script::new().ask(ask).ask_with_client_id()).await;
        let result = connection.call("echo", r#"{"text":"x"}"#, LIMITS).await.unwrap();
        assert!(result["content"].is_array(), "{ask:?}: {result}");
        connection.close().await;
    }
}

#[tokio::test]
async fn an_error_of_the_server_is_passed_on_unchanged() {
    let connection = Connection::open(&Script::new().unknown_tool("echo")).await;
    let error = connection.call("echo", r#"{"text":"x"}"#, LIMITS).await.unwrap_err();
    assert!(matches!(&error, CallError::Rpc(raw) if raw.get().contains("echo")), "{error:?}");
    connection.close().await;
}

#[tokio::test]
async fn a_call_that_takes_too_long_times_out_and_is_cancelled_on_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::at(folder.path().join("record"));
    let script = Script::new().wrong_id().record(recording.path());
    let connection = Connection::open(&script).await;
    let hurry = TimeLimits { timeout: Duration::from_millis(100), ..LIMITS };
    let error = connection.call("echo", r#"{"text":"x"}"#, hurry).await.unwrap_err();
    assert!(matches!(error, CallError::TimedOut(_)), "{error:?}");
    assert_cancelled(recording).await;
    assert_eq!(connection.fast.in_flight(), 0);
    connection.close().await;
}

#[tokio::test]
async fn dropping_a_call_cancels_it() {
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::at(folder.path().join("record"));
    let connection = Connection::open(&Script::new().record(recording.path())).await;
    let call = connection.call("sleep", r#"{"ms":60000}"#, LIMITS);
    assert!(tokio::time::timeout(Duration::from_millis(50), call).await.is_err());
    assert_cancelled(recording).await;
    assert_eq!(connection.echo("still there").await, "still there");
    connection.close().await;
}

#[tokio::test]
async fn progress_prolongs_a_call_up_to_the_cap() {
    let connection = Connection::open(&Script::new()).await;
    // On a busy machine seconds may pass between two messages of a server.
    let patient = TimeLimits { timeout: Duration::from_secs(10), cap: Duration::from_secs(120) };
    let capped = TimeLimits { timeout: Duration::from_secs(10), cap: Duration::from_secs(11) };
    let (slow, endless) = tokio::join!(
        connection.call("sleep", r#"{"ms":12000,"every":50}"#, patient),
        connection.call("sleep", r#"{"ms":600000,"every":50}"#, capped),
    );
    assert!(slow.is_ok(), "{slow:?}");
    assert!(matches!(endless, Err(CallError::TimedOut(_))), "{endless:?}");
    connection.close().await;
}

#[tokio::test]
async fn a_crash_fails_pending_calls_immediately() {
    let connection = Connection::open(&Script::new()).await;
    let patient = TimeLimits { timeout: Duration::from_secs(600), cap: Duration::from_secs(600) };
    let (slow, crash) = tokio::join!(
        connection.call("sleep", r#"{"ms":600000}"#, patient),
        connection.call("crash", "{}", patient),
    );
    for error in [slow.unwrap_err(), crash.unwrap_err()] {
        assert!(matches!(error, CallError::Closed(Closed::ByServer)), "{error:?}");
    }
    let error = connection.call("echo", "{}", patient).await.unwrap_err();
    assert!(matches!(error, CallError::Closed(_)), "{error:?}");
    connection.close().await;
}

#[tokio::test]
async fn a_line_without_end_closes_the_connection_and_says_so() {
    let connection = Connection::open(&Script::new()).await;
    let big = format!(r#"{{"bytes":{}}}"#, 65 * 1024 * 1024);
    let error = connection.call("big", &big, LIMITS).await.unwrap_err();
    assert!(matches!(&error, CallError::Closed(Closed::LineTooLong)), "{error:?}");
    assert!(error.to_string().contains("longer than 64 MiB"));
    connection.close().await;
}

#[tokio::test]
async fn a_large_result_arrives_whole() {
    let connection = Connection::open(&Script::new()).await;
    let big = format!(r#"{{"bytes":{}}}"#, 10 * 1024 * 1024);
    let result = connection.call("big", &big, LIMITS).await.unwrap();
    assert_eq!(result["content"][0]["text"].as_str().unwrap().len(), 10 * 1024 * 1024);
    connection.close().await;
}
