//! An MCP client that writes and reads lines.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

use serde_json::{Value, json};

use crate::common::place::Place;
use crate::common::rpc::{RpcProcess, hello, is_answer, outcome};

/// A running `openclaw mcp-server` with its client.
pub(crate) struct Client {
    process: RpcProcess,
    /// Answers that are not read yet.
    held: VecDeque<Value>,
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
        let answer = client.ask("initialize", hello(version, capabilities));
        client.notify("notifications/initialized", json!({}));
        (client, answer.unwrap())
    }

    /// Without the handshake.
    pub(crate) fn spawn(place: &Place, args: &[&str]) -> Self {
        let mut command = place.command(&["mcp-server"]);
        command.args(args);
        let process = RpcProcess::spawn(command, |_| {});
        Self { process, held: VecDeque::new() }
    }

    /// The next frame.
    pub(crate) fn frame(&mut self) -> Value {
        self.held.pop_front().unwrap_or_else(|| self.receive())
    }

    /// Waits for the answer to a request: its result, or its error.
    pub(crate) fn answer(&mut self, id: u64) -> Result<Value, Value> {
        if let Some(at) = self.held.iter().position(|frame| is_answer(frame, id)) {
            return outcome(self.held.remove(at).unwrap());
        }
        loop {
            let frame = self.receive();
            if is_answer(&frame, id) {
                return outcome(frame);
            }
            if frame.get("method").is_none() {
                self.held.push_back(frame);
            }
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
}

impl Deref for Client {
    type Target = RpcProcess;

    fn deref(&self) -> &RpcProcess {
        &self.process
    }
}

impl DerefMut for Client {
    fn deref_mut(&mut self) -> &mut RpcProcess {
        &mut self.process
    }
}
