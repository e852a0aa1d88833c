//! Error statuses, redirects, and responses that are invalid or endless.

use std::time::Duration;

use openclaw_config::HttpFlavour;
use openclaw_mcp_client::connection::remote::RemoteError;
use openclaw_mcp_client::wire::{CallError, TimeLimits, UnusableResponse};
use openclaw_testkit::{Endless, Fault, On, Script, TestServer};

use crate::support::{Connection, LIMITS, open, plan, refused};

/// Returns why a call with this fault fails. The server is fine before and after.
async fn failure(fault: Fault) -> CallError {
    let script = Script::new().legacy().fault(fault.on(On::Call).times(1));
    let connection = Connection::open(script).await;
    let error = connection.failure().await;
    assert_eq!(connection.echo("still there").await, "still there", "after {error:?}");
    assert_eq!(connection.lane().in_flight(), 0);
    connection.close().await;
    error
}

#[tokio::test]
async fn statuses_map_to_errors() {
    let error = failure(Fault::status(401).header("www-authenticate", "Bearer a=\"b\"")).await;
    assert!(
        matches!(&error, CallError::NeedsAuth { challenge: Some(it) } if it == "Bearer a=\"b\""),
        "{error:?}"
    );
    let error = failure(Fault::status(401)).await;
    assert!(matches!(error, CallError::NeedsAuth { challenge: None }), "{error:?}");
    let error = failure(Fault::status(403).header("www-authenticate", "x")).await;
    assert!(matches!(error, CallError::Forbidden { challenge: Some(_) }), "{error:?}");

    let error = failure(Fault::status(429).header("retry-after", "7")).await;
    let CallError::RateLimited { retry_after } = error else { panic!("{error:?}") };
    assert_eq!(retry_after, Some(Duration::from_secs(7)));
    let error = failure(Fault::status(429)).await;
    assert!(matches!(error, CallError::RateLimited { retry_after: None }), "{error:?}");
    let error = failure(Fault::status(503).header("retry-after", "1")).await;
    let second = Duration::from_secs(1);
    assert!(
        matches!(error, CallError::OutOfService { retry_after } if retry_after == second),
        "{error:?}"
    );

    let long = format!("no \u{1b}[31mway{}", "x".repeat(100_000));
    let error = failure(Fault::status(500).body(long)).await;
    let CallError::Http { status: 500, body } = &error else { panic!("{error:?}") };
    assert!(body.starts_with("no ") && body.len() <= 200, "{body}");
    assert!(!body.contains('\u{1b}'));

    let rpc = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"header mismatch"}}"#;
    let error = failure(Fault::status(400).body(rpc)).await;
    assert!(matches!(&error, CallError::Rpc(raw) if raw.get().contains("-32020")), "{error:?}");
}

#[tokio::test]
async fn an_outage_is_not_reported_as_rate_limiting() {
    let outage = Fault::status(503).header("retry-after", "1");
    let error = refused(&Script::new().legacy().fault(outage)).await;
    let said = error.to_string();
    assert_eq!(said, "the server is temporarily unavailable (HTTP 503); retry in 1 s");
    assert!(!error.hint().unwrap_or_default().contains("fewer requests"), "{:?}", error.hint());
}

#[tokio::test]
async fn an_error_page_of_a_failing_service_does_not_blame_the_url() {
    for (status, advice) in
        [(503, "the service is down"), (500, "the service is down"), (404, "`url`")]
    {
        let page = Fault::status(status).body("<html><h1>Sorry</h1></html>");
        let error = refused(&Script::new().legacy().fault(page)).await;
        let (said, hint) = (error.to_string(), error.hint().unwrap());
        assert!(said.contains(&status.to_string()) && !said.contains("Sorry"), "{said}");
        assert!(hint.contains(advice), "{status}: {hint}");
    }
}

