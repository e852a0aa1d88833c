//! Servers over HTTP: they listen at the printed address, respond, and exit.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use openclaw_testkit::{FastMcp, Peers, RunningPeer, processes};

const PATIENCE: Duration = Duration::from_secs(120);

/// Returns the lines of a response, up to and including the first that contains `wanted`.
fn answer(peer: &RunningPeer, method: &str, body: &str, wanted: &str) -> Vec<String> {
    let rest = peer.url().strip_prefix("http://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!(
        "{method} /{path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut lines = Vec::new();
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        lines.push(line);
        if lines.last().is_some_and(|line| line.contains(wanted)) {
            return lines;
        }
    }
    panic!("no {wanted} from {}: {lines:?}", peer.url());
}

fn initialize(peer: &RunningPeer) -> Vec<String> {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"testkit","version":"0"}}}"#;
    answer(peer, "POST", body, r#""protocolVersion":"2025-11-25""#)
}

#[test]
fn servers_over_streamable_http_initialize_and_are_killed_with_their_guard() {
    let peers = Peers::find();
    for peer in [peers.everything_http(), peers.fastmcp_http(FastMcp::Http)] {
        let answer = initialize(&peer);
        assert!(answer.iter().any(|line| line.to_lowercase().starts_with("mcp-session-id:")));
        let pid = peer.pid();
        drop(peer);
        assert!(!processes::is_alive(pid));
    }
}

#[test]
fn a_stateless_server_returns_no_session_id() {
    let answer = initialize(&Peers::find().fastmcp_http(FastMcp::Stateless));
    assert!(!answer.iter().any(|line| line.to_lowercase().starts_with("mcp-session-id:")));
}

#[test]
fn servers_over_the_old_transport_name_their_endpoint() {
    let peers = Peers::find();
    for peer in [peers.everything_sse(), peers.everything_2024_sse()] {
        answer(&peer, "GET", "", "event: endpoint");
    }
}

#[test]
fn a_server_that_was_killed_starts_again_at_its_address() {
    let peers = Peers::find();
    for mut peer in [peers.everything_http(), peers.fastmcp_http(FastMcp::Stateless)] {
        let (pid, url) = (peer.pid(), peer.url().to_owned());
        peer.kill();
        assert!(!processes::is_alive(pid));
        peer.start_again();
        assert_eq!(peer.url(), url);
        initialize(&peer);
    }
}
