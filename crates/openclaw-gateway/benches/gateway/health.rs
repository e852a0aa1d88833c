//! The round trip of `health` over the socket, compared with a bare axum WebSocket that echoes the
//! same bytes.

use std::net::{Ipv4Addr, SocketAddr};

use axum::Router;
use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::routing::any;
use futures_util::{SinkExt as _, StreamExt as _};
use openclaw_gateway::state;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::measure::{ROUNDS, keep_best, median, pin, repeats, verdict};
use crate::runtime;
use crate::sides::RunningGateway;

const TRIPS: usize = 3_000;
const RATIO: f64 = 1.5;
const HEALTH: &str = r#"{"type":"req","id":"1","method":"health"}"#;

pub(crate) fn run() {
    pin();
    println!("round trips, p50 of {TRIPS}, best of {ROUNDS} rounds; all ends on one thread");
    runtime().block_on(compare());
}

async fn compare() {
    let host_context = RunningGateway::open().await;
    let (echo, echo_task) = echo().await;
    let mut bare = Raw::dial(echo).await;
    let mut raw = Raw::dial(host_context.served.address()).await;
    raw.enter(&host_context).await;
    let client = host_context.client().await;
    assert!(raw.trip(HEALTH).await.contains(r#""ok":true"#));
    assert_eq!(bare.trip(HEALTH).await, HEALTH);

    let mut best = [f64::MAX; 3];
    for _ in 0..repeats(ROUNDS) {
        let round = [
            median(TRIPS, async || drop(bare.trip(HEALTH).await)).await,
            median(TRIPS, async || drop(raw.trip(HEALTH).await)).await,
            median(TRIPS, async || drop(client.request("health", None).await.unwrap())).await,
        ];
        keep_best(&mut best, round);
    }
    let [bare, raw, client] = best;
    println!("{:<44} {bare:>8.1} µs", "bare axum echo, raw client");
    for (what, ours) in [("`health`, raw client", raw), ("`health`, our client", client)] {
        let ratio = ours / bare;
        println!("{what:<44} {ours:>8.1} µs {ratio:>6.2} × that   {}", verdict(ratio, RATIO));
    }
    echo_task.abort();
    host_context.close().await;
}

/// A bare axum echo server.
async fn echo() -> (SocketAddr, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let upgrade = |upgrade: WebSocketUpgrade| async move { upgrade.on_upgrade(send_back) };
    let router = Router::new().route("/", any(upgrade));
    let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (address, task)
}

async fn send_back(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        if socket.send(message).await.is_err() {
            return;
        }
    }
}

/// A client without knowledge of the protocol.
struct Raw(WebSocketStream<TcpStream>);

impl Raw {
    async fn dial(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let url = format!("ws://{address}/");
        Self(tokio_tungstenite::client_async(url, stream).await.unwrap().0)
    }

    /// Sends a text, and waits for the next one.
    async fn trip(&mut self, text: &'static str) -> String {
        self.0.send(Message::text(text)).await.unwrap();
        self.next().await
    }

    async fn next(&mut self) -> String {
        loop {
            if let Message::Text(text) = self.0.next().await.unwrap().unwrap() {
                return text.as_str().to_owned();
            }
        }
    }

    /// Authenticates.
    async fn enter(&mut self, host_context: &RunningGateway) {
        let token = state::find(host_context.folder.path()).unwrap().token.unwrap();
        let connect = json!({ "type": "req", "id": "0", "method": "connect", "params": {
            "minProtocol": 4,
            "maxProtocol": 4,
            "client": { "id": "test", "version": "1", "platform": "linux", "mode": "test" },
            "role": "operator",
            "scopes": ["operator.read"],
            "auth": { "token": token.expose() },
        } });
        self.0.send(Message::text(connect.to_string())).await.unwrap();
        loop {
            let frame: Value = serde_json::from_str(&self.next().await).unwrap();
            if frame["type"] == "res" {
                assert_eq!(frame["ok"], true, "{frame}");
                return;
            }
        }
    }
}
