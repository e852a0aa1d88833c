//! A folder with a configuration, and the hub on it.

use std::ops::Deref;
use std::process::Command;

use openclaw_testkit::{Peer, Recording, Script, StdioClient, TestServer};
use serde_json::{Map, Value, json};

use crate::common::gateway::RunningGateway;
use crate::common::place;

/// A folder whose configuration is written before each command.
pub(crate) struct Place {
    place: place::Place,
    pub(crate) config: Value,
}

impl Deref for Place {
    type Target = place::Place;

    fn deref(&self) -> &place::Place {
        &self.place
    }
}

impl Place {
    /// Without servers. Calls need no approval by default.
    pub(crate) fn new() -> Self {
        let config = json!({ "mcp": { "servers": {} } });
        Self { place: place::Place::configured(&config), config }
    }

    /// With one server of the testkit.
    pub(crate) fn with(name: &str, script: &Script) -> Self {
        let mut place = Self::new();
        place.add(name, script, json!({ "approval": "never" }));
        place
    }

    /// With one server whose calls take a minute, and what it records.
    pub(crate) fn hanging() -> (Self, Recording) {
        let mut place = Self::new();
        let recording = Recording::at(place.path("record"));
        let script = Script::new().call_delay_ms(60_000).record(recording.path());
        place.add("one", &script, json!({ "approval": "never" }));
        (place, recording)
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

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.save();
        self.place.command(args)
    }

    /// Starts a gateway on any port.
    pub(crate) fn gateway(&self) -> RunningGateway {
        self.save();
        self.place.gateway()
    }

    fn save(&self) {
        std::fs::write(self.path("openclaw.json"), self.config.to_string()).unwrap();
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

/// The next message of this kind.
pub(crate) fn next(hub: &mut StdioClient, mut is_meant: impl FnMut(&Value) -> bool) -> Value {
    loop {
        let message = hub.message();
        assert!(!message.is_null(), "the hub has exited");
        if is_meant(&message) {
            return message;
        }
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
