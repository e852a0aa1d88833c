//! An MCP client that writes and reads lines.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::folder;

/// A generous timeout: the machine may be busy.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A folder with a configuration and the state.
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
}

impl Place {
    /// With the offline model, and the demo server.
    pub(crate) fn new() -> Self {
        Self::with(&json!({}))
    }

    pub(crate) fn with(config: &Value) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        let mut config = config.clone();
        if config.get("mcp").is_none() {
            let program = env!("CARGO_BIN_EXE_openclaw");
            // Its command line mentions this folder, so that it is found if it is left.
            let args = json!(["--config", place.path("openclaw.json"), "demo-server"]);
            config["mcp"] = json!({ "servers": { "demo": { "command": program, "args": args } } });
        }
        std::fs::write(place.path("openclaw.json"), config.to_string()).unwrap();
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Sets a known environment.
    pub(crate) fn prepare<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        folder::prepare(self.folder.path(), command)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_openclaw"));
        self.prepare(command.args(args));
        command
    }

    /// Asserts that no process with this folder in its command line is left.
    pub(crate) fn assert_nothing_left(&self) {
        folder::assert_nothing_left(self.folder.path());
    }
}

/// A running `openclaw mcp-server` with its client.
pub(crate) struct Client {
    pub(crate) child: Child,
    pub(crate) input: Option<ChildStdin>,
    frames: Receiver<Value>,
    held: VecDeque<Value>,
    /// The notifications so far.
    pub(crate) told: Vec<Value>,
    next: u64,
}

impl Client {
    pub(crate) fn start(place: &Place, args: &[&str]) -> Self {
        Self::start_with(place, args, "2025-11-25").0
    }

    /// Starts it with these capabilities of the client.
    pub(crate) fn start_able(place: &Place, args: &[&str], capabilities: Value) -> Self {
        Self::greet(place, args, "2025-11-25", capabilities).0
    }

    /// Starts it with this protocol version. Returns the answer to `initialize`, too.
    pub(crate) fn start_with(place: &Place, args: &[&str], version: &str) -> (Self, Value) {
        Self::greet(place, args, version, json!({}))
    }

    fn greet(place: &Place, args: &[&str], version: &str, capabilities: Value) -> (Self, Value) {
        let mut client = Self::spawn(place, args);
        let answer = client.ask(
            "initialize",
            json!({
                "protocolVersion": version,
                "capabilities": capabilities,
                "clientInfo": { "name": "test", "version": "1" },
            }),
        );
        client.notify("notifications/initialized", json!({}));
        (client, answer.unwrap())
    }

    /// Without the handshake.
    pub(crate) fn spawn(place: &Place, args: &[&str]) -> Self {
        let mut command = place.command(&[]);
        command.arg("mcp-server").args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::inherit()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (sender, frames) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { return };
                // stdout carries the protocol only.
                let frame: Value = serde_json::from_str(&line).unwrap();
                assert_eq!(frame["jsonrpc"], "2.0");
                if sender.send(frame).is_err() {
                    return;
                }
            }
        });
        let (held, told) = (VecDeque::new(), Vec::new());
        Self { child, input, frames, held, told, next: 1 }
    }

    pub(crate) fn write(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
    }

    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        let frame = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.write(&frame.to_string());
        id
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        let frame = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.write(&frame.to_string());
    }

    /// The next frame.
    pub(crate) fn frame(&mut self) -> Value {
        self.held.pop_front().unwrap_or_else(|| self.frames.recv_timeout(LONG).unwrap())
    }

    /// Waits for the answer to a request: its result, or its error.
    pub(crate) fn answer(&mut self, id: u64) -> Result<Value, Value> {
        let is_it = |frame: &Value| frame["id"] == id && frame.get("method").is_none();
        let known = self.held.iter().position(is_it).and_then(|at| self.held.remove(at));
        let mut frame = match known {
            Some(frame) => frame,
            None => loop {
                let frame = self.frames.recv_timeout(LONG).unwrap();
                if is_it(&frame) {
                    break frame;
                }
                match frame.get("method") {
                    Some(_) => self.told.push(frame),
                    None => self.held.push_back(frame),
                }
            },
        };
        match frame.get_mut("error") {
            Some(error) => Err(error.take()),
            None => Ok(frame["result"].take()),
        }
    }

    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, params);
        self.answer(id)
    }

    pub(crate) fn send_call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.send("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// Calls a tool.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.send_call(tool, arguments);
        self.answer(id).unwrap()
    }

    /// Sends a message to the agent; returns the structured result.
    pub(crate) fn order(&mut self, arguments: Value) -> Value {
        let result = self.call("order_openclaw", arguments);
        assert_eq!(result["isError"], false, "{result}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that fails; returns its message.
    pub(crate) fn failure(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Waits for the process to exit; returns its code.
    pub(crate) fn exit(&mut self) -> i32 {
        let deadline = Instant::now() + LONG;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            assert!(Instant::now() < deadline, "it does not exit");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Closes the input, and returns the exit code.
    pub(crate) fn close(mut self) -> i32 {
        drop(self.input.take());
        self.exit()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