#[tokio::test]
async fn an_error_message_is_quoted_on_one_clean_line() {
    let message = format!("go\\n\\u001b[31maway {}", "x".repeat(5_000));
    let rpc = format!(
        r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":-32050,"message":"{message}","data":"secret data"}}}}"#
    );
    let error = refused(&Script::new().legacy().fault(Fault::status(400).body(rpc))).await;
    let said = error.to_string();
    assert!(matches!(error, RemoteError::Refused { .. }), "{error:?}");
    assert!(
        said.starts_with("initialization failed: the server returned error -32050: go"),
        "{said}"
    );
    assert!(said.chars().count() < 300 && !said.contains("data"), "{said}");
    assert!(!said.contains(char::is_control), "{said}");
}

#[tokio::test]
async fn invalid_responses_fail_only_their_call() {
    let html = Fault::status(200).header("content-type", "text/html").body("<html>");
    let error = failure(html).await;
    assert!(
        matches!(&error, CallError::Protocol(cause) if cause.contains("text/html")),
        "{error:?}"
    );
    let json = "application/json";
    for body in ["42", r#"{"jsonrpc":"2.0","id":1,"result":{}}"#] {
        let error = failure(Fault::status(200).header("content-type", json).body(body)).await;
        assert!(matches!(error, CallError::Protocol(_)), "{body}: {error:?}");
    }
    let error = failure(Fault::status(200).header("content-type", json).body("{ oops")).await;
    assert!(matches!(&error, CallError::Unreadable { body } if body == "{ oops"), "{error:?}");
    let error = failure(Fault::status(200).header("content-type", json).body("")).await;
    assert!(matches!(error, CallError::UnusableResponse(UnusableResponse::Empty)), "{error:?}");
    let stream = Fault::status(200).header("content-type", "text/event-stream");
    let error = failure(stream.body(": hello\n\ndata: {\n\n")).await;
    assert!(matches!(error, CallError::Protocol(_)), "{error:?}");
    let error = failure(Fault::hang_up()).await;
    assert!(matches!(error, CallError::Unreachable(_)), "{error:?}");
}

#[tokio::test]
async fn a_gzip_bomb_is_not_decompressed() {
    let connection = Connection::open(Script::new().legacy().gzip_bomb_mb(10_000)).await;
    let error = connection.failure().await;
    let CallError::UnusableResponse(UnusableResponse::Compressed { encoding }) = &error else {
        panic!("{error:?}")
    };
    assert_eq!(encoding, "gzip");
    connection.close().await;
}

