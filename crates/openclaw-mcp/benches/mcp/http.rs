//! Tool calls over HTTP with JSON responses: the whole pipeline and the fast lane alone, compared
//! with bare `hyper` that sends the same bytes over one connection and parses nothing.

use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use openclaw_config::ProxySetting;
use openclaw_mcp_client::connection::remote::{self, RemoteConnection, RemotePlan};
use openclaw_mcp_client::wire::WireCall;
use openclaw_testkit::{Script, TestServer};
use rmcp::model::ClientConfig;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use url::Url;

use crate::connection::{client, remote_plan};
use crate::measure::{Budget, ROUNDS, cpu_used, heading, keep_best, line, median, pin, repeats};
use crate::runtime;
use crate::sides::{Arguments, Bridge, entry, lane_call};

const P50: Budget = Budget::at_most(1.2);
const CALLS: usize = 2_000;
const META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}"#;

/// Bare `hyper` with one persistent connection.
struct Hyper {
    // Borrowed by the benchmark's futures; there is one call at a time.
    sender: Mutex<SendRequest<Full<Bytes>>>,
    connection: JoinHandle<()>,
    url: Url,
    body: Bytes,
}

impl Hyper {
    async fn open(url: &str, arguments: &Arguments) -> Self {
        let url = Url::parse(url).unwrap();
        let stream = TcpStream::connect(("127.0.0.1", url.port().unwrap())).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        let connection = tokio::spawn(async move {
            let _ = connection.await;
        });
        let id = 1_u64 << 40;
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{},"_meta":{{{META},"progressToken":{id}}}}}}}"#,
            arguments.raw
        );
        Self { sender: Mutex::new(sender), connection, url, body: body.into() }
    }

    async fn call(&self) -> usize {
        let request = Request::post(self.url.path())
            .header("host", self.url.authority())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "echo")
            .body(Full::new(self.body.clone()))
            .unwrap();
        let mut sender = self.sender.lock().await;
        sender.ready().await.unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), 200);
        response.into_body().collect().await.unwrap().to_bytes().len()
    }
}

fn plan(url: &str) -> RemotePlan {
    let mut plan = remote_plan(url);
    plan.config.proxy = ProxySetting::Direct;
    plan
}

pub(crate) fn run() {
    pin();
    println!("tool calls over HTTP, 16 bytes, one connection, best of {ROUNDS} rounds");
    heading("bare hyper");
    runtime().block_on(compare());
}

async fn compare() {
    let arguments = Arguments::new(&json!({ "text": "x".repeat(16) }));
    let raw = &*arguments.raw;
    let server = TestServer::http(&Script::new());
    let hyper = Hyper::open(server.url(), &arguments).await;
    let opened: RemoteConnection<ClientConfig> =
        remote::open(plan(server.url()), client()).await.unwrap();
    let bridge = Bridge::open(entry(json!({ "url": server.url() }))).await;
    bridge.approve("mcp_x_echo", raw).await;

    let call = WireCall {
        tool: "echo",
        arguments: raw,
        meta: META,
        more: "",
        headers: &[],
        trace: None,
        work: None,
    };
    let mut best = [f64::MAX; 6];
    for _ in 0..repeats(ROUNDS) {
        let mut round = [0.0; 6];
        let before = cpu_used();
        round[0] = median(CALLS, || bridge.call("mcp_x_echo", raw)).await;
        let after_bridge = cpu_used();
        round[1] = median(CALLS, || lane_call(&opened.lane, call)).await;
        let after_lane = cpu_used();
        round[2] = median(CALLS, || hyper.call()).await;
        let after_hyper = cpu_used();
        round[3] = (after_bridge - before) / CALLS as f64;
        round[4] = (after_lane - after_bridge) / CALLS as f64;
        round[5] = (after_hyper - after_lane) / CALLS as f64;
        keep_best(&mut best, round);
    }
    let [p50, lane_p50, hyper_p50, used, lane_used, hyper_used] = best;
    line("p50, pipeline", "µs", p50, hyper_p50, P50);
    line("p50, fast lane alone", "µs", lane_p50, hyper_p50, P50);
    line("CPU per call, pipeline", "µs", used, hyper_used, Budget::NONE);
    line("CPU per call, fast lane alone", "µs", lane_used, hyper_used, Budget::NONE);
    bridge.fleet.stop().await;
    let _ = opened.rmcp.cancel().await;
    hyper.connection.abort();
}
