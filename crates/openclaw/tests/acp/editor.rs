//! An editor: the client side of ACP.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use openclaw_testkit::{AcpSchema, ModelServer, Script, TestServer};
use serde_json::{Value, json};

use crate::folder;

/// A generous timeout: the machine may be busy.
pub(crate) const LONG: Duration = Duration::from_secs(60);

static SCHEMA: LazyLock<AcpSchema> = LazyLock::new(AcpSchema::find);

/// A folder with a configuration, the state, and a project.
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::with(&json!({ "mcp": { "servers": {} } }))
    }

    pub(crate) fn with(config: &Value) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::write(place.path("openclaw.json"), config.to_string()).unwrap();
        std::fs::create_dir(place.path("project")).unwrap();
        place
    }

    /// With two models, `local/big` and `local/small`.
    pub(crate) fn with_models(server: &ModelServer) -> Self {
        let model = json!({ "primary": "local/big", "fallbacks": ["local/small"] });
        Self::with(&json!({
            "mcp": { "servers": {} },
            "models": { "providers": { "local": server.entry() } },
            "agents": { "defaults": { "model": model } },
        }))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn project(&self) -> String {
        self.path("project").to_str().unwrap().to_owned()
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

    /// A server of the testkit as an editor passes it. Its command line mentions this folder.
    pub(crate) fn stdio(&self, name: &str, script: &Script) -> Value {
        let file = self.path(&format!("{name}.script.json"));
        let (program, args) = TestServer::stdio_from(&file, script);
        json!({ "name": name, "command": program, "args": args, "env": [] })
    }

    /// Asserts that no process with this folder in its command line is left.
    pub(crate) fn assert_nothing_left(&self) {
        folder::assert_nothing_left(self.folder.path());
    }
}

type Answers = dyn FnMut(&str, &Value) -> Option<Value> + Send;

/// A running `openclaw acp` with its client.
pub(crate) struct Editor {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    frames: Receiver<Value>,
    /// By request id: its method.
    sent: Arc<Mutex<BTreeMap<u64, String>>>,
    /// Answers requests of the agent; `None` leaves one unanswered.
    answers: Box<Answers>,
    /// The requests of the agent.
    pub(crate) asked: Vec<(String, Value)>,
    /// The updates since the last request.
    pub(crate) updates: Vec<Value>,
    held: VecDeque<Value>,
    /// The id of the last request that was left unanswered.
    unanswered: Value,
    next: u64,
    is_paused: Arc<AtomicBool>,
}

impl Editor {
    pub(crate) fn start(place: &Place, args: &[&str], capabilities: &Value) -> Self {
        let mut editor = Self::spawn(place, args);
        let params = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
        let answer = editor.ask("initialize", params).unwrap();
        assert_eq!(answer["protocolVersion"], 1);
        editor
    }

    /// Without the handshake.
    pub(crate) fn spawn(place: &Place, args: &[&str]) -> Self {
        Self::spawn_with(place, args, &[])
    }

    /// Without the handshake, and with these variables.
    pub(crate) fn spawn_with(place: &Place, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = place.command(&[]);
        command.envs(variables.iter().copied());
        command.arg("acp").args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::inherit()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (sender, frames) = channel();
        let sent: Arc<Mutex<BTreeMap<u64, String>>> = Arc::default();
        let is_paused: Arc<AtomicBool> = Arc::default();
        std::thread::spawn({
            let (sent, is_paused) = (Arc::clone(&sent), Arc::clone(&is_paused));
            move || {
                for line in BufReader::new(output).lines() {
                    let Ok(line) = line else { return };
                    while is_paused.load(Ordering::Relaxed) {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                    // stdout carries the protocol only.
                    let frame: Value = serde_json::from_str(&line).unwrap();
                    let id = frame["id"].as_u64();
                    let method = id.and_then(|id| sent.lock().unwrap().get(&id).cloned());
                    SCHEMA.check(&frame, method.as_deref());
                    if sender.send(frame).is_err() {
                        return;
                    }
                }
            }
        });
        let (asked, updates, held) = (Vec::new(), Vec::new(), VecDeque::new());
        let answers: Box<Answers> = Box::new(|method, _| panic!("unexpected request {method}"));
        Self {
            child,
            input,
            frames,
            sent,
            answers,
            asked,
            updates,
            held,
            unanswered: Value::Null,
            next: 1,
            is_paused,
        }
    }

    /// Sets the answers to requests of the agent.
    pub(crate) fn answering(
        mut self,
        answers: impl FnMut(&str, &Value) -> Option<Value> + Send + 'static,
    ) -> Self {
        self.answers = Box::new(answers);
        self
    }

    /// Stops reading what the agent sends, or goes on.
    pub(crate) fn pause(&self, is_paused: bool) {
        self.is_paused.store(is_paused, Ordering::Relaxed);
    }

    pub(crate) fn write(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
    }

    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.sent.lock().unwrap().insert(id, method.to_owned());
        let frame = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.write(&frame.to_string());
        id
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        let frame = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.write(&frame.to_string());
    }

    /// The next frame. A request of the agent is answered, and returned as `{"asked": METHOD}`.
    pub(crate) fn frame(&mut self) -> Value {
        let frame = self.frames.recv_timeout(LONG).unwrap();
        let Some(method) = frame["method"].as_str() else { return frame };
        if frame.get("id").is_none() {
            if method == "session/update" {
                self.updates.push(frame["params"]["update"].clone());
            }
            return frame;
        }
        self.asked.push((method.to_owned(), frame["params"].clone()));
        if let Some(result) = (self.answers)(method, &frame["params"]) {
            let answer = json!({ "jsonrpc": "2.0", "id": frame["id"], "result": result });
            self.write(&answer.to_string());
        } else {
            self.unanswered = frame["id"].clone();
        }
        json!({ "asked": method })
    }

    /// Answers the last request that was left unanswered.
    pub(crate) fn answer_late(&mut self, result: &Value) {
        let answer = json!({ "jsonrpc": "2.0", "id": self.unanswered, "result": result });
        self.write(&answer.to_string());
    }

    /// Waits for the answer to a request: its result, or its error.
    pub(crate) fn answer(&mut self, id: u64) -> Result<Value, Value> {
        let is_it = |frame: &Value| frame["id"] == id && frame.get("method").is_none();
        if let Some(at) = self.held.iter().position(is_it) {
            return result(self.held.remove(at).unwrap());
        }
        loop {
            let frame = self.frame();
            if is_it(&frame) {
                return result(frame);
            }
            self.held.push_back(frame);
        }
    }

    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.updates.clear();
        let id = self.send(method, params);
        self.answer(id)
    }

    pub(crate) fn error(&mut self, method: &str, params: Value) -> String {
        let error = self.ask(method, params).unwrap_err();
        error["message"].as_str().unwrap().to_owned()
    }

    /// Opens a session in the project, and returns its id.
    pub(crate) fn session(&mut self, place: &Place, servers: &[Value]) -> String {
        let params = json!({ "cwd": place.project(), "mcpServers": servers });
        self.ask("session/new", params).unwrap()["sessionId"].as_str().unwrap().to_owned()
    }

    pub(crate) fn send_prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.send("session/prompt", json!({ "sessionId": session, "prompt": prompt }))
    }

    /// Sends a prompt, and returns its stop reason and the text of the answer.
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> (String, String) {
        self.updates.clear();
        let id = self.send_prompt(session, text);
        let answer = self.answer(id).unwrap();
        (answer["stopReason"].as_str().unwrap().to_owned(), self.text())
    }

    /// The text of the answer so far.
    pub(crate) fn text(&self) -> String {
        let chunks = self.updates.iter().filter(|it| it["sessionUpdate"] == "agent_message_chunk");
        chunks.filter_map(|it| it["content"]["text"].as_str()).collect()
    }

    /// The updates of this kind.
    pub(crate) fn of_kind(&self, kind: &str) -> Vec<&Value> {
        self.updates.iter().filter(|update| update["sessionUpdate"] == kind).collect()
    }

    /// Closes the input, and returns the exit code.
    pub(crate) fn close(mut self) -> i32 {
        drop(self.input.take());
        let deadline = Instant::now() + LONG;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            assert!(Instant::now() < deadline, "it does not exit");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn result(mut frame: Value) -> Result<Value, Value> {
    match frame.get_mut("error") {
        Some(error) => Err(error.take()),
        None => Ok(frame["result"].take()),
    }
}

/// Chooses the option of this kind.
pub(crate) fn choose(params: &Value, kind: &str) -> Option<Value> {
    let options = params["options"].as_array().unwrap();
    let option = options.iter().find(|option| option["kind"] == kind).unwrap();
    Some(json!({ "outcome": { "outcome": "selected", "optionId": option["optionId"] } }))
}
