//! Clients that break the rules, by mistake or on purpose.

use openclaw_gateway::socket::SocketLimits;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::MaybeTlsStream;
use tokio_tungstenite::tungstenite::Message;

use futures_util::SinkExt as _;

use crate::support::{LONG, Raw, TOKEN, connect_params, start, start_and_enter};

#[tokio::test]
async fn a_thousand_silent_sockets_do_not_lock_out_others() {
    raise_file_limit();
    let (server, _service) = start(SocketLimits::default()).await;
    let mut early = Raw::enter(server.address).await;
    let mut silent = Vec::new();
    for number in 0..1_000 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        // Some send nothing, some begin a request, some become WebSockets.
        match number % 3 {
            0 => {}
            1 => drop(stream.write_all(b"GET / HT").await),
            _ => drop(stream.write_all(&upgrade(server.address.port())).await),
        }
        silent.push(stream);
    }
    early.ask("health", Value::Null).await.unwrap();
    Raw::enter(server.address).await.ask("health", Value::Null).await.unwrap();
    assert!(silent.len() == 1_000);
}

/// A limit of 1,024 open files would fail the test, not the server.
#[cfg(unix)]
pub(crate) fn raise_file_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
}

#[cfg(not(unix))]
pub(crate) fn raise_file_limit() {}

pub(crate) fn upgrade(port: u16) -> Vec<u8> {
    format!(
        "GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    .into_bytes()
}

#[tokio::test]
async fn at_the_connection_limit_authenticated_callers_stay_and_new_ones_are_rejected() {
    let (server, _service) =
        start(SocketLimits { connections: 2, ..SocketLimits::default() }).await;
    let mut first = Raw::enter(server.address).await;
    let second = Raw::enter(server.address).await;
    let mut third = TcpStream::connect(server.address).await.unwrap();
    let _ = third.write_all(&upgrade(server.address.port())).await;
    let mut answer = Vec::new();
    let _ = timeout(LONG, third.read_to_end(&mut answer)).await.unwrap();
    assert!(answer.is_empty());
    first.ask("health", Value::Null).await.unwrap();
    drop(second);
}

#[tokio::test]
async fn binary_messages_are_refused_with_a_reason() {
    let (_server, service, mut raw) = start_and_enter(SocketLimits::default()).await;
    raw.0.send(Message::binary(vec![1, 2, 3])).await.unwrap();
    let (code, reason) = raw.closed().await;
    assert_eq!(code, 1003);
    assert!(reason.contains("binary"), "{reason}");
    service.until_callers(0).await;
}

#[tokio::test]
async fn an_invalid_frame_closes_the_connection_before_and_after_the_handshake() {
    let (server, _service) = start(SocketLimits::default()).await;
    for text in ["", "hello", "[]", r#"{"type":"req"}"#, r#"{"type":"event","event":"tick"}"#] {
        let mut raw = Raw::dial(server.address).await;
        raw.send(text).await;
        assert_eq!(raw.closed().await, (1008, "invalid frame".to_owned()), "{text}");
        let mut raw = Raw::enter(server.address).await;
        raw.send(text).await;
        assert_eq!(raw.closed().await, (1008, "invalid frame".to_owned()), "{text}");
    }
}

/// Writes these bytes to the stream, bypassing the library.
async fn send_bytes(raw: &mut Raw, bytes: &[u8]) {
    let MaybeTlsStream::Plain(stream) = raw.0.get_mut() else { panic!("it is plain") };
    stream.write_all(bytes).await.unwrap();
}

/// A text frame with a mask of zeroes.
fn masked(payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x81, 0x80 | u8::try_from(payload.len()).unwrap(), 0, 0, 0, 0];
    bytes.extend(payload);
    bytes
}

#[tokio::test]
async fn text_that_is_not_utf_8_is_refused_with_a_reason() {
    let (_server, service, mut raw) = start_and_enter(SocketLimits::default()).await;
    send_bytes(&mut raw, &masked(b"\xff\xfe")).await;
    assert_eq!(raw.closed().await.0, 1007);
    service.until_callers(0).await;
}

#[tokio::test]
async fn frames_that_no_client_may_send_are_refused_with_a_reason() {
    let (server, service) = start(SocketLimits::default()).await;
    for bytes in [
        b"\x81\x01x".as_slice(), // not masked
        b"\xf1\x80\0\0\0\0",     // reserved bits
        b"\x83\x80\0\0\0\0",     // unknown opcode
        b"\x80\x80\0\0\0\0",     // nothing to continue
    ] {
        let mut raw = Raw::enter(server.address).await;
        send_bytes(&mut raw, bytes).await;
        assert_eq!(raw.closed().await.0, 1002, "{bytes:?}");
    }
    service.until_callers(0).await;
}

#[tokio::test]
async fn half_a_frame_and_then_nothing_leaves_nothing_behind() {
    let (_server, service, mut raw) = start_and_enter(SocketLimits::default()).await;
    send_bytes(&mut raw, b"\x81\xff\0\0\0\0\x01\0").await;
    drop(raw);
    service.until_callers(0).await;
}

#[tokio::test]
async fn a_method_that_panics_fails_and_the_connection_goes_on() {
    let (_server, _service, mut raw) = start_and_enter(SocketLimits::default()).await;
    let error = raw.ask("panic", Value::Null).await.unwrap_err();
    assert_eq!(error["code"], "UNAVAILABLE");
    raw.ask("health", Value::Null).await.unwrap();
}

#[tokio::test]
async fn an_unknown_method_is_named() {
    let (_server, _service, mut raw) = start_and_enter(SocketLimits::default()).await;
    let error = raw.ask("no.such", Value::Null).await.unwrap_err();
    assert_eq!(error["code"], "INVALID_REQUEST");
    assert_eq!(error["details"], json!({ "code": "UNKNOWN_METHOD", "method": "no.such" }));
}

#[tokio::test]
async fn requests_may_follow_connect_without_waiting_for_its_answer() {
    let (server, _service) = start(SocketLimits::default()).await;
    let mut raw = Raw::dial(server.address).await;
    raw.send_request("a", "connect", connect_params(TOKEN)).await;
    raw.send_request("b", "echo", json!({ "x": 1 })).await;
    let mut ids = Vec::new();
    while ids.len() < 2 {
        let frame = raw.frame().await.unwrap();
        if frame["type"] == "res" {
            assert_eq!(frame["ok"], true);
            ids.push(frame["id"].clone());
        }
    }
    assert_eq!(ids, ["a", "b"]);
}
