//! Authentication, and how other callers are rejected.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use openclaw_gateway::socket::{ListenError, ListenOptions, SocketLimits, bind};
use serde_json::{Value, json};

use crate::support::{
    Raw, Shared, TOKEN, TestService, connect_params, listen_on, start, start_and_enter,
};

#[tokio::test]
async fn a_caller_with_the_token_is_greeted_with_features_and_policy() {
    let (server, _service) = start(SocketLimits::default()).await;
    let mut raw = Raw::dial(server.address).await;
    let challenge = raw.frame().await.unwrap();
    assert_eq!(challenge["event"], "connect.challenge");
    assert_eq!(challenge["payload"]["nonce"].as_str().unwrap().len(), 32);
    let hello = raw.ask("connect", connect_params(TOKEN)).await.unwrap();
    assert_eq!(hello["type"], "hello-ok");
    assert_eq!(hello["protocol"], 4);
    assert_eq!(hello["server"]["version"], "1.2.3");
    assert_eq!(hello["features"]["methods"], json!(["health"]));
    assert_eq!(hello["auth"]["scopes"], json!(["operator.read", "operator.write"]));
    assert_eq!(hello["policy"]["maxPayload"], 25 * 1024 * 1024);
    assert_eq!(hello["policy"]["tickIntervalMs"], 30_000);
    assert_eq!(raw.ask("health", Value::Null).await.unwrap(), json!({ "ok": true }));
    assert_eq!(server.connections(), 1);
}

/// The error of a first request, and how the connection is closed.
async fn refused(method: &str, params: Value) -> (Value, (u16, String)) {
    let (server, service) = start(SocketLimits::default()).await;
    let mut raw = Raw::dial(server.address).await;
    let error = raw.ask(method, params).await.unwrap_err();
    let closed = raw.closed().await;
    service.until_callers(0).await;
    (error, closed)
}

#[tokio::test]
async fn a_wrong_token_and_a_missing_one_have_different_errors() {
    let (error, (code, _)) = refused("connect", connect_params("a wrong token")).await;
    assert_eq!(error["code"], "INVALID_REQUEST");
    assert_eq!(error["details"]["code"], "AUTH_TOKEN_MISMATCH");
    assert_eq!(code, 1008);
    let mut params = connect_params("");
    params.as_object_mut().unwrap().remove("auth");
    let (error, (code, _)) = refused("connect", params).await;
    assert_eq!(error["details"]["code"], "AUTH_TOKEN_MISSING");
    assert_eq!(code, 1008);
}

#[tokio::test]
async fn a_protocol_mismatch_reports_the_expected_version() {
    let mut params = connect_params(TOKEN);
    params["minProtocol"] = json!(5);
    params["maxProtocol"] = json!(7);
    let (error, (code, _)) = refused("connect", params).await;
    assert_eq!(error["details"]["code"], "PROTOCOL_MISMATCH");
    assert_eq!(error["details"]["expectedProtocol"], 4);
    assert_eq!(code, 1002);
}

#[tokio::test]
async fn nothing_comes_before_connect_and_connect_comes_once() {
    let (error, (code, _)) = refused("health", Value::Null).await;
    assert_eq!(error["code"], "INVALID_REQUEST");
    assert_eq!(code, 1008);
    let (_server, _service, mut raw) = start_and_enter(SocketLimits::default()).await;
    raw.ask("connect", connect_params(TOKEN)).await.unwrap_err();
    raw.ask("health", Value::Null).await.unwrap();
}

#[tokio::test]
async fn params_of_a_newer_client_are_ignored() {
    let (server, _service) = start(SocketLimits::default()).await;
    let mut raw = Raw::dial(server.address).await;
    let mut params = connect_params(TOKEN);
    params["surprise"] = json!(1);
    assert_eq!(raw.ask("connect", params).await.unwrap()["type"], "hello-ok");
}

#[tokio::test]
async fn a_caller_rejected_by_the_service_gets_its_error() {
    let mut params = connect_params(TOKEN);
    params["role"] = json!("stranger");
    let (error, (code, _)) = refused("connect", params).await;
    assert_eq!(error["message"], "no strangers");
    assert_eq!(code, 1008);
}

#[tokio::test]
async fn a_caller_that_does_not_authenticate_in_time_is_disconnected() {
    let limits = SocketLimits { authenticate: Duration::from_secs(5), ..SocketLimits::default() };
    let (server, _service) = start(limits).await;
    let (code, reason) = Raw::dial(server.address).await.closed().await;
    assert_eq!((code, reason.as_str()), (1008, "not authenticated in time"));
}

#[tokio::test]
async fn other_machines_are_not_served_without_a_token() {
    let refused = bind(listen_on(Ipv4Addr::UNSPECIFIED, None)).await;
    assert!(matches!(refused, Err(ListenError::NeedsToken(_))));
    let here = listen_on(Ipv4Addr::LOCALHOST, None);
    let server = bind(here).await.unwrap().serve(Arc::new(Shared(TestService::new())));
    Raw::enter(server.address).await;
}

#[tokio::test]
async fn a_port_that_is_taken_is_an_error_that_names_it() {
    let (server, _service) = start(SocketLimits::default()).await;
    let port = server.address.port();
    let taken = ListenOptions { port, ..listen_on(Ipv4Addr::LOCALHOST, None) };
    let refused = bind(taken).await.unwrap_err();
    assert!(refused.to_string().contains(&server.address.to_string()), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_wrong_tokens_are_counted_and_do_not_lock_out_this_machine() {
    const ALL: usize = 10_000;
    const AT_ONCE: usize = 16;
    let hour = Duration::from_secs(3_600);
    let (server, _service) =
        start(SocketLimits { wrong_tokens_window: hour, ..SocketLimits::default() }).await;
    let address = server.address;
    let mut guessing = tokio::task::JoinSet::new();
    for part in 0..AT_ONCE {
        guessing.spawn(async move {
            let (mut wrong, mut limited) = (0, 0);
            for number in (part..ALL).step_by(AT_ONCE) {
                let mut raw = Raw::dial(address).await;
                let params = connect_params(&format!("guess {number}"));
                let error = raw.ask("connect", params).await.unwrap_err();
                match error["details"]["code"].as_str().unwrap() {
                    "AUTH_TOKEN_MISMATCH" => wrong += 1,
                    "AUTH_RATE_LIMITED" => {
                        assert!(error["retryAfterMs"].as_u64().unwrap() > 0);
                        limited += 1;
                    }
                    other => panic!("{other}"),
                }
            }
            (wrong, limited)
        });
    }
    let counted = guessing.join_all().await;
    let wrong: usize = counted.iter().map(|(wrong, _)| wrong).sum();
    let limited: usize = counted.iter().map(|(_, limited)| limited).sum();
    assert_eq!(wrong + limited, ALL);
    // Concurrent attempts may be checked before the limit is reached.
    assert!((10..10 + AT_ONCE).contains(&wrong), "{wrong}");
    Raw::enter(address).await;
}
