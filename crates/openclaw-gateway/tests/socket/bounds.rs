//! Limits: just within, and just beyond.

use std::time::Duration;

use futures_util::SinkExt as _;
use openclaw_gateway::socket::SocketLimits;
use openclaw_protocol::Event;
use openclaw_protocol::socket::SendLimits;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::Message;

use crate::support::{LONG, Raw, TOKEN, calm, connect_params, start, start_and_enter};

#[tokio::test]
async fn twenty_megabytes_are_taken_and_given_after_the_handshake() {
    let (_server, _service, mut raw) = start_and_enter(calm()).await;
    let size = 20 * 1024 * 1024;
    let answer = raw.ask("size", json!("x".repeat(size))).await.unwrap();
    assert_eq!(answer, json!(size + 2));
    let answer = raw.ask("big", json!(size)).await.unwrap();
    assert_eq!(answer.as_str().unwrap().len(), size);
    raw.ask("health", Value::Null).await.unwrap();
}

/// A `connect` of exactly this size.
fn connect_of(size: usize) -> String {
    let mut params = connect_params(TOKEN);
    params["userAgent"] = json!("");
    let request = |params: &Value| {
        json!({ "type": "req", "id": "1", "method": "connect", "params": params }).to_string()
    };
    let missing = size - request(&params).len();
    params["userAgent"] = json!("x".repeat(missing));
    request(&params)
}

#[tokio::test]
async fn before_the_handshake_64_kib_are_taken_and_not_one_byte_more() {
    let (server, _service) = start(SocketLimits::default()).await;
    let mut raw = Raw::dial(server.address).await;
    raw.send(connect_of(64 * 1024)).await;
    assert_eq!(raw.frame().await.unwrap()["event"], "connect.challenge");
    assert_eq!(raw.frame().await.unwrap()["ok"], true);
    let mut raw = Raw::dial(server.address).await;
    raw.send(connect_of(64 * 1024 + 1)).await;
    assert_eq!(raw.closed().await.0, 1009);
}

#[tokio::test]
async fn a_message_above_the_advertised_limit_closes_the_connection() {
    let (_server, service, mut raw) =
        start_and_enter(SocketLimits { message: 100_000, ..SocketLimits::default() }).await;
    raw.send(format!(
        r#"{{"type":"req","id":"1","method":"echo","params":"{}"}}"#,
        "x".repeat(100_000)
    ))
    .await;
    assert_eq!(raw.closed().await.0, 1009);
    service.until_callers(0).await;
}

#[tokio::test]
async fn fragments_count_together() {
    use tokio_tungstenite::tungstenite::protocol::frame::Frame;
    use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
    let (_server, _service, mut raw) =
        start_and_enter(SocketLimits { message: 100_000, ..SocketLimits::default() }).await;
    for part in 0..3 {
        let kind = if part == 0 { Data::Text } else { Data::Continue };
        let frame = Frame::message(vec![b' '; 50_000], OpCode::Data(kind), false);
        raw.0.send(Message::Frame(frame)).await.unwrap();
    }
    assert_eq!(raw.closed().await.0, 1009);
}

#[tokio::test]
async fn concurrent_requests_are_limited_and_the_others_wait() {
    let (server, service, mut raw) = start_and_enter(SocketLimits { requests: 4, ..calm() }).await;
    for number in 0..9 {
        raw.send_request(&number.to_string(), "slow", json!(number)).await;
    }
    service.until_slow(4).await;
    // Another caller is not delayed; by then a fifth request would have started.
    Raw::enter(server.address).await.ask("health", Value::Null).await.unwrap();
    assert_eq!(*service.slow.borrow(), 4);
    service.go_on.add_permits(9);
    let mut answered = Vec::new();
    while answered.len() < 9 {
        let frame = raw.frame().await.unwrap();
        if frame["type"] == "res" && frame["id"] != "1" || frame["payload"] == 1 {
            answered.push(frame["payload"].as_u64().unwrap());
        }
    }
    answered.sort_unstable();
    assert_eq!(answered, (0..9).collect::<Vec<_>>());
}

