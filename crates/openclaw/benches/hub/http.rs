//! Over HTTP: the time of calls to the gateway's `/mcp`, with a server on stdio behind, compared with a
//! server that is reached by HTTP directly, and with the least possible bridge.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use openclaw_testkit::bench::repeats;
use openclaw_testkit::{Script, TestServer};
use serde_json::{Value, json};

use crate::running::Running;
use crate::{VERSION, http_bridge, line, with_servers};

const ROUNDS: usize = 15;
const CALLS: usize = 500;
const BUDGET: f64 = 1.75;

/// A connection to an HTTP server that is kept open.
struct Http {
    stream: BufReader<TcpStream>,
    path: String,
    headers: String,
}

impl Http {
    fn connect(url: &str, token: Option<&str>) -> Self {
        let rest = url.trim_start_matches("http://");
        let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut headers = format!(
            "Host: {address}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n"
        );
        if let Some(token) = token {
            headers += &format!("Authorization: Bearer {token}\r\n");
        }
        let mut http = Self { stream: BufReader::new(stream), path: format!("/{path}"), headers };
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "bench", "version": "0" },
        });
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        if let (_, Some(session)) = http.post(&hello.to_string()) {
            http.headers += &format!("Mcp-Session-Id: {session}\r\n");
        }
        http.headers += "MCP-Protocol-Version: 2025-11-25\r\n";
        http.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        http.post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#);
        http
    }

    /// Sends a request, and returns the length of the response's body and the session.
    fn post(&mut self, body: &str) -> (usize, Option<String>) {
        let request = format!(
            "POST {} HTTP/1.1\r\n{}Content-Length: {}\r\n\r\n{body}",
            self.path,
            self.headers,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
        let (mut length, mut session, mut is_chunked) = (0, None, false);
        let mut line = String::new();
        loop {
            line.clear();
            self.stream.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                if line.trim_end().is_empty() {
                    break;
                }
                assert!(line.contains(" 20"), "{line}");
                continue;
            };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().unwrap(),
                "mcp-session-id" => session = Some(value.to_owned()),
                "transfer-encoding" => is_chunked = true,
                _ => {}
            }
        }
        if is_chunked {
            return (self.chunks(), session);
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        (length, session)
    }

    fn chunks(&mut self) -> usize {
        let mut all = 0;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).unwrap();
            let size = usize::from_str_radix(line.trim(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            self.stream.read_exact(&mut chunk).unwrap();
            if size == 0 {
                return all;
            }
            all += size;
        }
    }

    fn median(&mut self, call: &str) -> f64 {
        let mut times: Vec<Duration> = (0..repeats(CALLS))
            .map(|_| {
                let start = Instant::now();
                assert!(self.post(call).0 > 0);
                start.elapsed()
            })
            .collect();
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64() * 1e6
    }
}

/// A running bridge, which is killed on drop.
struct Bridge(Child);

impl Bridge {
    /// Starts the bridge to a test server, and returns it with its URL.
    fn start() -> (Self, String) {
        let (program, args) = TestServer::stdio(&Script::new());
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(http_bridge::ARGUMENT).arg(program).args(args);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        (Self(child), url.trim_end().to_owned())
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Measures sequential calls on one connection.
pub(crate) fn latency() {
    let program = with_servers(1, VERSION);
    let (running, _) = Running::start(&program);
    running.until_ready(&program, 1);
    let state = std::fs::read_to_string(program.state().join("gateway.json")).unwrap();
    let state: Value = serde_json::from_str(&state).unwrap();
    let url = state["url"].as_str().unwrap().replace("ws://", "http://");
    let server = TestServer::http(&Script::new());
    let hub = format!("{}/mcp", url.trim_end_matches('/'));
    let (_bridge, bridge) = Bridge::start();
    let mut sides = [
        Http::connect(server.url(), None),
        Http::connect(&hub, state["token"].as_str()),
        Http::connect(&bridge, None),
    ];
    let arguments = json!({ "text": "x".repeat(66) });
    let params = json!({ "name": "echo", "arguments": arguments });
    let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
    let mut best = [f64::MAX; 3];
    for _ in 0..repeats(ROUNDS) {
        for (best, side) in best.iter_mut().zip(&mut sides) {
            *best = best.min(side.median(&call.to_string()));
        }
    }
    line("HTTP to stdio, call of 66 bytes", "µs", best[1], best[0], Some(BUDGET));
    line("the same through the least possible bridge", "µs", best[2], best[0], None);
    running.stop();
}
