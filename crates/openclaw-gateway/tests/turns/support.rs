//! A gateway with its own directory, and callers that record events.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use openclaw_config::{LoadEnvironment, Loaded, load};
use openclaw_gateway::socket::{Caller, CallerService as _, Endpoint};
use openclaw_gateway::{Gateway, Prepare, Setup};
use openclaw_mcp::call::bridge::CallServices;
use openclaw_mcp::connection::client::Host;
use openclaw_mcp::fleet::{self, StartMode};
use openclaw_mcp::process::guard::Guard;
use openclaw_mcp::server::Folders;
use openclaw_mcp::server::dial::DialContext;
use openclaw_mcp::store::pins::Pins;
use openclaw_protocol::client::{Client, Options};
use openclaw_protocol::connect::caps;
use openclaw_protocol::{ErrorShape, EventReceiver, Received, Surface};
use openclaw_secrets::{Environment, Redactor, Resolver, Settings};
use openclaw_testkit::{Script, TestServer, processes};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

/// Generous: the machine may be busy.
pub(crate) const LONG: Duration = Duration::from_secs(90);
/// The session used by most tests.
pub(crate) const KEY: &str = "agent:main:main";

/// A directory with a configuration.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new(config: &Value) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        place.write(&config.to_string());
        place
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn config_file(&self) -> PathBuf {
        self.path().join("openclaw.json")
    }

    /// Writes another configuration.
    pub(crate) fn write(&self, config: &str) {
        std::fs::write(self.config_file(), config).unwrap();
    }

    pub(crate) fn setup(&self) -> Setup {
        let environment: Environment = [("PATH", "/usr/bin:/bin")].into_iter().collect();
        let resolver = Resolver::new(Settings::default(), environment.clone(), Redactor::new());
        let context = DialContext {
            resolver,
            environment: environment.clone(),
            guard: Guard::none(),
            host: Host::default(),
            auth: None,
        };
        let file = self.config_file();
        let reading = file.clone();
        let read: Arc<dyn Fn() -> Loaded + Send + Sync> =
            Arc::new(move || load(&reading, LoadEnvironment { variable: &|_| None, home: None }));
        let loaded = read();
        let Some(config) = loaded.config else { panic!("{:?}", loaded.report) };
        let state = self.path().join("state");
        std::fs::create_dir_all(&state).unwrap();
        let pins = Some(Pins::load(state.join("pins.json")).unwrap().into());
        Setup {
            config,
            config_file: file,
            load: read,
            state,
            fleet: fleet::Setup {
                context,
                folders: Folders::default(),
                services: CallServices { pins, ..CallServices::none() },
                tries_again: true,
                start: StartMode::Eager,
                agent: None,
            },
            environment,
            version: "1.2.3".to_owned(),
            people: true,
            prepare: Prepare::AtStart,
        }
    }

    /// Starts a gateway and waits until all servers were tried.
    pub(crate) async fn start(&self) -> Arc<Gateway> {
        let gateway = Gateway::start(self.setup()).await.unwrap();
        timeout(LONG, gateway.fleet().tried()).await.unwrap();
        gateway
    }
}

/// A configuration with the offline model and these servers.
pub(crate) fn config(servers: &Value) -> Value {
    json!({
        "agents": { "defaults": { "model": "offline", "toolSearchThreshold": 0 } },
        "mcp": { "servers": servers },
    })
}

/// The entry of a testkit server whose tools need no approval.
pub(crate) fn entry(script: &Script) -> Value {
    let (program, args) = TestServer::stdio(script);
    json!({ "command": program, "args": args, "timeout": 60_000, "approval": "never",
            "rateLimit": 0 })
}

/// Like [`entry`], with further keys.
pub(crate) fn entry_with(script: &Script, more: &Value) -> Value {
    let mut entry = entry(script);
    for (key, value) in more.as_object().unwrap() {
        entry[key] = value.clone();
    }
    entry
}

/// A client, used like an endpoint in this process.
#[derive(Debug)]
struct Remote(Client);

impl Endpoint for Remote {
    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Option<Box<RawValue>>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, ErrorShape>> {
        Box::pin(self.0.request(method, params))
    }

    fn events(&self) -> EventReceiver {
        Surface::events(&self.0)
    }
}

/// A connected caller.
pub(crate) struct Someone {
    pub(crate) surface: Arc<dyn Endpoint>,
    events: EventReceiver,
}

impl Someone {
    pub(crate) fn at(surface: Arc<dyn Endpoint>) -> Self {
        let events = surface.events();
        Self { surface, events }
    }

