//! Detection of a server's era and transport.

use std::time::Duration;

use openclaw_config::{HttpFlavour, ProtocolVersion};
use openclaw_mcp_client::connection::era::Era;
use openclaw_mcp_client::connection::remote::{
    HttpTransport, NegotiatedProtocol, RemoteError, RemotePlan, RemoteStep,
};
use openclaw_mcp_client::wire::ReachProblem;
use openclaw_testkit::{Discover, Fault, On, Script, TestServer};
use tokio::net::TcpSocket;

use crate::common::until;
use crate::support::{Connection, open, plan, refused};

const MODERN: NegotiatedProtocol =
    NegotiatedProtocol { era: Era::Modern, flavour: HttpTransport::Streamable };
const STREAMABLE: NegotiatedProtocol =
    NegotiatedProtocol { era: Era::Legacy, flavour: HttpTransport::Streamable };
const SSE: NegotiatedProtocol =
    NegotiatedProtocol { era: Era::Legacy, flavour: HttpTransport::Sse };

#[tokio::test]
async fn a_modern_server_is_detected_once_and_used_without_a_handshake() {
    let connection = Connection::open(Script::new().modern()).await;
    assert_eq!(connection.opened.known, MODERN);
    assert_eq!(connection.opened.version.as_deref(), Some("2026-07-28"));
    assert_eq!(connection.echo("hello").await, "hello");
    assert!(!connection.opened.rmcp.list_all_tools().await.unwrap().is_empty());
    assert_eq!(connection.lane().session_id(), None);
    let recording = connection.recording.clone();
    assert_eq!(recording.of_method("server/discover").len(), 1);
    assert!(recording.of_method("initialize").is_empty());
    for post in recording.http("POST") {
        assert_eq!(post["headers"]["mcp-protocol-version"], "2026-07-28", "{post}");
        assert_eq!(post["headers"]["mcp-method"], post["body"]["method"], "{post}");
    }
    let call = recording.http("POST").into_iter().find(|it| it["body"]["method"] == "tools/call");
    assert_eq!(call.unwrap()["headers"]["mcp-name"], "echo");
    connection.close().await;
}

#[tokio::test]
async fn a_modern_connection_opens_no_stream_and_deletes_no_session() {
    let connection = Connection::open(Script::new().modern()).await;
    connection.echo("x").await;
    let recording = connection.close().await;
    assert!(recording.http("GET").is_empty() && recording.http("DELETE").is_empty());
}

#[tokio::test]
async fn every_version_with_a_handshake_uses_its_session_and_header() {
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let connection = Connection::open(Script::new().versions([version])).await;
        assert_eq!(connection.opened.known, STREAMABLE, "{version}");
        assert_eq!(connection.opened.version.as_deref(), Some(version));
        assert_eq!(connection.echo("hello").await, "hello");
        let session = connection.lane().session_id().unwrap();
        let recording = connection.close().await;
        assert_eq!(recording.of_method("initialize").len(), 1, "{version}");
        let call =
            recording.http("POST").into_iter().find(|it| it["body"]["method"] == "tools/call");
        let headers = call.unwrap()["headers"].take();
        assert_eq!(headers["mcp-session-id"], session.as_str());
        assert_eq!(headers["accept"], "application/json, text/event-stream");
        let named = headers["mcp-protocol-version"].as_str();
        assert_eq!(named, Some(version).filter(|version| *version >= "2025-06-18"));
        assert_eq!(recording.http("DELETE").len(), 1, "the session is deleted");
    }
}

#[tokio::test]
async fn any_rejection_of_discover_falls_back_to_initialize() {
    for answer in [Discover::MethodNotFound, Discover::InvalidParams] {
        let connection = Connection::open(Script::new().legacy().discover(answer)).await;
        assert_eq!(connection.opened.known, STREAMABLE, "{answer:?}");
        connection.close().await;
    }
    for status in [400, 404, 405, 500] {
        let fault = Fault::status(status).on(On::Handshake).times(1);
        let connection = Connection::open(Script::new().legacy().fault(fault)).await;
        assert_eq!(connection.opened.known, STREAMABLE, "{status}");
        connection.close().await;
    }
}

#[tokio::test]
async fn silence_on_discover_falls_back_to_initialize() {
    let silent = Script::new().legacy().discover(Discover::Silence);
    let connection = Connection::open(silent).await;
    assert_eq!(connection.opened.known, STREAMABLE);
    connection.close().await;
}

