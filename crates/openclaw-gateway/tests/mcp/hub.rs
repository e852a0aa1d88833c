//! What belongs to an access token at `/mcp` ends when it is revoked.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use openclaw_gateway::socket::{ListenOptions, SocketLimits, bind};
use openclaw_gateway::tokens::TokenStore;
use openclaw_protocol::Scope;
use openclaw_secrets::SecretString;
use openclaw_testkit::{Recording, Script};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::support::{LONG, Place, config, entry, stop};

/// A client of `/mcp` with a token.
struct TokenClient {
    address: SocketAddr,
    token: SecretString,
}

impl TokenClient {
    /// Sends a request on a connection of its own.
    async fn begin(&self, method: &str, headers: &[(&str, &str)], body: &Value) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let more: String =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let request = format!(
            "{method} /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Authorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{more}Content-Length: {}\r\n\r\n{body}",
            self.token.expose(),
            body.len(),
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    async fn send(&self, headers: &[(&str, &str)], body: &Value) -> String {
        rest(self.begin("POST", headers, body).await).await
    }

    /// Opens a session.
    async fn session(&self) -> String {
        let info = json!({ "name": "test", "version": "1" });
        let hello =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
        let opened = self.send(&[], &request(1, "initialize", &hello)).await;
        let session = opened.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        let session = session.unwrap_or_else(|| panic!("{opened}")).to_owned();
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.send(&[("Mcp-Session-Id", &session)], &ready).await;
        session
    }
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Reads until the other side closes.
async fn rest(mut stream: TcpStream) -> String {
    let mut all = Vec::new();
    timeout(LONG, stream.read_to_end(&mut all)).await.unwrap().unwrap();
    String::from_utf8(all).unwrap()
}

/// Waits until the server has received this many messages with this method.
async fn until(recording: &Recording, method: &str, count: usize) {
    let received = async {
        while recording.of_method(method).len() < count {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LONG, received).await.unwrap();
}

#[tokio::test]
async fn the_sessions_streams_and_calls_of_a_revoked_token_end() {
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::at(folder.path().join("record"));
    let script = Script::new().call_delay_ms(60_000).record(recording.path());
    let mut server = entry(&script);
    server["approval"] = json!("never");
    let place = Place::new(&config(&json!({ "x": server })));
    let gateway = place.start().await;
    let store = TokenStore::new(folder.path());
    let options = ListenOptions {
        bind: Ipv4Addr::LOCALHOST.into(),
        port: 0,
        token: Some(SecretString::from("the operator's".to_owned())),
        token_is_shared: false,
        tokens: Some(store.clone()),
        limits: SocketLimits { tick: Duration::from_millis(50), ..SocketLimits::default() },
    };
    let listening = bind(options).await.unwrap().serve(Arc::new(Arc::clone(&gateway)));
    let client = |name: &str| {
        let token = store.create(name, &[Scope::Write]).unwrap();
        TokenClient { address: listening.address, token }
    };
    let (phone, laptop) = (client("phone"), client("laptop"));
    let (session, other_session) = (phone.session().await, laptop.session().await);
    let in_session = [("Mcp-Session-Id", session.as_str())];
    let of_other = [("Mcp-Session-Id", other_session.as_str())];
    let stream = phone.begin("GET", &in_session, &Value::Null).await;
    let call = json!({ "name": "echo", "arguments": { "text": "x" } });
    let call_in_session = phone.begin("POST", &in_session, &request(2, "tools/call", &call)).await;
    let mut modern = call;
    modern["_meta"] = json!({
        "progressToken": 1,
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "echo"),
    ];
    let call_without = phone.begin("POST", &headers, &request(3, "tools/call", &modern)).await;
    until(&recording, "tools/call", 2).await;

    store.revoke("phone").unwrap();
    for ended in [stream, call_in_session, call_without] {
        rest(ended).await;
    }
    until(&recording, "notifications/cancelled", 2).await;
    let refused = phone.send(&in_session, &request(4, "ping", &json!({}))).await;
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    let alive = laptop.send(&of_other, &request(4, "ping", &json!({}))).await;
    assert!(alive.starts_with("HTTP/1.1 200"), "{alive}");
    // A token of the same name is another one.
    let again = client("phone");
    let unknown = again.send(&in_session, &request(4, "ping", &json!({}))).await;
    assert!(unknown.starts_with("HTTP/1.1 404"), "{unknown}");
    listening.stop(Duration::ZERO).await;
    stop(gateway).await;
}
