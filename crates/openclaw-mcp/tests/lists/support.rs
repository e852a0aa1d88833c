//! Servers with scripted lists, connected one by one or as a fleet.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use openclaw_mcp::fleet::{Fleet, FleetSetup};
use openclaw_mcp::server::Server;
use openclaw_mcp::server::dial::DialContext;
use openclaw_mcp_client::connection::Connection;
use openclaw_mcp_client::connection::local::{self, LocalOptions};
use openclaw_mcp_client::host::{ClientSide, Host};
use openclaw_mcp_client::log::ServerLog;
use openclaw_mcp_client::process::Launch;
use openclaw_mcp_client::wire::Traffic;
use openclaw_process::Guard;
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

pub(crate) use crate::common::{LIMITS, load, scripted};

const SCRIPTED: &str = include_str!("scripted.py");
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

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

pub(crate) async fn connect((program, args): (String, Vec<String>)) -> Connection {
    let env = BTreeMap::from([("PATH".to_owned(), PATH.into())]);
    let options = LocalOptions {
        server: "test".to_owned(),
        launch: Launch { program, args, env, cwd: None },
        client: ClientSide::new("test", Host::default()),
        known_era: None,
        only_era: None,
        offer: ProtocolVersion::LATEST_WITH_INITIALIZE,
        timeout: Duration::from_secs(120),
        log: ServerLog::none(),
        traffic: Traffic::default(),
    };
    local::open(options, &Guard::none()).await.unwrap()
}

/// A fleet of these servers, connected one after the other.
pub(crate) fn fleet(servers: &[(&str, (String, Vec<String>))]) -> Arc<Fleet> {
    let mut entries = json!({});
    for (name, (program, args)) in servers {
        entries[*name] = json!({ "command": program, "args": args, "timeout": 120_000 });
    }
    let mut config = json!({ "mcp": { "maxConcurrentServers": 1 } });
    config["mcp"]["servers"] = entries;
    let environment = [("PATH", PATH)].into_iter().collect();
    Fleet::start(&load(&config), FleetSetup::new(DialContext::new(environment)))
}

pub(crate) fn server(fleet: &Fleet, name: &str) -> Arc<Server> {
    Arc::clone(fleet.agent("main").unwrap().server(name).unwrap())
}
