//! A model provider whose requests the test reads one by one, and folders that use it.

use std::ops::Deref;
use std::sync::mpsc::{Receiver, channel};

use openclaw_testkit::{ModelServer, Piece, Script, TestServer};
use serde_json::{Value, json};

use crate::client::Client;
use crate::common::LONG;
use crate::common::place::Place;

impl Place {
    /// With the offline model, and the demo server.
    pub(crate) fn new() -> Self {
        Self::with(&json!({}))
    }

    /// With the demo server, unless there is a setting for servers.
    pub(crate) fn with(config: &Value) -> Self {
        let place = Self::configured(config);
        if config.get("mcp").is_none() {
            let mut config = config.clone();
            let file = place.path("openclaw.json");
            // Its command line mentions this folder, so that it is found if it is left.
            let args = json!(["--config", file, "demo-server"]);
            let demo = json!({ "command": env!("CARGO_BIN_EXE_openclaw"), "args": args });
            config["mcp"] = json!({ "servers": { "demo": demo } });
            std::fs::write(file, config.to_string()).unwrap();
        }
        place
    }

    /// With this server of the testkit, whose entry has these settings.
    pub(crate) fn with_server(
        mut config: Value,
        name: &str,
        script: &Script,
        settings: Value,
    ) -> Self {
        let place = Self::configured(&json!({}));
        let (program, args) = TestServer::stdio_from(&place.path("script.json"), script);
        config["mcp"]["servers"][name] = settings;
        config["mcp"]["servers"][name]["command"] = json!(program);
        config["mcp"]["servers"][name]["args"] = json!(args);
        std::fs::write(place.path("openclaw.json"), config.to_string()).unwrap();
        place
    }
}

pub(crate) struct Model {
    server: ModelServer,
    requests: Receiver<Value>,
}

impl Model {
    /// Starts it: `answer` gets the body of each request.
    pub(crate) fn start(answer: impl Fn(&Value) -> Vec<Piece> + Send + Sync + 'static) -> Self {
        let (sender, requests) = channel();
        let server = ModelServer::start(move |request| {
            let _ = sender.send(request.clone());
            answer(request)
        });
        Self { server, requests }
    }

    /// Always answers with this text.
    pub(crate) fn saying(text: &'static str) -> Self {
        Self::start(move |_| vec![Piece::text(text)])
    }

    /// Calls this tool once, and then answers with this text.
    pub(crate) fn calling(tool: &'static str, text: &'static str) -> Self {
        Self::start(move |request| {
            let messages = request["messages"].as_array().unwrap();
            match messages.iter().any(|it| it["role"] == "tool") {
                false => vec![Piece::call(tool, json!({}))],
                true => vec![Piece::text(text)],
            }
        })
    }

    /// A place whose agent uses it.
    pub(crate) fn place(&self) -> Place {
        Place::with(&self.config())
    }

    /// Such a place, with a client.
    pub(crate) fn client(&self) -> (Place, Client) {
        let place = self.place();
        let client = Client::start(&place, &[]);
        (place, client)
    }

    pub(crate) fn config(&self) -> Value {
        json!({
            "agents": { "defaults": { "model": "fake/model" } },
            "models": { "providers": { "fake": self.entry() } },
        })
    }

    /// The next request.
    pub(crate) fn next(&self) -> Value {
        self.requests.recv_timeout(LONG).unwrap()
    }
}

impl Deref for Model {
    type Target = ModelServer;

    fn deref(&self) -> &ModelServer {
        &self.server
    }
}

/// The content of the last user message of a request.
pub(crate) fn last_message(request: &Value) -> &Value {
    let messages = request["messages"].as_array().unwrap();
    &messages.iter().rev().find(|it| it["role"] == "user").unwrap()["content"]
}
