//! A process with JSON-RPC in lines on stdin and stdout.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use openclaw_testkit::processes;
use serde_json::{Value, json};

use super::LONG;

/// The process, and what it sends. It is killed on drop.
pub(crate) struct RpcProcess {
    pub(crate) child: Child,
    pub(crate) input: Option<ChildStdin>,
    frames: Receiver<Value>,
    /// The id of the next request.
    pub(crate) next: u64,
}

impl RpcProcess {
    /// Starts it. `check` is called with each frame, as soon as it is read.
    pub(crate) fn spawn(
        mut command: Command,
        mut check: impl FnMut(&Value) + Send + 'static,
    ) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (sender, frames) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { return };
                // stdout carries the protocol only.
                let frame: Value = serde_json::from_str(&line).unwrap();
                assert_eq!(frame["jsonrpc"], "2.0");
                check(&frame);
                if sender.send(frame).is_err() {
                    return;
                }
            }
        });
        Self { child, input, frames, next: 1 }
    }

    /// The next frame.
    pub(crate) fn receive(&self) -> Value {
        self.frames.recv_timeout(LONG).unwrap()
    }

    pub(crate) fn write(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
    }

    /// Sends a request, and returns its id.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.write(&request(id, method, params));
        id
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        let frame = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.write(&frame.to_string());
    }

    /// Waits for the process to exit; returns its code.
    pub(crate) fn exit(&mut self) -> i32 {
        let mut status = None;
        processes::wait_until(LONG, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let Some(status) = status else { panic!("it does not exit") };
        status.code().unwrap_or(-1)
    }

    /// Closes the input, and returns the exit code.
    pub(crate) fn close(&mut self) -> i32 {
        drop(self.input.take());
        self.exit()
    }
}

impl Drop for RpcProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The parameters of `initialize`, for a client with these capabilities.
pub(crate) fn hello(version: &str, capabilities: Value) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": capabilities,
        "clientInfo": { "name": "test", "version": "1" },
    })
}

/// What a client of 2026-07-28 sends with each request, instead of a handshake.
pub(crate) fn meta(capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

/// A request, as it is written.
pub(crate) fn request(id: u64, method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// Whether a frame is the answer to this request.
pub(crate) fn is_answer(frame: &Value, id: u64) -> bool {
    frame["id"] == id && frame.get("method").is_none()
}

/// The result or the error of an answer.
pub(crate) fn outcome(mut frame: Value) -> Result<Value, Value> {
    match frame.get_mut("error") {
        Some(error) => Err(error.take()),
        None => Ok(frame["result"].take()),
    }
}
