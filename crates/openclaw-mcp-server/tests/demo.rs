//! The demo server from the view of both kinds of clients, line by line.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use std::time::Duration;

use openclaw_mcp_server::demo;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, duplex};
use tokio::task::JoinHandle;

/// A timeout far above anything here.
const LONG: Duration = Duration::from_secs(60);

struct Client {
    to_server: DuplexStream,
    from_server: Lines<BufReader<DuplexStream>>,
    server: JoinHandle<Result<(), demo::DemoServerError>>,
    modern: bool,
    last_id: u64,
}

impl Client {
    fn connect(modern: bool) -> Self {
        let (to_server, input) = duplex(64 * 1024);
        let (output, from_server) = duplex(64 * 1024);
        let server = tokio::spawn(demo::serve(input, output));
        let from_server = BufReader::new(from_server).lines();
        Self { to_server, from_server, server, modern, last_id: 0 }
    }

    /// A client that begins with `initialize`.
    async fn of_2025() -> Self {
        let mut client = Self::connect(false);
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let answer = client.ask("initialize", hello).await;
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
        assert_eq!(answer["result"]["serverInfo"]["name"], "openclaw-demo");
        client.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        client
    }

    async fn send(&mut self, message: Value) {
        self.to_server.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn request(&mut self, method: &str, mut params: Value) -> u64 {
        self.last_id += 1;
        if self.modern {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
            meta["io.modelcontextprotocol/clientInfo"] = json!({ "name": "test", "version": "1" });
        }
        let id = self.last_id;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(LONG, self.from_server.next_line()).await.unwrap();
        serde_json::from_str(&line.unwrap().unwrap()).unwrap()
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        let answer = self.next().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// Closes the connection; the server must stop by itself.
    async fn leave(self) {
        drop(self.to_server);
        tokio::time::timeout(LONG, self.server).await.unwrap().unwrap().unwrap();
    }
}

#[tokio::test]
async fn clients_of_both_eras_are_served() {
    for mut client in [Client::of_2025().await, Client::connect(true)] {
        if client.modern {
            let found = client.ask("server/discover", json!({})).await;
            let versions = found["result"]["supportedVersions"].as_array().unwrap().clone();
            assert!(versions.contains(&json!("2026-07-28")), "{found}");
        }
        let tools = client.ask("tools/list", json!({})).await;
        let names: Vec<_> =
            tools["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
        assert_eq!(names, ["echo", "add", "now", "count"]);
        let said = client.call("echo", json!({ "text": "hello" })).await;
        assert_eq!(said["content"][0]["text"], "hello");
        client.leave().await;
    }
}

#[tokio::test]
async fn a_client_that_disconnects_immediately_is_not_an_error() {
    Client::connect(true).leave().await;
}

#[tokio::test]
async fn every_tool_is_described_and_marked_read_only() {
    let mut client = Client::of_2025().await;
    let tools = client.ask("tools/list", json!({})).await;
    for tool in tools["result"]["tools"].as_array().unwrap() {
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
        assert_eq!(tool["annotations"]["openWorldHint"], false, "{tool}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        let properties = tool["inputSchema"]["properties"].as_object().unwrap();
        assert!(properties.values().all(|property| property["description"].is_string()), "{tool}");
    }
    client.leave().await;
}

#[tokio::test]
async fn numbers_are_added_as_text_and_as_data() {
    let mut client = Client::of_2025().await;
    let sum = client.call("add", json!({ "a": 2, "b": 3 })).await;
    assert_eq!(sum["content"][0]["text"], "5");
    assert_eq!(sum["structuredContent"], json!({ "sum": 5 }));
    let sum = client.call("add", json!({ "a": 0.5, "b": 0.25 })).await;
    assert_eq!(sum["structuredContent"]["sum"], 0.75);
    let sum = client.call("add", json!({ "a": 1e308, "b": 1e308 })).await;
    assert_eq!(sum["isError"], true);
    client.leave().await;
}

#[tokio::test]
async fn the_clock_uses_rfc_3339() {
    let mut client = Client::of_2025().await;
    for (arguments, length, end) in
        [(json!({}), 20, "Z"), (json!({ "offset_minutes": -90 }), 25, "-01:30")]
    {
        let time = client.call("now", arguments).await["content"][0]["text"].clone();
        let time = time.as_str().unwrap();
        assert!(time.len() == length && time.ends_with(end), "{time}");
    }
    client.leave().await;
}

#[tokio::test]
async fn wrong_arguments_are_explained_to_the_model_and_an_unknown_tool_is_refused() {
    let mut client = Client::of_2025().await;
    for (tool, arguments, says) in [
        ("echo", json!({ "txt": "x" }), "unknown argument `txt`"),
        ("add", json!({ "a": "1", "b": 2 }), "/a must be a number, but is the string \"1\""),
        ("now", json!({ "offset_minutes": 5000 }), "less than a day"),
        ("count", json!({ "to": 0 }), "at least 1"),
    ] {
        let answer = client.call(tool, arguments).await;
        assert_eq!(answer["isError"], true, "{answer}");
        assert!(answer["content"][0]["text"].as_str().unwrap().contains(says), "{answer}");
    }
    let refused = client.ask("tools/call", json!({ "name": "nonsense" })).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    client.leave().await;
}

#[tokio::test]
async fn counting_reports_progress() {
    let mut client = Client::connect(true);
    let params = json!({
        "name": "count",
        "arguments": { "to": 3, "pause_ms": 1 },
        "_meta": { "progressToken": "p" },
    });
    let id = client.request("tools/call", params).await;
    for number in 1..=3 {
        let progress = client.next().await;
        assert_eq!(progress["method"], "notifications/progress", "{progress}");
        assert_eq!(progress["params"]["progressToken"], "p");
        assert_eq!(progress["params"]["progress"].as_f64(), Some(f64::from(number)));
        assert_eq!(progress["params"]["total"].as_f64(), Some(3.0));
    }
    let answer = client.next().await;
    assert_eq!(answer["id"], id);
    assert_eq!(answer["result"]["content"][0]["text"], "counted to 3");
    client.leave().await;
}

#[tokio::test(start_paused = true)]
async fn counting_stops_when_it_is_cancelled() {
    let mut client = Client::of_2025().await;
    let slow = json!({
        "name": "count",
        "arguments": { "to": 1000, "pause_ms": 1000 },
        "_meta": { "progressToken": 1 },
    });
    let id = client.request("tools/call", slow).await;
    assert_eq!(client.next().await["method"], "notifications/progress");
    let params = json!({ "requestId": id });
    client
        .send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
        .await;
    // Twice the time that it would need to count to the end.
    let until = tokio::time::Instant::now() + Duration::from_secs(2000);
    while let Ok(line) = tokio::time::timeout_at(until, client.from_server.next_line()).await {
        let line = line.unwrap().unwrap();
        assert!(!line.contains("counted to") && !line.contains("\"progress\":1000"), "{line}");
    }
    let said = client.call("echo", json!({ "text": "still here" })).await;
    assert_eq!(said["content"][0]["text"], "still here");
    client.leave().await;
}

#[tokio::test]
async fn the_notes_can_be_read_and_used_in_a_prompt() {
    let mut client = Client::of_2025().await;
    let listed = client.ask("resources/list", json!({})).await;
    assert_eq!(listed["result"]["resources"][0]["uri"], "demo://notes");
    let read = client.ask("resources/read", json!({ "uri": "demo://notes" })).await;
    let notes = read["result"]["contents"][0]["text"].clone();
    assert!(notes.as_str().unwrap().contains("OpenClaw"));
    let missing = client.ask("resources/read", json!({ "uri": "demo://other" })).await;
    assert!(missing["error"].is_object(), "{missing}");
    let prompts = client.ask("prompts/list", json!({})).await;
    assert_eq!(prompts["result"]["prompts"][0]["name"], "summarise-notes");
    let params = json!({ "name": "summarise-notes", "arguments": { "language": "French" } });
    let prompt = client.ask("prompts/get", params).await;
    let messages = &prompt["result"]["messages"];
    assert!(messages[0]["content"]["text"].as_str().unwrap().contains("in French"), "{messages}");
    assert_eq!(messages[1]["content"]["resource"]["text"], notes);
    client.leave().await;
}

#[tokio::test]
async fn what_is_not_a_message_is_answered_with_its_id() {
    let mut client = Client::of_2025().await;
    for (line, id, code) in [
        (&b"hello"[..], Value::Null, -32700),
        (b"\xff\xfe", Value::Null, -32700),
        (b"[{}]", Value::Null, -32600),
        (b"{\"id\":{},\"method\":\"ping\"}", Value::Null, -32600),
        (b"{\"id\":7,\"method\":8}", json!(7), -32600),
    ] {
        client.to_server.write_all(&[line, b"\n"].concat()).await.unwrap();
        let answer = client.next().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(code)), "{answer}");
        assert!(answer.get("id").is_some(), "{answer}");
    }
    client.to_server.write_all(b"\xef\xbb\xbf").await.unwrap();
    assert_eq!(client.ask("ping", json!({})).await["result"], json!({}));
    client.leave().await;
}

#[tokio::test]
async fn a_line_that_is_too_long_is_skipped_and_its_request_is_answered() {
    let mut client = Client::of_2025().await;
    let long = "x".repeat(9 * 1024 * 1024);
    for line in [
        format!("{{\"jsonrpc\":\"2.0\",\"id\":99,\"method\":\"ping\",\"params\":\"{long}\"}}\n"),
        format!("{{\"method\":\"ping\",\"params\":{{\"a\":\"{long}\"}},\"id\":99}}\n"),
    ] {
        client.to_server.write_all(line.as_bytes()).await.unwrap();
        let answer = client.next().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(99), &json!(-32600)));
        assert!(answer["error"]["message"].as_str().unwrap().contains("longer than"), "{answer}");
        assert_eq!(client.ask("ping", json!({})).await["result"], json!({}));
    }
    client.leave().await;
}