#[tokio::test]
async fn an_endless_stream_ends_by_its_size_or_the_timeout() {
    let connection =
        Connection::open(Script::new().legacy().endless_stream(Endless::Notifications)).await;
    // This many small events take minutes on a busy machine.
    let hour = Duration::from_secs(3_600);
    let patient = TimeLimits { timeout: hour, cap: hour };
    let error = connection.call("echo", r#"{"text":"x"}"#, patient).await.unwrap_err();
    assert!(matches!(error, CallError::UnusableResponse(UnusableResponse::Endless)), "{error:?}");
    let hurry = Duration::from_millis(20);
    let hurry = TimeLimits { timeout: hurry, cap: hurry };
    let error = connection.call("echo", r#"{"text":"x"}"#, hurry).await.unwrap_err();
    assert!(matches!(error, CallError::TimedOut(_)), "{error:?}");
    connection.close().await;
}

#[tokio::test]
async fn a_response_that_is_too_large_is_not_read_to_its_end() {
    for script in [Script::new().legacy(), Script::new().legacy().sse_answers()] {
        let connection = Connection::open(script).await;
        let big = format!(r#"{{"bytes":{}}}"#, 66 * 1024 * 1024);
        let error = connection.call("big", &big, LIMITS).await.unwrap_err();
        assert!(error.to_string().contains("larger than 64 MiB"), "{error:?}");
        let fits = format!(r#"{{"bytes":{}}}"#, 5 * 1024 * 1024);
        let result = connection.call("big", &fits, LIMITS).await.unwrap();
        assert_eq!(result["content"][0]["text"].as_str().unwrap().len(), 5 * 1024 * 1024);
        connection.close().await;
    }
}

#[tokio::test]
async fn credentials_follow_no_redirect_to_another_origin() {
    for (target, shown, hint) in [
        ("https://elsewhere.invalid:8443/mcp?key=1", "https://elsewhere.invalid:8443", "set `url`"),
        ("http://127.0.0.1:1/mcp", "http://127.0.0.1:1", "set `url`"),
        ("http://elsewhere.invalid/mcp", "http://elsewhere.invalid", "its https URL"),
        ("file:///etc/passwd", "a file: address", "check `url`, and whether a proxy"),
    ] {
        let error = refused(&Script::new().redirect(target)).await;
        let RemoteError::Redirected { to } = &error else { panic!("{target}: {error:?}") };
        assert_eq!(to, shown);
        assert!(error.hint().unwrap().contains(hint), "{:?}", error.hint());
    }
}

#[tokio::test]
async fn a_redirect_within_the_origin_is_followed_and_a_loop_ends() {
    let once = Fault::status(307).on(On::Call).times(1).header("location", "/mcp?again");
    let connection = Connection::open(Script::new().legacy().fault(once)).await;
    assert_eq!(connection.echo("x").await, "x");
    connection.close().await;

    let error = refused(&Script::new().redirect("/mcp")).await;
    assert!(error.to_string().contains("redirected more than"), "{error:?}");
    assert!(!error.hint().unwrap().contains("path"), "{:?}", error.hint());
}

#[tokio::test]
async fn a_redirect_that_would_change_the_method_is_not_followed() {
    let moved = Fault::status(302).header("location", "/elsewhere");
    let connection = Connection::open(Script::new().legacy().fault(moved.on(On::Call))).await;
    let error = connection.failure().await;
    assert!(
        matches!(&error, CallError::Redirected { to } if to.ends_with("/elsewhere")),
        "{error:?}"
    );
    connection.close().await;
}

#[tokio::test]
async fn a_server_with_another_transport_is_reported() {
    for script in [Script::new().legacy(), Script::new().legacy().no_get(), Script::new().modern()]
    {
        let server = TestServer::http(&script);
        let mut plan = plan(server.url());
        plan.config.flavour = HttpFlavour::Sse;
        plan.timeout = Duration::from_secs(8);
        let error = open(plan).await.unwrap_err();
        assert!(matches!(error, RemoteError::OtherTransport), "{error:?}");
        assert!(error.hint().unwrap().contains(r#"`transport: "http"`"#));
    }
}

#[tokio::test]
async fn invalid_json_is_reported_and_its_beginning_is_quoted() {
    let answered = async |body: &str| {
        let fault = Fault::status(200).header("content-type", "application/json").body(body);
        refused(&Script::new().fault(fault)).await
    };
    let error = answered("{\"jsonrpc\": \"2.0\",\n \u{1b}[31moops").await;
    let said = error.to_string();
    assert!(
        said.starts_with(r#"the server's response is not valid JSON: {"jsonrpc": "2.0", "#),
        "{said}"
    );
    assert!(said.ends_with("oops") && !said.contains(char::is_control), "{said}");
    assert!(!error.hint().unwrap().contains("path"), "{:?}", error.hint());
    let error = answered("").await;
    assert_eq!(error.to_string(), "not a valid MCP response: the server's response is empty");
    let packed = Fault::status(200).header("content-encoding", "gzip").body("x");
    let error = refused(&Script::new().fault(packed)).await;
    assert!(error.hint().unwrap().contains("compress"), "{:?}", error.hint());
}

#[tokio::test]
async fn a_web_page_is_reported() {
    let page = Fault::status(404).header("content-type", "text/html").body("<!DOCTYPE html><p>No");
    let error = refused(&Script::new().fault(page)).await;
    assert!(matches!(error, RemoteError::WebPage { status: 404 }), "{error:?}");
    assert!(error.hint().unwrap().contains("`/mcp`") && !error.to_string().contains('<'));
}
