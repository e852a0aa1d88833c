//! A minimal blocking client: for tests of the kit, and as the bare pipe of benches.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus};

use serde_json::{Value, json};

use crate::processes::KillGroup;
use crate::script::Script;
use crate::server::{TestServer, spawn};

/// A stdio server with a pipe to it; its process group is killed when this value is dropped.
#[derive(Debug)]
pub struct StdioClient {
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    child: Child,
    group: KillGroup,
    next_id: u64,
}

impl StdioClient {
    /// Starts a server.
    ///
    /// # Panics
    ///
    /// If the binary is not built.
    pub fn start(script: &Script) -> Self {
        let (program, arguments) = TestServer::stdio(script);
        Self::run(Command::new(program).args(arguments))
    }

    /// Starts any server, such as one of [`Peers`](crate::Peers).
    ///
    /// # Panics
    ///
    /// If the program cannot be started.
    #[expect(clippy::expect_used, reason = "`spawn` pipes stdout")]
    pub fn run(command: &mut Command) -> Self {
        let mut child = spawn(command);
        Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().expect("stdout is a pipe")),
            group: KillGroup(child.id()),
            child,
            next_id: 1,
        }
    }

    /// Starts a server and performs the handshake, with the newest version that has one.
    ///
    /// # Panics
    ///
    /// If the binary is not built.
    pub fn connect(script: &Script) -> Self {
        let mut client = Self::start(script);
        client.initialize("2025-11-25");
        client
    }

    /// Sends `initialize` and `notifications/initialized`; returns the response.
    pub fn initialize(&mut self, version: &str) -> Value {
        self.initialize_with(version, &json!({}))
    }

    /// Like [`initialize`](Self::initialize), with capabilities.
    pub fn initialize_with(&mut self, version: &str, capabilities: &Value) -> Value {
        let answer = self.request(
            "initialize",
            &json!({
                "protocolVersion": version,
                "capabilities": capabilities,
                "clientInfo": {"name": "testkit", "version": "0"}
            }),
        );
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer
    }

    /// Returns the pid, which is also the id of its process group.
    pub fn pid(&self) -> u32 {
        self.group.0
    }

    /// Writes a line. Write errors are ignored: if the server has exited, reading its response fails.
    pub fn send(&mut self, line: &str) {
        if let Some(input) = &mut self.input {
            let _ = input.write_all(format!("{line}\n").as_bytes());
        }
    }

    /// Sends a request and returns its id.
    pub fn ask(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(
            &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        );
        id
    }

    /// Returns the next raw line; `None` at the end.
    pub fn line(&mut self) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        let read = self.output.read_until(b'\n', &mut line).unwrap_or(0);
        (read > 0).then_some(line)
    }

    /// Returns the next line that is JSON; `Null` at the end.
    pub fn message(&mut self) -> Value {
        while let Some(line) = self.line() {
            if let Ok(message) = serde_json::from_slice(&line) {
                return message;
            }
        }
        Value::Null
    }

    /// Sends a request and waits for the response with its id; `Null` if the server exits first.
    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.ask(method, params);
        loop {
            let message = self.message();
            if message.is_null() || message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    /// Calls a tool and waits for the response.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Calls a tool and returns the text of the first part of its result; empty if there is none.
    pub fn call_text(&mut self, tool: &str, arguments: &Value) -> String {
        let answer = self.call(tool, arguments);
        answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }

    /// Closes stdin.
    pub fn close(&mut self) {
        self.input = None;
    }

    /// Waits until the process exits.
    pub fn wait(&mut self) -> Option<ExitStatus> {
        self.child.wait().ok()
    }
}

impl Drop for StdioClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Dropping the field `group` kills the children of the server.
    }
}
