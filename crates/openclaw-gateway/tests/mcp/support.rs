//! A gateway with its own directory, and callers.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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
use openclaw_protocol::client::Options;
use openclaw_protocol::{ErrorShape, Received};
use openclaw_secrets::{Environment, Redactor, Resolver, Settings};
use openclaw_testkit::{Script, TestServer};
use openclaw_tools::audit::Audit;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

/// Generous: the machine may be busy.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// The entry of a testkit server.
pub(crate) fn entry(script: &Script) -> Value {
    let (program, args) = TestServer::stdio(script);
    json!({ "command": program, "args": args, "timeout": 60_000 })
}

/// A configuration with these servers, and the offline model.
pub(crate) fn config(servers: &Value) -> Value {
    json!({ "agents": { "defaults": { "model": "offline" } }, "mcp": { "servers": servers } })
}

/// A directory with a configuration.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new(config: &Value) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.write(config);
        place
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    fn file(&self) -> PathBuf {
        self.path().join("openclaw.json")
    }

    /// Writes another configuration.
    pub(crate) fn write(&self, config: &Value) {
        std::fs::write(self.file(), config.to_string()).unwrap();
    }

    pub(crate) fn setup(&self) -> Setup {
        let environment: Environment =
            [("PATH", "/usr/local/bin:/usr/bin:/bin")].into_iter().collect();
        let resolver = Resolver::new(Settings::default(), environment.clone(), Redactor::new());
        let file = self.file();
        let load: Arc<dyn Fn() -> Loaded + Send + Sync> =
            Arc::new(move || load(&file, LoadEnvironment { variable: &|_| None, home: None }));
        let loaded = load();
        let Some(config) = loaded.config else { panic!("{:?}", loaded.report) };
        let state = self.path().join("state");
        let context = DialContext {
            resolver,
            environment: environment.clone(),
            guard: Guard::none(),
            host: Host::default(),
            auth: None,
        };
        let pins = Pins::load(self.path().join("pins.json")).unwrap();
        Setup {
            config,
            config_file: self.file(),
            load,
            fleet: fleet::Setup {
                context,
                folders: Folders { catalogue: None, logs: Some(self.path().join("logs")) },
                services: CallServices {
                    audit: Audit::none(),
                    spill: None,
                    pins: Some(Arc::new(pins)),
                },
                tries_again: true,
                start: StartMode::Eager,
                agent: None,
            },
            state,
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

pub(crate) async fn stop(gateway: Arc<Gateway>) {
    gateway.stop(Duration::ZERO).await;
}

/// A caller in this process with these scopes.
pub(crate) fn somebody(gateway: &Arc<Gateway>, scopes: &[&str]) -> Arc<dyn Endpoint> {
    let options = Options::new("", None, "1");
    let caller = Caller {
        client: options.client,
        role: options.role,
        scopes: scopes.iter().map(|scope| format!("operator.{scope}")).collect(),
        caps: options.caps,
        commands: Vec::new(),
        remote: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        connection: "this process".to_owned(),
    };
    gateway.open(caller).unwrap()
}

/// A caller in this process with all scopes.
pub(crate) fn anybody(gateway: &Arc<Gateway>) -> Arc<dyn Endpoint> {
    somebody(gateway, &["admin", "read", "write", "approvals"])
}

pub(crate) async fn try_ask(
    surface: &Arc<dyn Endpoint>,
    method: &str,
    params: Value,
) -> Result<Value, ErrorShape> {
    let params = to_raw_value(&params).unwrap();
    let answer = timeout(LONG, surface.request(method, Some(params))).await.unwrap()?;
    Ok(serde_json::from_str(answer.get()).unwrap())
}

pub(crate) async fn ask(surface: &Arc<dyn Endpoint>, method: &str, params: Value) -> Value {
    match try_ask(surface, method, params).await {
        Ok(answer) => answer,
        Err(error) => panic!("{method}: {error:?}"),
    }
}

/// The error of a request that must fail: the message, `details.code`, and the hint.
pub(crate) async fn refused(
    surface: &Arc<dyn Endpoint>,
    method: &str,
    params: Value,
) -> (String, String, String) {
    match try_ask(surface, method, params).await {
        Ok(answer) => panic!("{method}: {answer}"),
        Err(error) => {
            let details = error.details.as_deref().map_or("{}", |raw| raw.get());
            let details: Value = serde_json::from_str(details).unwrap();
            let text = |key: &str| details[key].as_str().unwrap_or_default().to_owned();
            (error.message, text("code"), text("hint"))
        }
    }
}

/// Sends a message to the agent, and waits for the final answer.
pub(crate) async fn say(surface: &Arc<dyn Endpoint>, message: &str) -> String {
    let mut events = surface.events();
    let key = "agent:main:test";
    // Not the time: it may not advance between two messages, and a repeated id is answered once.
    static SENT: AtomicU64 = AtomicU64::new(0);
    let id = format!("{message}-{}", SENT.fetch_add(1, Ordering::Relaxed));
    let params = json!({ "sessionKey": key, "message": message, "idempotencyKey": id });
    ask(surface, "chat.send", params).await;
    let last = async {
        loop {
            let Some(Received::Event(event)) = events.next().await else { panic!("the end") };
            if event.event != "chat" {
                continue;
            }
            let payload: Value = serde_json::from_str(event.payload.get()).unwrap();
            if payload["runId"] == id.as_str() && payload["state"] != "delta" {
                return payload;
            }
        }
    };
    let last = timeout(LONG, last).await.unwrap();
    assert_eq!(last["state"], "final", "{last}");
    last["message"]["content"][0]["text"].as_str().unwrap().to_owned()
}
