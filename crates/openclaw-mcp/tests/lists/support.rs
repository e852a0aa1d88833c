//! Servers with scripted lists, connected one by one or as a fleet.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::{Config, LoadEnvironment, load_text};
use openclaw_mcp::connection::Connection;
use openclaw_mcp::connection::client::{Client, Host};
use openclaw_mcp::connection::local::{self, Plan};
use openclaw_mcp::fleet::{Fleet, Setup};
use openclaw_mcp::process::Launch;
use openclaw_mcp::process::guard::Guard;
use openclaw_mcp::server::Server;
use openclaw_mcp::server::dial::DialContext;
use openclaw_mcp::server::log::ServerLog;
use openclaw_mcp::wire::Limits;
use openclaw_testkit::{Script, TestServer};
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

const SCRIPTED: &str = include_str!("scripted.py");

/// Enough for a busy machine.
pub(crate) const LIMITS: Limits =
    Limits { timeout: Duration::from_secs(120), cap: Duration::from_secs(300) };

/// A server that declares all capabilities and returns these responses.
pub(crate) fn answering(answers: Value) -> (String, Vec<String>) {
    offering(json!({ "tools": {}, "resources": {}, "prompts": {} }), answers)
}

/// A server that declares these capabilities and returns these responses.
pub(crate) fn offering(capabilities: Value, answers: Value) -> (String, Vec<String>) {
    let mut script = json!({});
    script["capabilities"] = capabilities;
    script["answers"] = answers;
    let args = ["-c".to_owned(), SCRIPTED.to_owned(), script.to_string()];
    ("python3".to_owned(), args.into())
}

/// A server of the testkit.
pub(crate) fn scripted(script: &Script) -> (String, Vec<String>) {
    let (program, args) = TestServer::stdio(script);
    (program.to_str().unwrap().to_owned(), args)
}

pub(crate) async fn connect((program, args): (String, Vec<String>)) -> Connection {
    let path = "/usr/local/bin:/usr/bin:/bin".into();
    let env = BTreeMap::from([("PATH".to_owned(), path)]);
    let plan = Plan {
        server: "test".to_owned(),
        launch: Launch { program, args, env, cwd: None },
        client: Client::new("test", Host::default()),
        known_era: None,
        only_era: None,
        offer: ProtocolVersion::LATEST_WITH_INITIALIZE,
        timeout: Duration::from_secs(120),
        log: ServerLog::none(),
        traffic: openclaw_mcp::wire::Traffic::default(),
    };
    local::open(plan, &Guard::none()).await.unwrap()
}

/// A fleet of these servers, connected one after the other.
pub(crate) fn fleet(servers: &[(&str, (String, Vec<String>))]) -> Arc<Fleet> {
    let mut entries = json!({});
    for (name, (program, args)) in servers {
        entries[*name] = json!({ "command": program, "args": args, "timeout": 120_000 });
    }
    let mut config = json!({ "mcp": { "maxConcurrentServers": 1 } });
    config["mcp"]["servers"] = entries;
    let environment = [("PATH", "/usr/local/bin:/usr/bin:/bin")].into_iter().collect();
    Fleet::start(&load(&config), Setup::new(DialContext::new(environment)))
}

pub(crate) fn load(config: &Value) -> Config {
    let loaded =
        load_text(Path::new("openclaw.json"), &config.to_string(), LoadEnvironment::empty());
    match loaded.config {
        Some(config) => config,
        None => panic!("{:?}", loaded.report),
    }
}

pub(crate) fn server(fleet: &Fleet, name: &str) -> Arc<Server> {
    Arc::clone(fleet.agent("main").unwrap().server(name).unwrap())
}

/// Waits until the condition holds.
pub(crate) async fn until(is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), wait).await.unwrap();
}