#[tokio::test]
async fn many_large_responses_at_once_reach_a_caller_that_reads() {
    let send = SendLimits { bytes: 1024 * 1024, pause: 64 * 1024, ..calm().send };
    let (_server, service, mut raw) = start_and_enter(SocketLimits { send, ..calm() }).await;
    for number in 0..16 {
        raw.send_request(&format!("large {number}"), "slow", json!("x".repeat(512 * 1024))).await;
    }
    service.until_slow(16).await;
    service.go_on.add_permits(16);
    // All are done before any is read.
    service.until_slow(0).await;
    for _ in 0..16 {
        let frame = raw.frame().await.unwrap();
        assert_eq!(frame["payload"].as_str().unwrap().len(), 512 * 1024);
    }
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_an_error_and_the_caller_stays() {
    let send = SendLimits { bytes: 1024 * 1024, pause: 64 * 1024, ..calm().send };
    let (_server, _service, mut raw) = start_and_enter(SocketLimits { send, ..calm() }).await;
    let error = raw.ask("big", json!(1024 * 1024)).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("at most 960 KB"), "{error}");
    let answer = raw.ask("big", json!(900 * 1024)).await.unwrap();
    assert_eq!(answer.as_str().unwrap().len(), 900 * 1024);
}

/// Limits with little memory for a client.
fn little_memory() -> SocketLimits {
    SocketLimits { client_memory: 8 * 1024 * 1024, ..calm() }
}

#[tokio::test]
async fn requests_in_progress_share_the_memory_of_their_client() {
    let (server, service, mut raw) = start_and_enter(little_memory()).await;
    let large = || json!("x".repeat(3 * 1024 * 1024));
    let mut other = Raw::enter(server.address).await;
    raw.send_request("first", "slow", large()).await;
    other.send_request("second", "slow", large()).await;
    service.until_slow(2).await;
    let error = raw.ask("slow", large()).await.unwrap_err();
    assert_eq!(error["code"], "UNAVAILABLE", "{error}");
    assert!(error["message"].as_str().unwrap().contains("take 8 MiB of memory"), "{error}");
    raw.ask("health", Value::Null).await.unwrap();
    service.go_on.add_permits(2);
    assert_eq!(raw.frame().await.unwrap()["id"], "first");
    assert_eq!(other.frame().await.unwrap()["id"], "second");
    raw.ask("echo", large()).await.unwrap();
}

#[tokio::test]
async fn unfinished_messages_share_the_memory_of_their_client() {
    use tokio_tungstenite::tungstenite::protocol::frame::Frame;
    use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
    let (server, service) = start(little_memory()).await;
    let mut unfinished = Vec::new();
    let mut ends = 0;
    for _ in 0..6 {
        let mut raw = Raw::enter(server.address).await;
        // Pings between the parts change nothing.
        for part in 0..4 {
            let kind = if part == 0 { Data::Text } else { Data::Continue };
            let frame = Frame::message(vec![b' '; 750_000], OpCode::Data(kind), false);
            let sent = raw.0.send(Message::Frame(frame)).await;
            let pinged = raw.0.send(Message::Ping(vec![b'x'; 100].into())).await;
            ends += usize::from(sent.is_err() || pinged.is_err());
        }
        unfinished.push(raw);
    }
    // Two fit.
    service.until_callers(2).await;
    assert!(ends <= 16, "the first ones stay");
    let (code, reason) = unfinished.pop().unwrap().closed().await;
    assert_eq!(code, 1013, "{reason}");
    drop(unfinished);
    let mut raw = Raw::enter(server.address).await;
    raw.ask("echo", json!("x".repeat(3 * 1024 * 1024))).await.unwrap();
}

#[tokio::test]
async fn responses_that_are_not_read_share_the_memory_of_their_client() {
    let (server, service) = start(little_memory()).await;
    let mut deaf = Vec::new();
    for number in 0..4 {
        let mut raw = Raw::enter(server.address).await;
        for part in 0..4 {
            raw.send_request(&format!("{number}.{part}"), "big", json!(3 * 1024 * 1024)).await;
        }
        deaf.push(raw);
    }
    service.until_callers(4).await;
    // They are read after all: those without memory were errors.
    let mut errors = 0;
    for raw in &mut deaf {
        for _ in 0..4 {
            let frame = raw.frame().await.unwrap();
            errors += usize::from(frame["ok"] == false);
        }
    }
    assert!(errors > 0, "48 MiB were kept");
    deaf[0].ask("big", json!(3 * 1024 * 1024)).await.unwrap();
}

#[tokio::test]
async fn a_quick_request_overtakes_a_slow_one() {
    let (_server, service, mut raw) = start_and_enter(SocketLimits::default()).await;
    raw.send_request("slow", "slow", Value::Null).await;
    raw.ask("health", Value::Null).await.unwrap();
    service.go_on.add_permits(1);
    assert_eq!(raw.frame().await.unwrap()["id"], "slow");
}

