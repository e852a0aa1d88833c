//! Plain HTTP.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering;

use openclaw_gateway::socket::{ListenError, SocketLimits, bind};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::{LONG, listen_on, start};

/// Returns the head and the body of the response.
async fn get(address: SocketAddr, path: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(LONG, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    answer
}

async fn status(address: SocketAddr, path: &str, headers: &str) -> u16 {
    let answer = get(address, path, headers).await;
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

const HERE: &str = "Host: localhost\r\n";

#[tokio::test]
async fn health_readiness_and_metadata_are_served_and_nothing_else() {
    let (server, service) = start(SocketLimits::default()).await;
    let address = server.address;
    assert_eq!(status(address, "/healthz", HERE).await, 200);
    assert_eq!(status(address, "/readyz", HERE).await, 503);
    service.is_ready.store(true, Ordering::Relaxed);
    assert_eq!(status(address, "/readyz", HERE).await, 200);
    assert_eq!(status(address, "/oauth/client-metadata.json", HERE).await, 404);
    service.has_metadata.store(true, Ordering::Relaxed);
    let metadata = get(address, "/oauth/client-metadata.json", HERE).await;
    assert!(metadata.ends_with(r#"{"client_name":"OpenClaw"}"#), "{metadata}");
    assert!(metadata.contains("cache-control: public, max-age=3600"), "{metadata}");
    assert!(!metadata.contains("no-store"), "{metadata}");
    for path in ["/", "/ws", "/nothing", "/healthz/x", "/../etc/passwd"] {
        assert_eq!(status(address, path, HERE).await, 404, "{path}");
    }
}

#[tokio::test]
async fn responses_have_security_headers() {
    let (server, _service) = start(SocketLimits::default()).await;
    for path in ["/healthz", "/nothing"] {
        let answer = get(server.address, path, HERE).await;
        for header in
            ["cache-control: no-store", "x-content-type-options: nosniff", "frame-ancestors"]
        {
            assert!(answer.contains(header), "{path}: {answer}");
        }
    }
}

#[tokio::test]
async fn other_names_and_other_pages_are_forbidden_on_every_path() {
    let (server, _service) = start(SocketLimits::default()).await;
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    for path in ["/", "/healthz", "/nothing"] {
        for headers in [
            "",
            "Host: evil.example\r\n",
            "Host: localhost\r\nHost: localhost\r\n",
            "Host: user@localhost\r\n",
            "Host: localhost\r\nOrigin: http://evil.example\r\n",
            "Host: localhost\r\nOrigin: null\r\n",
        ] {
            let headers = format!("{headers}{upgrade}");
            assert_eq!(status(server.address, path, &headers).await, 403, "{path} {headers}");
        }
    }
    for (target, expected) in
        [("http://evil.example/healthz", 403), ("http://localhost/healthz", 200)]
    {
        assert_eq!(status(server.address, target, HERE).await, expected, "{target}");
    }
    let headers = "Host: localhost\r\nOrigin: https://example.com\r\n";
    assert_eq!(status(server.address, "/healthz", headers).await, 200);
}

#[tokio::test]
async fn other_machines_are_served_only_with_a_token_that_cannot_be_guessed() {
    let everywhere = |token| listen_on(Ipv4Addr::UNSPECIFIED, Some(token));
    let refused = bind(everywhere("")).await.unwrap_err();
    assert!(matches!(refused, ListenError::NeedsToken(_)), "{refused}");
    for token in ["x", "fifteen-letters"] {
        let refused = bind(everywhere(token)).await.unwrap_err();
        assert!(matches!(refused, ListenError::ShortToken(_)), "{refused}");
    }
    bind(everywhere("sixteen--letters")).await.unwrap();
    bind(listen_on(Ipv4Addr::LOCALHOST, Some("x"))).await.unwrap();
}

#[tokio::test]
async fn another_websocket_version_is_rejected_with_the_supported_one() {
    let (server, _service) = start(SocketLimits::default()).await;
    let headers = "Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let answer = get(server.address, "/", headers).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(answer.contains("sec-websocket-version: 13"), "{answer}");
}