#[tokio::test]
async fn a_slow_modern_server_is_tried_again_when_nothing_else_works() {
    let slow = Script::new().modern().discover(Discover::DelayMs(3_000));
    let connection = Connection::open(slow).await;
    assert_eq!(connection.opened.known, MODERN);
    assert_eq!(connection.echo("x").await, "x");
    connection.close().await;
}

#[tokio::test]
async fn a_known_protocol_is_not_detected_again() {
    let known = |plan: &mut RemotePlan| plan.known = Some(STREAMABLE);
    let connection = Connection::open_with(Script::new().legacy(), known).await;
    let recording = connection.close().await;
    assert!(recording.of_method("server/discover").is_empty());
}

#[tokio::test]
async fn a_known_protocol_that_hangs_does_not_use_up_the_timeout() {
    let script = Script::new().initialize_silence();
    let connection = Connection::open_with(script, |plan| plan.known = Some(STREAMABLE)).await;
    assert_eq!(connection.opened.known, MODERN);
    connection.close().await;
}

#[tokio::test]
async fn a_known_protocol_that_is_only_slow_gets_the_whole_timeout() {
    let script = Script::new().legacy().initialize_delay_ms(7_000);
    let connection = Connection::open_with(script, |plan| plan.known = Some(STREAMABLE)).await;
    assert_eq!(connection.opened.known, STREAMABLE);
    connection.close().await;
}

#[tokio::test]
async fn a_known_protocol_may_have_changed() {
    for (known, script, now) in [
        (MODERN, Script::new().legacy(), STREAMABLE),
        (STREAMABLE, Script::new().modern(), MODERN),
        (SSE, Script::new().legacy().no_get(), STREAMABLE),
        (STREAMABLE, Script::new().legacy_sse_only(), SSE),
    ] {
        let connection = Connection::open_with(script, |plan| plan.known = Some(known)).await;
        assert_eq!(connection.opened.known, now, "from {known:?}");
        assert_eq!(connection.echo("x").await, "x");
        connection.close().await;
    }
}

#[tokio::test]
async fn a_server_that_rejects_new_versions_is_offered_older_ones() {
    let script = Script::new()
        .versions(["2025-03-26"])
        .reject_version("2025-11-25")
        .reject_version("2025-06-18");
    let connection = Connection::open(script).await;
    assert_eq!(connection.opened.version.as_deref(), Some("2025-03-26"));
    assert_eq!(connection.echo("x").await, "x");
    connection.close().await;
}

#[tokio::test]
async fn an_unknown_version_is_rejected() {
    let error = refused(&Script::new().legacy().answer_version("2031-01-01")).await;
    assert!(
        matches!(&error, RemoteError::UnknownVersion { version } if version == "2031-01-01"),
        "{error:?}"
    );
}

#[tokio::test]
async fn the_transport_of_2024_is_detected_where_posts_are_rejected() {
    let connection = Connection::open(Script::new().legacy_sse_only()).await;
    assert_eq!(connection.opened.known, SSE);
    assert_eq!(connection.echo("hello").await, "hello");
    assert!(!connection.opened.rmcp.list_all_tools().await.unwrap().is_empty());
    connection.close().await;
}

#[tokio::test]
async fn the_transport_of_2024_is_used_where_it_is_configured() {
    let server = TestServer::http(&Script::new());
    let mut plan = plan(&server.sse_url());
    plan.config.flavour = HttpFlavour::Sse;
    let mut opened = open(plan).await.unwrap();
    assert_eq!(opened.known, SSE);
    let _ = opened.rmcp.close().await;
}

#[tokio::test]
async fn an_endpoint_at_another_origin_is_rejected() {
    let script = Script::new().legacy_sse_only().sse_endpoint("http://elsewhere.invalid/messages");
    let server = TestServer::http(&script);
    // Also if the transport is detected: the failures of the other transports are less specific.
    for flavour in [HttpFlavour::Sse, HttpFlavour::Streamable] {
        let mut plan = plan(server.url());
        plan.config.flavour = flavour;
        let error = open(plan).await.unwrap_err();
        assert!(error.to_string().contains("http://elsewhere.invalid"), "{error}");
    }
}

