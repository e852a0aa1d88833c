//! Lost sessions and broken streams.

use std::collections::BTreeSet;
use std::time::Duration;

use openclaw_mcp_client::wire::{CallError, Closed, ReachProblem};
use openclaw_testkit::{DropStream, Fault, On, Recording, Script, TestServer};

use crate::support::{Connection, LIMITS, open, plan};

#[tokio::test]
async fn a_lost_session_is_renewed_once_for_all_callers_and_every_call_is_made() {
    let script = Script::new().legacy().session_lost_after_calls(1);
    let connection = Connection::open(script).await;
    let first = connection.lane().session_id();
    connection.echo("before").await;
    let texts: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    let answers = texts.iter().map(|text| connection.echo(text));
    assert_eq!(futures_util::future::join_all(answers).await, texts);
    assert_ne!(connection.lane().session_id(), first);
    let tools = connection.opened.rmcp.list_all_tools().await.unwrap();
    assert!(!tools.is_empty(), "rmcp continues in the new session");
    let recording = connection.close().await;
    assert_eq!(recording.of_method("initialize").len(), 2, "the first, and one renewal");
    assert_eq!(recording.of_method("notifications/initialized").len(), 2);
}

#[tokio::test]
async fn a_session_that_cannot_be_renewed_is_a_lost_connection() {
    let lost = Fault::status(404).on(On::Call);
    let no_more = Fault::status(500).on(On::Handshake).after(2);
    let script = Script::new().legacy().fault(lost).fault(no_more);
    let connection = Connection::open(script).await;
    let error = connection.failure().await;
    assert!(matches!(error, CallError::Closed(Closed::Lost(_))), "{error:?}");
    assert!(matches!(connection.lane().until_closed().await, Closed::Lost(_)));
    connection.close().await;
}

#[tokio::test]
async fn a_call_is_retried_only_once() {
    let script = Script::new().legacy().fault(Fault::status(404).on(On::Call));
    let connection = Connection::open(script).await;
    let error = connection.failure().await;
    assert!(matches!(error, CallError::Protocol(_)), "{error:?}");
    let recording = connection.close().await;
    assert_eq!(recording.of_method("tools/call").len(), 2);
}

#[tokio::test]
async fn a_dropped_stream_is_resumed_where_it_ended() {
    for abrupt in [false, true] {
        let drop = DropStream { abrupt, ..DropStream::default() };
        let script = Script::new().legacy().drop_stream(drop).retry_ms(50);
        let connection = Connection::open(script).await;
        assert_eq!(connection.echo("hello").await, "hello", "abrupt: {abrupt}");
        let recording = connection.close().await;
        let resumed = recording.http("GET");
        let resumed = resumed.iter().filter(|get| get["headers"]["last-event-id"].is_string());
        assert_eq!(resumed.count(), 1);
        assert_eq!(recording.of_method("tools/call").len(), 1, "the call is not repeated");
    }
}

#[tokio::test]
async fn a_stream_that_cannot_be_resumed_fails_its_call() {
    let drop = DropStream { resumable: false, ..DropStream::default() };
    let script = Script::new().legacy().drop_stream(drop).retry_ms(20);
    let connection = Connection::open(script).await;
    let error = connection.failure().await;
    assert!(error.to_string().contains("cannot be resumed"), "{error:?}");
    assert_eq!(connection.lane().closed(), None, "the connection is not affected");
    connection.close().await;
}

#[tokio::test]
async fn a_connection_that_is_cut_before_the_response_is_reported_as_lost() {
    let cut = DropStream { abrupt: true, resumable: false, ..DropStream::default() };
    let without_ids = DropStream { ids: false, ..cut.clone() };
    for script in [
        Script::new().legacy().drop_stream(without_ids),
        Script::new().legacy().drop_stream(cut.clone()).retry_ms(20),
        Script::new().modern().drop_stream(cut),
    ] {
        let connection = Connection::open(script).await;
        let error = connection.call("sleep", r#"{"ms":300}"#, LIMITS).await.unwrap_err();
        let CallError::Unreachable(unreachable) = &error else { panic!("{error:?}") };
        assert_eq!(unreachable.problem, ReachProblem::Broken, "{error}");
        assert!(error.to_string().starts_with("connection lost: "), "{error}");
        connection.close().await;
    }
}

#[tokio::test]
async fn a_modern_call_whose_stream_ends_fails_immediately() {
    let script = Script::new().modern().drop_stream(DropStream::default()).retry_ms(20);
    let connection = Connection::open(script).await;
    let error = connection.call("sleep", r#"{"ms":300}"#, LIMITS).await.unwrap_err();
    assert!(matches!(error, CallError::Protocol(_)), "{error:?}");
    assert!(connection.close().await.http("GET").is_empty());
}

#[tokio::test]
async fn every_session_has_its_own_stream() {
    let script = Script::new().legacy().session_lost_after_calls(1);
    let connection = Connection::open(script).await;
    assert!(connection.received(|line| line["method"] == "GET").await);
    connection.echo("before").await;
    connection.echo("after").await;
    let session = connection.lane().session_id().unwrap();
    let of_the_new = move |line: &serde_json::Value| {
        line["method"] == "GET" && line["headers"]["mcp-session-id"] == session.as_str()
    };
    assert!(connection.received(of_the_new).await);
    let gets = connection.close().await.http("GET");
    let sessions: BTreeSet<String> =
        gets.iter().map(|get| get["headers"]["mcp-session-id"].to_string()).collect();
    assert_eq!(sessions.len(), 2);
}

#[tokio::test]
async fn a_server_that_disappears_is_reported_as_lost() {
    let mut connection = Connection::open(Script::new().legacy()).await;
    let lane = connection.lane().clone();
    assert!(connection.received(|line| line["method"] == "GET").await);
    connection.server.kill();
    let closed = tokio::time::timeout(Duration::from_secs(60), lane.until_closed()).await;
    assert!(matches!(closed.unwrap(), Closed::Lost(_)));
    let _ = connection.opened.rmcp.close().await;
}

#[tokio::test]
async fn a_connection_that_times_out_deletes_its_session() {
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::at(folder.path().join("record"));
    let script = Script::new().legacy().sse_answers().initialize_silence().record(recording.path());
    let server = TestServer::http(&script);
    let mut plan = plan(server.url());
    plan.timeout = Duration::from_secs(10);
    open(plan).await.unwrap_err();
    let ended = tokio::task::spawn_blocking(move || {
        recording.wait_for(Duration::from_secs(60), |line| line["method"] == "DELETE")
    });
    assert!(ended.await.unwrap().is_some());
}

#[tokio::test]
async fn dropping_a_connection_deletes_its_session_once() {
    let connection = Connection::open(Script::new().legacy()).await;
    let Connection { opened, recording, server, .. } = connection;
    drop(opened);
    let seen = recording.clone();
    let ended = tokio::task::spawn_blocking(move || {
        seen.wait_for(Duration::from_secs(60), |line| line["method"] == "DELETE")
    });
    assert!(ended.await.unwrap().is_some());
    server.kill();
    assert_eq!(recording.http("DELETE").len(), 1);
}
