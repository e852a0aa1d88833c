//! A minimal HTTP client: it closes every connection and follows no redirects.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use openclaw_testkit::HttpServer;
use serde_json::{Value, json};

pub(crate) struct Client {
    port: u16,
    session: Option<String>,
}

pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Client {
    pub(crate) fn of(server: &HttpServer) -> Self {
        Self { port: server.port(), session: None }
    }

    fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut head = format!(
            "{method} {path} HTTP/1.0\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {}\r\n",
            body.len()
        );
        if let Some(session) = &self.session {
            head += &format!("mcp-session-id: {session}\r\n");
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        stream
    }

    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response {
        let mut bytes = Vec::new();
        // If the connection breaks, the bytes received before are kept.
        let _ = self.request(method, path, headers, body).read_to_end(&mut bytes);
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(bytes.len());
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let header = |line: &str| {
            let (name, value) = line.split_once(": ")?;
            Some((name.to_lowercase(), value.to_owned()))
        };
        Response {
            status: status.unwrap_or(0),
            headers: lines.filter_map(header).collect(),
            body: bytes.get(end + 4..).unwrap_or_default().to_vec(),
        }
    }

    /// Returns the lines of the body as they arrive.
    pub(crate) fn open(
        &self,
        path: &str,
        headers: &[(&str, &str)],
    ) -> impl Iterator<Item = String> + use<> {
        let stream = self.request("GET", path, headers, "");
        let lines = BufReader::new(stream).lines().map_while(Result::ok);
        lines.skip_while(|line| !line.is_empty()).skip(1)
    }

    pub(crate) fn rpc(&self, method: &str, params: &Value) -> Response {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.send("POST", "/mcp", &[], &body.to_string())
    }

    pub(crate) fn initialize(&mut self) -> Response {
        self.session = None;
        let answer = self.rpc("initialize", &json!({"protocolVersion": "2025-11-25"}));
        self.session = answer.header("mcp-session-id").map(str::to_owned);
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        if self.session.is_some() {
            assert_eq!(self.send("POST", "/mcp", &[], initialized).status, 202);
        }
        answer
    }

    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Response {
        self.rpc("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Sends a request and returns the connection, to read any part of the response.
    pub(crate) fn stream(&self, method: &str, body: &Value) -> TcpStream {
        self.request(method, "/mcp", &[], &body.to_string())
    }

    /// Sends a request and disconnects once `arrived` returns, without waiting for the response.
    pub(crate) fn leave(&self, body: &Value, arrived: impl FnOnce()) {
        let stream = self.stream("POST", body);
        arrived();
        drop(stream);
    }
}
