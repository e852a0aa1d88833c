//! An editor: the client side of ACP.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use openclaw_testkit::{AcpSchema, ModelServer, Script, TestServer, Tool};
use serde_json::{Value, json};

pub(crate) use crate::common::place::Place;
use crate::common::rpc::{RpcProcess, is_answer, outcome};

static SCHEMA: LazyLock<AcpSchema> = LazyLock::new(AcpSchema::find);

impl Place {
    pub(crate) fn new() -> Self {
        Self::with(&json!({ "mcp": { "servers": {} } }))
    }

    /// With a project, too.
    pub(crate) fn with(config: &Value) -> Self {
        let place = Self::configured(config);
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

    pub(crate) fn project(&self) -> String {
        self.path("project").to_str().unwrap().to_owned()
    }

    /// A server of the testkit as an editor passes it. Its command line mentions this folder.
    pub(crate) fn stdio(&self, name: &str, script: &Script) -> Value {
        let file = self.path(&format!("{name}.script.json"));
        let (program, args) = TestServer::stdio_from(&file, script);
        json!({ "name": name, "command": program, "args": args, "env": [] })
    }
}

type Answers = dyn FnMut(&str, &Value) -> Option<Value> + Send;

/// A running `openclaw acp` with its client.
pub(crate) struct Editor {
    process: RpcProcess,
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

    /// With a session in the project, whose id is returned.
    pub(crate) fn open(place: &Place, servers: &[Value]) -> (Self, String) {
        let mut editor = Self::start(place, &[], &json!({}));
        let session = editor.session(place, servers);
        (editor, session)
    }

    /// Allows each call once.
    pub(crate) fn allowing(place: &Place, args: &[&str]) -> Self {
        Self::start(place, args, &json!({})).answering(|_, params| choose(params, "allow_once"))
    }

    /// Without the handshake.
    pub(crate) fn spawn(place: &Place, args: &[&str]) -> Self {
        Self::spawn_with(place, args, &[])
    }

    /// Without the handshake, and with these variables.
    pub(crate) fn spawn_with(place: &Place, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = place.command(&["acp"]);
        command.args(args).envs(variables.iter().copied());
        let sent: Arc<Mutex<BTreeMap<u64, String>>> = Arc::default();
        let is_paused: Arc<AtomicBool> = Arc::default();
        let process = RpcProcess::spawn(command, {
            let (sent, is_paused) = (Arc::clone(&sent), Arc::clone(&is_paused));
            move |frame| {
                while is_paused.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                let id = frame["id"].as_u64();
                let method = id.and_then(|id| sent.lock().unwrap().get(&id).cloned());
                SCHEMA.check(frame, method.as_deref());
            }
        });
        let (asked, updates, held) = (Vec::new(), Vec::new(), VecDeque::new());
        let answers: Box<Answers> = Box::new(|method, _| panic!("unexpected request {method}"));
        let unanswered = Value::Null;
        Self { process, sent, answers, asked, updates, held, unanswered, is_paused }
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

    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        self.sent.lock().unwrap().insert(self.process.next, method.to_owned());
        self.process.send(method, params)
    }

    /// The next frame. A request of the agent is answered, and returned as `{"asked": METHOD}`.
    pub(crate) fn frame(&mut self) -> Value {
        let frame = self.receive();
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

    /// Answers the last request that was left unanswered with an error.
    pub(crate) fn fail_late(&mut self, message: &str) {
        let error = json!({ "code": -32603, "message": message });
        let answer = json!({ "jsonrpc": "2.0", "id": self.unanswered, "error": error });
        self.write(&answer.to_string());
    }

    /// Waits for the answer to a request: its result, or its error.
    pub(crate) fn answer(&mut self, id: u64) -> Result<Value, Value> {
        if let Some(at) = self.held.iter().position(|frame| is_answer(frame, id)) {
            return outcome(self.held.remove(at).unwrap());
        }
        loop {
            let frame = self.frame();
            if is_answer(&frame, id) {
                return outcome(frame);
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

    /// Loads a session in the project, with these servers.
    pub(crate) fn load(&mut self, place: &Place, session: &str, servers: &[Value]) -> Value {
        let load = json!({ "sessionId": session, "cwd": place.project(), "mcpServers": servers });
        self.ask("session/load", load).unwrap()
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

    /// Waits until there is an update of this kind.
    pub(crate) fn wait_for(&mut self, kind: &str) {
        while self.of_kind(kind).is_empty() {
            self.frame();
        }
    }

    /// The updates of this kind.
    pub(crate) fn of_kind(&self, kind: &str) -> Vec<&Value> {
        self.updates.iter().filter(|update| update["sessionUpdate"] == kind).collect()
    }
}

impl Deref for Editor {
    type Target = RpcProcess;

    fn deref(&self) -> &RpcProcess {
        &self.process
    }
}

impl DerefMut for Editor {
    fn deref_mut(&mut self) -> &mut RpcProcess {
        &mut self.process
    }
}

/// A server with a tool that may change something.
pub(crate) fn changing() -> Script {
    let done = json!({ "content": [{ "type": "text", "text": "done" }] });
    Script::new().tools([Tool::new("change").result(&done)])
}

/// A PNG with one pixel.
pub(crate) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Chooses the option of this kind.
pub(crate) fn choose(params: &Value, kind: &str) -> Option<Value> {
    let options = params["options"].as_array().unwrap();
    let option = options.iter().find(|option| option["kind"] == kind).unwrap();
    Some(json!({ "outcome": { "outcome": "selected", "optionId": option["optionId"] } }))
}
