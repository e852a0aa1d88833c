//! Our client against our server.

use std::sync::Arc;
use std::time::Duration;

use openclaw_gateway::socket::{Listening, SocketLimits};
use openclaw_protocol::client::{Client, ConnectError, ConnectOptions};
use openclaw_protocol::health::{Health, HealthParams};
use openclaw_protocol::mcp::CallParams;
use openclaw_protocol::{Event, Received, Surface, ask, detail, rpc};
use openclaw_secrets::SecretString;
use serde_json::value::to_raw_value;
use tokio::time::timeout;

use crate::support::{LONG, TOKEN, TestService, calm, start};

fn options(address: std::net::SocketAddr, token: &str) -> ConnectOptions {
    let token = SecretString::from(token.to_owned());
    let mut options = ConnectOptions::new(format!("ws://{address}"), Some(token), "1.0.0");
    options.connect_timeout = LONG;
    options
}

/// Starts a server, and connects to it.
async fn connected(limits: SocketLimits) -> (Listening, Arc<TestService>, Client) {
    let (server, service) = start(limits).await;
    let client = Client::connect(&options(server.address, TOKEN)).await.unwrap();
    (server, service, client)
}

#[tokio::test]
async fn it_connects_asks_and_is_answered() {
    let (_server, _service, client) = connected(calm()).await;
    assert_eq!(client.hello().server.version, "1.2.3");
    assert!(client.has_method("health") && !client.has_method("mcp.call"));
    let health: Health = ask::<rpc::Health>(&client, HealthParams::default()).await.unwrap();
    assert_eq!(health.ok, Some(true));
    let unknown = ask::<rpc::McpCall>(&client, CallParams::default()).await;
    assert!(unknown.unwrap_err().is_unknown_method());
}

#[tokio::test]
async fn each_way_to_be_refused_has_an_error_of_its_own() {
    let (server, _service) =
        start(SocketLimits { wrong_tokens: 1, ..SocketLimits::default() }).await;
    let address = server.address;
    let mut without = options(address, TOKEN);
    without.token = None;
    let error = Client::connect(&without).await.unwrap_err();
    assert!(matches!(error, ConnectError::TokenMissing), "{error}");
    let error = Client::connect(&options(address, "wrong")).await.unwrap_err();
    assert!(matches!(error, ConnectError::TokenMismatch), "{error}");
    let error = Client::connect(&options(address, "wrong")).await.unwrap_err();
    assert!(matches!(error, ConnectError::RateLimited { .. }), "{error}");
    let mut strange = options(address, TOKEN);
    strange.role = "stranger".to_owned();
    let error = Client::connect(&strange).await.unwrap_err();
    assert!(matches!(&error, ConnectError::Refused(shape) if shape.message == "no strangers"));
    for url in ["http://localhost", "ftp://localhost", "localhost", "ws://"] {
        let error = Client::connect(&ConnectOptions::new(url, None, "1")).await.unwrap_err();
        assert!(matches!(error, ConnectError::Address(_)), "{url}: {error}");
    }
    server.stop(Duration::ZERO).await;
    let error = Client::connect(&options(address, TOKEN)).await.unwrap_err();
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn connecting_to_something_else_than_a_gateway_times_out() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut options = options(listener.local_addr().unwrap(), TOKEN);
    options.connect_timeout = Duration::from_millis(300);
    let error = timeout(LONG, Client::connect(&options)).await.unwrap().unwrap_err();
    assert!(matches!(error, ConnectError::TimedOut), "{error}");
}

