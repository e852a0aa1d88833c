//! A minimal blocking HTTP client: it closes every connection and follows no redirects. It panics if a
//! server cannot be reached.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use super::form;

const TIMEOUT: Duration = Duration::from_secs(60);

/// A complete response.
#[derive(Debug, Clone)]
pub struct HttpResponse {
    /// The status; 0 if the connection was closed without a response.
    pub status: u16,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl HttpResponse {
    /// Returns the first header of this name (in lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Parses the body, or the last event of an event stream; `Null` if it is not JSON.
    pub fn json(&self) -> Value {
        let text = self.text();
        let event = text.lines().rev().find_map(|line| line.strip_prefix("data: "));
        serde_json::from_str(event.unwrap_or(&text)).unwrap_or_default()
    }
}

/// Sends a GET.
pub fn get(url: &str) -> HttpResponse {
    send("GET", url, &[], "")
}

/// Sends a POST with a form.
pub fn post_form(url: &str, pairs: &[(&str, &str)]) -> HttpResponse {
    let kind = ("content-type", "application/x-www-form-urlencoded");
    send("POST", url, &[kind], &form::encode(pairs))
}

/// Sends a POST with JSON, and with an access token if there is one.
pub fn post_json(url: &str, body: &Value, token: Option<&str>) -> HttpResponse {
    let authorization = token.map(|token| format!("Bearer {token}"));
    let mut headers = vec![
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    headers.extend(authorization.as_deref().map(|value| ("authorization", value)));
    send("POST", url, &headers, &body.to_string())
}

/// Sends any request.
#[expect(clippy::panic, reason = "a test cannot continue without it")]
pub fn send(method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> HttpResponse {
    exchange(method, url, headers, body)
        .unwrap_or_else(|error| panic!("no response to {method} {url}: {error}"))
}

fn exchange(
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> std::io::Result<HttpResponse> {
    let (authority, target) = split(url);
    // HTTP/1.0, so that no body is chunked.
    let mut request = format!("{method} {target} HTTP/1.0\r\nhost: {authority}\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    if method != "GET" {
        request += &format!("content-length: {}\r\n", body.len());
    }
    let mut stream = TcpStream::connect(authority)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(format!("{request}\r\n{body}").as_bytes())?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    Ok(parse(&bytes))
}

fn parse(bytes: &[u8]) -> HttpResponse {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(bytes.len());
    let head = String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned();
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_lowercase(), value.trim().to_owned()))
    };
    HttpResponse {
        status: status.unwrap_or(0),
        headers: lines.filter_map(header).collect(),
        body: bytes.get(end + 4..).unwrap_or_default().to_vec(),
    }
}

/// Splits a URL into `HOST:PORT` and its path with the query.
pub(super) fn split(url: &str) -> (&str, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split('#').next().unwrap_or_default();
    match rest.find(['/', '?']) {
        Some(at) if rest[at..].starts_with('/') => rest.split_at(at),
        _ => (rest, "/"),
    }
}
