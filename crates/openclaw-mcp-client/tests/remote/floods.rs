//! Servers that send without end: what they can make us hold is bounded.

use std::time::Duration;

use openclaw_mcp_client::wire::{CallError, Closed, TimeLimits, UnusableResponse};
use openclaw_testkit::{Endless, RequestFlood, Script};

use crate::support::{Connection, LIMITS};

/// The most connections that a server can occupy with requests to us.
const AT_ONCE: usize = 16;
/// Enough for a busy machine.
const SOON: Duration = Duration::from_secs(120);

/// The transports on which a server can send requests on its own.
fn transports() -> [Script; 2] {
    [Script::new().legacy(), Script::new().legacy_sse_only()]
}

/// Returns how many responses of ours the server has received.
fn responses(posts: &[serde_json::Value]) -> usize {
    posts.iter().filter(|post| post["body"]["method"].is_null()).count()
}

#[tokio::test]
async fn a_server_that_floods_and_accepts_no_response_gets_few_connections_and_is_disconnected() {
    for script in transports() {
        let connection = Connection::open(script.request_flood(RequestFlood::Stalling)).await;
        let lane = connection.lane().clone();
        let closed = tokio::time::timeout(SOON, lane.until_closed()).await.unwrap();
        assert_eq!(closed, Closed::Flooded);
        let error = connection.failure().await;
        assert!(matches!(error, CallError::Closed(Closed::Flooded)), "{error:?}");
        let recording = connection.close().await;
        assert_eq!(responses(&recording.http("POST")), AT_ONCE);
    }
}

#[tokio::test]
async fn a_server_that_keeps_flooding_is_disconnected_although_it_accepts_the_responses() {
    for script in transports() {
        let connection = Connection::open(script.request_flood(RequestFlood::Accepting)).await;
        let lane = connection.lane().clone();
        let closed = tokio::time::timeout(SOON, lane.until_closed()).await.unwrap();
        assert_eq!(closed, Closed::Flooded);
        let recording = connection.close().await;
        assert!(responses(&recording.http("POST")) > AT_ONCE, "requests are answered until then");
    }
}

#[tokio::test]
async fn comments_without_end_count_as_an_endless_stream() {
    let script = Script::new().legacy().endless_stream(Endless::Comments);
    let connection = Connection::open(script).await;
    let error = connection.call("echo", r#"{"text":"x"}"#, LIMITS).await.unwrap_err();
    assert!(matches!(error, CallError::UnusableResponse(UnusableResponse::Endless)), "{error:?}");
    connection.close().await;
}

#[tokio::test]
async fn a_call_times_out_although_the_server_never_pauses() {
    let script = Script::new().legacy().endless_stream(Endless::ForeignAnswers);
    let connection = Connection::open(script).await;
    let hurry = Duration::from_millis(100);
    let hurry = TimeLimits { timeout: hurry, cap: hurry };
    let error = connection.call("echo", r#"{"text":"x"}"#, hurry).await.unwrap_err();
    assert!(matches!(error, CallError::TimedOut(_)), "{error:?}");
    connection.close().await;
}