#[tokio::test]
async fn when_the_connection_is_lost_all_pending_requests_fail_immediately() {
    let (server, service, client) = connected(calm()).await;
    let lose = async {
        service.until_slow(2).await;
        drop(server);
    };
    let waiting =
        async { tokio::join!(client.request("slow", None), client.request("slow", None)) };
    let ((first, second), ()) = timeout(LONG, async { tokio::join!(waiting, lose) }).await.unwrap();
    for error in [first.unwrap_err(), second.unwrap_err()] {
        assert_eq!(error.detail().as_deref(), Some(detail::CONNECTION_LOST));
    }
    let error = timeout(LONG, client.request("health", None)).await.unwrap().unwrap_err();
    assert_eq!(error.detail().as_deref(), Some(detail::CONNECTION_LOST));
    assert!(!client.is_connected());
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_given_up_and_the_next_one_is_not_mistaken_for_it() {
    let (server, service) = start(calm()).await;
    let mut options = options(server.address, TOKEN);
    options.request_timeout = Duration::from_millis(200);
    let impatient = Client::connect(&options).await.unwrap();
    let error = impatient.request("slow", None).await.unwrap_err();
    assert_eq!(error.detail().as_deref(), Some(detail::TIMED_OUT));
    service.go_on.add_permits(1);
    options.request_timeout = LONG;
    let params = to_raw_value("mine").unwrap();
    let patient = Client::connect(&options).await.unwrap();
    assert_eq!(patient.request("echo", Some(params)).await.unwrap().get(), "\"mine\"");
}

#[tokio::test]
async fn events_come_in_order_to_everybody_who_listens() {
    let (_server, service, client) = connected(calm()).await;
    let mut listeners = [client.events(), client.events()];
    client.request("health", None).await.unwrap();
    for number in 0..100 {
        service.events.tell(Event::from_json("agent", to_raw_value(&number).unwrap()));
    }
    for events in &mut listeners {
        for number in 0..100_u64 {
            let heard = timeout(LONG, events.next()).await.unwrap().unwrap();
            let Received::Event(event) = heard else { panic!("{heard:?}") };
            assert_eq!((event.event.as_ref(), event.seq), ("agent", Some(number + 1)));
            assert_eq!(event.json().unwrap().get(), number.to_string());
        }
    }
}

#[tokio::test]
async fn a_slow_listener_learns_how_many_events_it_missed() {
    let (_server, service, client) = connected(calm()).await;
    let mut events = client.events();
    client.request("health", None).await.unwrap();
    for number in 0..3_000 {
        service.events.tell(Event::from_json("agent", to_raw_value(&number).unwrap()));
        if number % 100 == 0 {
            // The server's queue is emptied; the listener's is not.
            client.request("health", None).await.unwrap();
        }
    }
    client.request("health", None).await.unwrap();
    let Some(Received::Lagged(missed)) = events.next().await else { panic!("nothing was missed") };
    let Some(Received::Event(event)) = events.next().await else { panic!("nothing came") };
    assert_eq!(event.json().unwrap().get(), missed.to_string());
}

#[tokio::test]
async fn large_questions_and_answers_pass_both_ways_at_once() {
    let (_server, _service, client) = connected(calm()).await;
    let large = to_raw_value(&"x".repeat(8 * 1024 * 1024)).unwrap();
    let echo = || client.request("echo", Some(large.clone()));
    let (first, second, third) =
        timeout(LONG, async { tokio::join!(echo(), echo(), echo()) }).await.unwrap();
    for answer in [first, second, third] {
        assert!(answer.unwrap().get() == large.get());
    }
}

#[tokio::test]
async fn more_than_the_gateway_takes_is_not_sent() {
    let (_server, _service, client) =
        connected(SocketLimits { message: 1_000, ..SocketLimits::default() }).await;
    let large = to_raw_value(&"x".repeat(1_000)).unwrap();
    client.request("echo", Some(large)).await.unwrap_err();
    client.request("health", None).await.unwrap();
}

#[tokio::test]
async fn many_questions_at_once_are_all_answered() {
    let (_server, _service, client) = connected(calm()).await;
    let questions = (0..1_000).map(|number| {
        let params = to_raw_value(&number.to_string().repeat(1_000)).unwrap();
        client.request("echo", Some(params))
    });
    let answers = timeout(LONG, futures_util::future::join_all(questions)).await.unwrap();
    for (number, answer) in answers.into_iter().enumerate() {
        assert!(answer.unwrap().get().contains(&number.to_string().repeat(1_000)));
    }
}
