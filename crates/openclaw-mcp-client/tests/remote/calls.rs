//! Calls over HTTP, and their responses.

use std::time::Duration;

use openclaw_mcp_client::wire::param_headers;
use openclaw_mcp_client::wire::{CallError, Closed, TimeLimits, WireCall};
use openclaw_testkit::{Ask, Script};
use serde_json::json;
use serde_json::value::RawValue;

use crate::support::{Connection, LIMITS, MODERN_META};

#[tokio::test]
async fn responses_arrive_as_json_and_as_streams() {
    for script in [
        Script::new().legacy(),
        Script::new().legacy().sse_answers(),
        Script::new().legacy().no_sessions().no_get(),
        Script::new().modern().sse_answers(),
        Script::new().legacy().sse_answers().batch_answers(),
        Script::new().legacy().string_ids(),
        Script::new().legacy().sse_answers().log_notifications(),
    ] {
        let connection = Connection::open(script.clone()).await;
        for text in ["hello\n\u{2028}\"x\"", "again"] {
            assert_eq!(connection.echo(text).await, text, "{script:?}");
        }
        assert_eq!(connection.lane().in_flight(), 0);
        connection.close().await;
    }
}

#[tokio::test]
async fn marked_arguments_are_also_sent_as_headers() {
    let schema = json!({ "type": "object", "properties": {
        "text": { "type": "string", "x-mcp-header": "Text" },
    } });
    let headers = param_headers::of_schema(schema.as_object().unwrap()).unwrap();
    let connection = Connection::open(Script::new().modern()).await;
    let arguments = RawValue::from_string(r#"{"text":"plain"}"#.to_owned()).unwrap();
    let call = WireCall {
        tool: "echo",
        arguments: &arguments,
        meta: MODERN_META,
        more: "",
        headers: &headers,
        trace: None,
        work: None,
    };
    connection.lane().call_tool(call, LIMITS, None).await.unwrap();
    let ended = connection.close().await;
    let call = ended.http("POST").into_iter().find(|it| it["body"]["method"] == "tools/call");
    assert_eq!(call.unwrap()["headers"]["mcp-param-text"], "plain");
}

#[tokio::test]
async fn concurrent_calls_each_get_their_own_response() {
    for script in [Script::new().modern(), Script::new().legacy_sse_only()] {
        let connection = Connection::open(script).await;
        let texts: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let answers = texts.iter().map(|text| connection.echo(text));
        assert_eq!(futures_util::future::join_all(answers).await, texts);
        connection.close().await;
    }
}

#[tokio::test]
async fn an_error_of_the_server_is_passed_on_unchanged() {
    for script in [Script::new().legacy(), Script::new().modern(), Script::new().legacy_sse_only()]
    {
        let connection = Connection::open(script.unknown_tool("echo")).await;
        let error = connection.failure().await;
        assert!(matches!(&error, CallError::Rpc(raw) if raw.get().contains("echo")), "{error:?}");
        connection.close().await;
    }
}

#[tokio::test]
async fn requests_from_the_server_are_answered_during_a_call() {
    for script in [
        Script::new().legacy(),
        Script::new().legacy().sse_answers(),
        Script::new().legacy_sse_only(),
    ] {
        let connection = Connection::open(script.ask(Ask::Ping)).await;
        assert!(connection.call("echo", r#"{"text":"x"}"#, LIMITS).await.is_ok());
        connection.close().await;
    }
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled_by_a_message_or_by_closing_its_stream() {
    let (timeout, cap) = (Duration::from_millis(300), Duration::from_millis(300));
    let hurry = TimeLimits { timeout, cap };
    for script in [Script::new().legacy().sse_answers(), Script::new().legacy_sse_only()] {
        let connection = Connection::open(script).await;
        let error = connection.call("sleep", r#"{"ms":60000}"#, hurry).await.unwrap_err();
        assert!(matches!(error, CallError::TimedOut(_)), "{error:?}");
        let told = |line: &serde_json::Value| line["body"]["method"] == "notifications/cancelled";
        assert!(connection.received(told).await);
        assert_eq!(connection.echo("still there").await, "still there");
        connection.close().await;
    }
    let connection = Connection::open(Script::new().modern().sse_answers()).await;
    let error = connection.call("sleep", r#"{"ms":60000}"#, hurry).await.unwrap_err();
    assert!(matches!(error, CallError::TimedOut(_)), "{error:?}");
    assert!(connection.received(|line| !line["closed"].is_null()).await);
    assert!(connection.recording.of_method("notifications/cancelled").is_empty());
    connection.close().await;
}

#[tokio::test]
async fn progress_prolongs_a_call_up_to_the_cap() {
    let connection = Connection::open(Script::new().legacy().sse_answers()).await;
    // On a busy machine seconds may pass between two messages of a server.
    let patient = TimeLimits { timeout: Duration::from_secs(10), cap: Duration::from_secs(120) };
    let capped = TimeLimits { timeout: Duration::from_secs(10), cap: Duration::from_secs(11) };
    let (slow, endless) = tokio::join!(
        connection.call("sleep", r#"{"ms":12000,"every":100}"#, patient),
        connection.call("sleep", r#"{"ms":600000,"every":100}"#, capped),
    );
    assert!(slow.is_ok(), "{slow:?}");
    assert!(matches!(endless, Err(CallError::TimedOut(_))), "{endless:?}");
    connection.close().await;
}

#[tokio::test]
async fn closing_fails_pending_calls_immediately() {
    for script in [Script::new().legacy(), Script::new().modern(), Script::new().legacy_sse_only()]
    {
        let mut connection = Connection::open(script).await;
        let lane = connection.lane().clone();
        let waiting = tokio::spawn(async move {
            let params =
                RawValue::from_string(r#"{"name":"sleep","arguments":{"ms":600000}}"#.to_owned());
            lane.request("tools/call", &params.unwrap(), LIMITS).await
        });
        let asked = |line: &serde_json::Value| line["body"]["params"]["name"] == "sleep";
        assert!(connection.received(asked).await);
        let _ = connection.opened.rmcp.close().await;
        let error = waiting.await.unwrap().unwrap_err();
        // A modern server rejects this one immediately: it has no `_meta`.
        assert!(matches!(error, CallError::Closed(Closed::ByUs) | CallError::Rpc(_)), "{error:?}");
        connection.close().await;
    }
}

#[tokio::test]
async fn the_end_of_the_sse_stream_closes_the_connection() {
    let connection = Connection::open(Script::new().legacy_sse_only()).await;
    let lane = connection.lane().clone();
    connection.server.kill();
    assert_eq!(lane.until_closed().await, Closed::ByServer);
}
