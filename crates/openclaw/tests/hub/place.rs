//! A folder with a configuration, and the hub on it.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use openclaw_testkit::{Peer, Script, StdioClient, TestServer};
use serde_json::{Map, Value, json};

use crate::folder;

/// A generous timeout: the machine may be busy.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A folder with a configuration and the state.
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) config: Value,
}

impl Place {
    /// Without servers. Calls need no approval by default.
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), config: json!({ "mcp": { "servers": {} } }) }
    }

    /// With one server of the testkit.
    pub(crate) fn with(name: &str, script: &Script) -> Self {
        let mut place = Self::new();
        place.add(name, script, json!({ "approval": "never" }));
        place
    }

    /// Adds a server of the testkit. Its command line mentions this folder.
    pub(crate) fn add(&mut self, name: &str, script: &Script, settings: Value) {
        let file = self.path(&format!("{name}.script.json"));
        let (program, args) = TestServer::stdio_from(&file, script);
        self.add_entry(name, json!({ "command": program, "args": args }), settings);
    }

    /// Adds a real server.
    pub(crate) fn add_peer(&mut self, name: &str, peer: &Peer) {
        let command = peer.command();
        let args: Vec<_> = command.get_args().map(|it| it.to_str().unwrap()).collect();
        let entry = json!({ "command": command.get_program().to_str().unwrap(), "args": args });
        self.add_entry(name, entry, json!({ "approval": "never", "timeout": 60_000 }));
    }

    pub(crate) fn add_entry(&mut self, name: &str, entry: Value, settings: Value) {
        let mut all: Map<String, Value> = entry.as_object().unwrap().clone();
        all.extend(settings.as_object().unwrap().clone());
        self.config["mcp"]["servers"][name] = Value::Object(all);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        std::fs::write(self.path("openclaw.json"), self.config.to_string()).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_openclaw"));
        self.prepare(command.args(args));
        command
    }

    /// Sets a known environment.
    pub(crate) fn prepare<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        folder::prepare(self.folder.path(), command)
    }

    /// Starts the hub, without the handshake.
    pub(crate) fn spawn(&self, args: &[&str]) -> StdioClient {
        let mut command = self.command(&["mcp-server", "--hub"]);
        StdioClient::run(command.args(args))
    }

    /// Starts the hub for a client without capabilities.
    pub(crate) fn hub(&self, args: &[&str]) -> StdioClient {
        self.hub_for(args, &json!({}))
    }

    /// Starts the hub for a client with these capabilities.
    pub(crate) fn hub_for(&self, args: &[&str], capabilities: &Value) -> StdioClient {
        let mut hub = self.spawn(args);
        let answer = hub.initialize_with("2025-11-25", capabilities);
        assert_eq!(answer["result"]["serverInfo"]["name"], "openclaw-hub", "{answer}");
        hub
    }

    /// The lines of the audit log.
    pub(crate) fn audit(&self) -> Vec<Value> {
        let logs = std::fs::read_dir(self.path("logs")).into_iter().flatten().flatten();
        let files = logs.filter(|it| it.file_name().to_string_lossy().contains("audit"));
        let texts = files.map(|it| std::fs::read_to_string(it.path()).unwrap());
        let lines = texts.flat_map(|text| text.lines().map(ToOwned::to_owned).collect::<Vec<_>>());
        lines.map(|line| serde_json::from_str(&line).unwrap()).collect()
    }

    /// Asserts that no process with this folder in its command line is left.
    pub(crate) fn assert_nothing_left(&self) {
        folder::assert_nothing_left(self.folder.path());
    }

    /// Starts a gateway on any port.
    pub(crate) fn gateway(&self) -> RunningGateway {
        let mut command = self.command(&["gateway", "run", "--port", "0"]);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        let file = self.path("gateway.json");
        loop {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            if let Ok(Value::Object(state)) = serde_json::from_str(&text) {
                let url = state["url"].as_str().unwrap_or_default().to_owned();
                let token = state["token"].as_str().unwrap_or_default().to_owned();
                return RunningGateway { child, url, token };
            }
            assert!(child.try_wait().unwrap().is_none(), "the gateway has exited");
            assert!(begun.elapsed() < LONG, "the gateway does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A running gateway, which is ended when this is dropped.
pub(crate) struct RunningGateway {
    pub(crate) child: Child,
    url: String,
    pub(crate) token: String,
}

impl RunningGateway {
    /// The host and port.
    pub(crate) fn address(&self) -> &str {
        self.url.trim_start_matches("ws://").trim_end_matches('/')
    }

    /// The URL of the hub.
    pub(crate) fn mcp(&self) -> String {
        format!("http://{}/mcp", self.address())
    }
}

impl Drop for RunningGateway {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}

/// The text of the first part of a result.
pub(crate) fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_default()
}

/// The names in a list.
pub(crate) fn names(answer: &Value, list: &str) -> Vec<String> {
    let all = answer["result"][list].as_array().unwrap_or_else(|| panic!("{answer}"));
    all.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}
