//! Over HTTP: the time of calls to the gateway's `/mcp`, with a server on stdio behind, compared with a
//! server that is reached by HTTP directly.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use openclaw_testkit::{Script, TestServer};
use serde_json::{Value, json};

use crate::running::Running;
use crate::{VERSION, line, with_servers};

const ROUNDS: usize = 15;
const CALLS: usize = 500;
const BUDGET: f64 = 2.0;

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
        let mut times: Vec<Duration> = (0..CALLS)
            .map(|_| {
                let start = Instant::now();
                assert!(self.post(call).0 > 0);
                start.elapsed()
            })
            .collect();
        times.sort_unstable();
        times[CALLS / 2].as_secs_f64() * 1e6
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
    let mut sides =
        [Http::connect(server.url(), None), Http::connect(&hub, state["token"].as_str())];
    let arguments = json!({ "text": "x".repeat(66) });
    let params = json!({ "name": "echo", "arguments": arguments });
    let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
    let mut best = [f64::MAX; 2];
    for _ in 0..ROUNDS {
        for (best, side) in best.iter_mut().zip(&mut sides) {
            *best = best.min(side.median(&call.to_string()));
        }
    }
    line("HTTP to stdio, call of 66 bytes", "µs", best[1], best[0], Some(BUDGET));
    running.stop();
}