#[tokio::test]
async fn missing_authorization_is_reported_with_the_challenge_and_a_hint() {
    let error = refused(&Script::new().bearer("token", Some("Bearer realm=\"x\""))).await;
    let RemoteError::NeedsAuth { challenge, .. } = &error else { panic!("{error:?}") };
    assert_eq!(challenge.as_deref(), Some("Bearer realm=\"x\""));
    let hint = error.hint().unwrap();
    assert!(hint.contains("apiKey") && !hint.contains("openclaw mcp auth"), "{hint}");
}

#[tokio::test]
async fn configured_headers_are_sent_with_every_request() {
    let script = Script::new().legacy().bearer("sesame", None);
    let connection = Connection::open_with(script, |plan| {
        plan.headers.insert("Authorization".to_owned(), "Bearer sesame".to_owned().into());
        plan.headers.insert("Accept".to_owned(), "text/html".to_owned().into());
    })
    .await;
    assert_eq!(connection.echo("x").await, "x");
    connection.close().await;
}

#[tokio::test]
async fn an_html_page_is_not_an_mcp_server() {
    let page = Fault::status(200).header("content-type", "text/html").body("<html>hi</html>");
    let error = refused(&Script::new().fault(page)).await;
    assert!(matches!(error, RemoteError::NotMcp { .. }), "{error:?}");
    assert!(error.to_string().contains("text/html"), "{error}");
}

#[tokio::test]
async fn a_refused_connection_and_an_unknown_host_are_reported() {
    // Held, so that no other process listens on the port.
    let held = TcpSocket::new_v4().unwrap();
    held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://127.0.0.1:{}/mcp", held.local_addr().unwrap().port());
    let error = open(plan(&url)).await.unwrap_err();
    let RemoteError::Unreachable(unreachable) = &error else { panic!("{error:?}") };
    assert_eq!(unreachable.problem, ReachProblem::Connect, "{unreachable}");
    let expected = format!("cannot connect to {}: ", held.local_addr().unwrap());
    assert!(error.to_string().starts_with(&expected), "{error}");

    let error = open(plan("https://nobody.invalid/mcp")).await.unwrap_err();
    let RemoteError::Unreachable(unreachable) = &error else { panic!("{error:?}") };
    assert_eq!(unreachable.problem, ReachProblem::Dns, "{unreachable}");
    assert!(error.hint().is_some());
}

#[tokio::test]
async fn a_server_that_never_responds_times_out_at_the_step_where_it_hung() {
    let server = TestServer::http(&Script::new().legacy().initialize_silence());
    let mut plan = plan(server.url());
    plan.timeout = Duration::from_secs(10);
    let error = open(plan).await.unwrap_err();
    assert!(
        matches!(error, RemoteError::TimedOut { step: RemoteStep::Initializing, .. }),
        "{error:?}"
    );
}

/// Waits until no task is left. Idle connections end shortly after their client.
async fn nothing_is_left() {
    let metrics = tokio::runtime::Handle::current().metrics();
    until(|| metrics.num_alive_tasks() == 0).await;
}

#[tokio::test]
async fn nothing_is_left_of_a_connection_that_was_closed_failed_or_dropped() {
    for script in [Script::new().modern(), Script::new().legacy(), Script::new().legacy_sse_only()]
    {
        let connection = Connection::open(script.clone()).await;
        connection.echo("x").await;
        drop(connection.close().await);
        nothing_is_left().await;

        let connection = Connection::open(script).await;
        drop(connection);
        nothing_is_left().await;
    }
    // The stream of the old transport is open when the handshake fails.
    let failing = Script::new().legacy_sse_only().answer_version("2031-01-01");
    refused(&failing).await;
    nothing_is_left().await;

    let server = TestServer::http(&Script::new().legacy_sse_only().initialize_silence());
    let waiting = open(plan(server.url()));
    assert!(tokio::time::timeout(Duration::from_secs(1), Box::pin(waiting)).await.is_err());
    nothing_is_left().await;
}

#[tokio::test]
async fn a_pinned_version_is_the_only_one_that_is_offered() {
    let connection = Connection::open_with(Script::new(), |plan| {
        plan.only = Some(ProtocolVersion::V20250618.into());
    })
    .await;
    assert_eq!(connection.opened.version.as_deref(), Some("2025-06-18"));
    assert_eq!(connection.echo("hello").await, "hello");
    let recording = connection.close().await;
    assert_eq!(recording.of_method("server/discover").len(), 0);

    let server = TestServer::http(&Script::new().legacy());
    let only = Some(ProtocolVersion::V20260728.into());
    let refused = open(RemotePlan { only, ..plan(server.url()) }).await;
    assert!(refused.is_err());
}