    /// On a socket.
    pub(crate) fn remote(client: Client) -> Self {
        Self::at(Arc::new(Remote(client)))
    }

    /// In this process, with all scopes.
    pub(crate) fn new(gateway: &Arc<Gateway>) -> Self {
        let all = ["admin", "read", "write", "approvals"];
        Self::with(gateway, &all)
    }

    /// In this process, with these scopes.
    pub(crate) fn with(gateway: &Arc<Gateway>, scopes: &[&str]) -> Self {
        Self::who(gateway, scopes, &[])
    }

    /// In this process, with support for elicitations.
    pub(crate) fn answering(gateway: &Arc<Gateway>) -> Self {
        Self::who(gateway, &["read", "write", "approvals"], &[caps::ELICITATION])
    }

    /// In this process, with these scopes and capabilities.
    pub(crate) fn who(gateway: &Arc<Gateway>, scopes: &[&str], caps: &[&str]) -> Self {
        let options = Options::new("", None, "1");
        let caller = Caller {
            client: options.client,
            role: options.role,
            scopes: scopes.iter().map(|scope| format!("operator.{scope}")).collect(),
            caps: caps.iter().map(|&cap| cap.to_owned()).collect(),
            commands: Vec::new(),
            remote: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            connection: "this process".to_owned(),
        };
        Self::at(gateway.open(caller).unwrap())
    }

    pub(crate) async fn ask(&self, method: &str, params: Value) -> Result<Value, ErrorShape> {
        let params = to_raw_value(&params).unwrap();
        let answer = timeout(LONG, self.surface.request(method, Some(params))).await.unwrap()?;
        Ok(serde_json::from_str(answer.get()).unwrap())
    }

    /// Sends a message. Returns the response.
    pub(crate) async fn send(&self, key: &str, run: &str, message: &str) -> Value {
        let params = json!({ "sessionKey": key, "message": message, "idempotencyKey": run });
        self.ask("chat.send", params).await.unwrap()
    }

    /// The next event: name and payload.
    pub(crate) async fn hear(&mut self) -> (String, Value) {
        match timeout(LONG, self.events.next()).await.unwrap().unwrap() {
            Received::Event(event) => {
                (event.event.to_string(), serde_json::from_str(event.payload.get()).unwrap())
            }
            Received::Lagged(missed) => panic!("{missed} events were missed"),
        }
    }

    /// The next event with this name.
    pub(crate) async fn hear_of(&mut self, name: &str) -> Value {
        loop {
            let (event, payload) = self.hear().await;
            if event == name {
                return payload;
            }
        }
    }

    /// All events of a run, up to its end.
    pub(crate) async fn hear_run(&mut self, run: &str) -> Vec<(String, Value)> {
        let mut heard = Vec::new();
        loop {
            let (name, payload) = self.hear().await;
            if payload["runId"] != run || !matches!(name.as_str(), "chat" | "agent") {
                continue;
            }
            let is_over = name == "chat" && is_end(&payload);
            heard.push((name, payload));
            if is_over {
                return heard;
            }
        }
    }

    /// The last event of a run.
    pub(crate) async fn end_of(&mut self, run: &str) -> Value {
        self.hear_run(run).await.pop().unwrap().1
    }

    /// Waits until a tool is called in a run.
    pub(crate) async fn until_called(&mut self, run: &str) -> Value {
        loop {
            let event = self.hear_of("agent").await;
            if event["runId"] == run && event["stream"] == "tool" {
                return event;
            }
        }
    }

    /// The events received so far, without waiting.
    pub(crate) fn heard_so_far(&mut self) -> Vec<(String, Value)> {
        let mut heard = Vec::new();
        while let Some(Some(Received::Event(event))) =
            futures_util::FutureExt::now_or_never(self.events.next())
        {
            let payload = serde_json::from_str(event.payload.get()).unwrap();
            heard.push((event.event.to_string(), payload));
        }
        heard
    }
}

pub(crate) fn is_end(chat: &Value) -> bool {
    matches!(chat["state"].as_str(), Some("final" | "aborted" | "error"))
}

/// The text of a final event, or of another event with a message.
pub(crate) fn text(event: &Value) -> String {
    event["message"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// Asserts that no process of a server is left; its script has this tag.
pub(crate) async fn assert_nothing_left(tag: &'static str) {
    let left = tokio::task::spawn_blocking(move || {
        processes::wait_until_none(Duration::from_secs(60), || processes::mentioning(tag))
    });
    assert_eq!(left.await.unwrap(), Vec::<u32>::new());
}