#[tokio::test]
async fn a_caller_that_reads_nothing_is_dropped_and_the_others_hear_everything() {
    const EVENTS: u64 = 400;
    let send = SendLimits { bytes: 1024 * 1024, ..calm().send };
    // No tick among the events, however long it takes.
    let (server, service) = start(SocketLimits { send, ..calm() }).await;
    let mut deaf = Raw::enter(server.address).await;
    let mut listening = Raw::enter(server.address).await;
    service.until_callers(2).await;
    let payload = "x".repeat(64 * 1024);
    for number in 1..=EVENTS {
        service.events.tell(Event::from_json("chat", to_raw_value(&payload).unwrap()));
        assert_eq!(listening.event("chat").await["seq"], number);
    }
    service.until_callers(1).await;
    assert!(deaf.is_over().await);
    listening.ask("health", Value::Null).await.unwrap();
}

#[tokio::test]
async fn a_caller_that_does_not_read_its_answers_is_dropped_after_a_while() {
    let send = SendLimits { stall: Duration::from_millis(200), ..SocketLimits::default().send };
    let (server, service) = start(SocketLimits { send, ..SocketLimits::default() }).await;
    let mut deaf = Raw::enter(server.address).await;
    service.until_callers(1).await;
    deaf.send_request("1", "big", json!(20 * 1024 * 1024)).await;
    service.until_callers(0).await;
}

#[tokio::test]
async fn ticks_come_and_are_counted_with_the_other_events() {
    // A caller that is silent for two ticks is dropped: on a busy machine they must not be too
    // frequent.
    let limits = SocketLimits { tick: Duration::from_secs(2), ..SocketLimits::default() };
    let (_server, _service, mut raw) = start_and_enter(limits).await;
    let first = raw.event("tick").await;
    assert!(first["payload"]["ts"].as_u64().unwrap() > 0);
    let second = raw.event("tick").await;
    assert_eq!((&first["seq"], &second["seq"]), (&json!(1), &json!(2)));
}

#[tokio::test]
async fn a_caller_that_answers_no_ping_is_dropped() {
    let limits = SocketLimits { tick: Duration::from_secs(1), ..SocketLimits::default() };
    let (server, service) = start(limits).await;
    // It does not read, and so does not respond.
    let _mute = Raw::enter(server.address).await;
    service.until_callers(1).await;
    service.until_callers(0).await;
}

#[tokio::test]
async fn a_stopping_server_says_so_and_gives_the_answers_that_come_in_time() {
    let (server, service) = start(SocketLimits::default()).await;
    let address = server.address;
    let mut raw = Raw::enter(address).await;
    raw.send_request("2", "slow", json!("late")).await;
    service.until_slow(1).await;
    let stopping = tokio::spawn(server.stop(LONG));
    raw.event("shutdown").await;
    service.go_on.add_permits(1);
    assert_eq!(raw.frame().await.unwrap()["payload"], "late");
    assert_eq!(raw.closed().await.0, 1012);
    drop(raw);
    timeout(LONG, stopping).await.unwrap().unwrap();
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_stopping_server_does_not_wait_for_ever() {
    let (server, service, mut raw) = start_and_enter(SocketLimits::default()).await;
    raw.send_request("2", "slow", Value::Null).await;
    service.until_slow(1).await;
    timeout(LONG, server.stop(Duration::from_millis(10))).await.unwrap();
    service.until_callers(0).await;
    assert!(raw.is_over().await);
}

#[tokio::test]
async fn an_authenticated_http_connection_is_kept_while_it_is_used() {
    let unused = Duration::from_secs(2);
    let (server, _service) = start(SocketLimits { unused, ..SocketLimits::default() }).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!(
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    );
    let begun = Instant::now();
    while begun.elapsed() < unused * 5 / 2 {
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = [0; 1024];
        let length = timeout(LONG, stream.read(&mut answer)).await.unwrap().unwrap();
        assert!(answer[..length].starts_with(b"HTTP/1.1 404"), "nothing is counted here");
        sleep(unused / 10).await;
    }
    let mut rest = Vec::new();
    let closed = timeout(LONG, stream.read_to_end(&mut rest)).await.unwrap();
    assert!(closed.is_ok() && rest.is_empty(), "{closed:?} {rest:?}");
}

#[tokio::test]
async fn an_http_connection_whose_client_does_not_read_is_closed() {
    let unused = Duration::from_secs(1);
    let (server, _service) = start(SocketLimits { unused, ..SocketLimits::default() }).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!(
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    );
    let requests = request.repeat(100);
    // Nothing is read, so the responses wait for room, and then so do the requests.
    let sending = async { while stream.write_all(requests.as_bytes()).await.is_ok() {} };
    timeout(LONG, sending).await.unwrap();
}
