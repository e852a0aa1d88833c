//! What a tool call over HTTP costs: the fast lane beside a bare hyper client, which sends the same bytes
//! and reads the answer, on the same kind of server, in one run. Rounds are interleaved and the best of
//! each counts: the machine is shared.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark talks to a person")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use openclaw_config::{HttpFlavour, HttpServer, OAuthSettings, ProxySetting, TlsSettings};
use openclaw_mcp::remote::{self, Network, RemotePlan};
use openclaw_mcp::wire::{FastLane, Limits, ToolCall};
use openclaw_testkit::{Script, TestServer};
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion};
use serde_json::value::RawValue;
use tokio::net::TcpStream;
use url::Url;

const ROUNDS: usize = 9;
const CALLS: usize = 2_000;
const LIMITS: Limits = Limits { timeout: Duration::from_secs(60), cap: Duration::from_secs(60) };

fn client() -> ClientConfig {
    ClientConfig::new(ClientCapabilities::default(), Implementation::new("bench", "0"))
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
}

fn plan(url: &str) -> RemotePlan {
    RemotePlan {
        server: "bench".to_owned(),
        config: HttpServer {
            url: Url::parse(url).unwrap().into(),
            flavour: HttpFlavour::Streamable,
            headers: BTreeMap::new(),
            api_key: None,
            oauth: OAuthSettings::default(),
            tls: TlsSettings { ca_file: None, client_cert: None, client_key: None, verify: true },
            proxy: ProxySetting::Direct,
        },
        headers: BTreeMap::new(),
        network: Network::default(),
        client: client(),
        known: None,
        timeout: Duration::from_secs(30),
    }
}

async fn fast_call(lane: &FastLane, arguments: &RawValue) -> usize {
    let call = ToolCall { tool: "echo", arguments, meta: "", more: "", headers: &[] };
    lane.call_tool(call, LIMITS).await.unwrap().get().len()
}

/// A connection that knows nothing of MCP but what a call looks like.
struct Bare {
    sender: SendRequest<Full<Bytes>>,
    host: String,
    session: String,
    body: Bytes,
}

impl Bare {
    async fn connect(port: u16, session: String, arguments: &RawValue) -> Self {
        let host = format!("127.0.0.1:{port}");
        let stream = TcpStream::connect(&host).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1099511627777,"method":"tools/call","params":{{"name":"echo","arguments":{arguments},"_meta":{{"progressToken":1099511627777}}}}}}"#
        );
        Self { sender, host, session, body: body.into() }
    }

    async fn call(&mut self) -> usize {
        let request = hyper::Request::post("/mcp")
            .header("host", &self.host)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-session-id", &self.session)
            .header("mcp-protocol-version", "2025-11-25")
            .body(Full::new(self.body.clone()))
            .unwrap();
        self.sender.ready().await.unwrap();
        let response = self.sender.send_request(request).await.unwrap();
        assert!(response.status().is_success());
        response.into_body().collect().await.unwrap().to_bytes().len()
    }
}

/// The median time of a call, one after the other.
async fn median(mut call: impl AsyncFnMut() -> usize) -> f64 {
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let start = Instant::now();
        call().await;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    times[CALLS / 2].as_secs_f64() * 1e6
}

async fn compare(form: &str, script: &Script, size: usize) {
    let arguments = serde_json::json!({ "text": "x".repeat(size) });
    let arguments = serde_json::value::to_raw_value(&arguments).unwrap();
    let server = TestServer::http(script);
    let mut opened = remote::open(plan(server.url()), client()).await.unwrap();
    let session = opened.lane.session_id().unwrap();
    let mut bare = Bare::connect(server.port(), session, &arguments).await;

    let mut best = [f64::MAX; 2];
    for _ in 0..ROUNDS {
        let round = [
            median(async || fast_call(&opened.lane, &arguments).await).await,
            median(async || bare.call().await).await,
        ];
        for (best, now) in best.iter_mut().zip(round) {
            *best = best.min(now);
        }
    }
    let [fast, bare] = best;
    println!("{form:>6} {size:>8} {fast:>14.1} {bare:>14.1} {:>8.2}", fast / bare);
    let _ = opened.rmcp.close().await;
}

/// One core for both ends: between two, what is measured is how long it takes to wake the other.
#[cfg(target_os = "linux")]
fn pin() {
    let mut cores = nix::sched::CpuSet::new();
    let pinned = cores
        .set(1)
        .and_then(|()| nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &cores));
    println!("pinned to one core: {}", pinned.is_ok());
}

#[cfg(not(target_os = "linux"))]
fn pin() {}

fn main() {
    pin();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    println!("tool calls over HTTP; p50 in µs, best of {ROUNDS} rounds");
    println!(
        "{:>6} {:>8} {:>14} {:>14} {:>8}",
        "answer", "bytes", "fast lane", "bare hyper", "ratio"
    );
    let json = Script::new().legacy();
    for (form, script) in [("json", json.clone()), ("sse", json.sse_answers())] {
        for size in [16, 4 * 1024, 64 * 1024] {
            runtime.block_on(Box::pin(compare(form, &script, size)));
        }
    }
}
