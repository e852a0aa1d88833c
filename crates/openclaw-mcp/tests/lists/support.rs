//! Servers with scripted lists, connected one by one or as a fleet.

use std::sync::Arc;

use openclaw_mcp::connection::Connection;
use openclaw_mcp::connection::local;
use openclaw_mcp::fleet::{Fleet, FleetSetup};
use openclaw_mcp::process::guard::Guard;
use openclaw_mcp::server::Server;
use openclaw_mcp::server::dial::DialContext;
use serde_json::{Value, json};

use crate::common::plan;
pub(crate) use crate::common::{LIMITS, load, scripted};

const SCRIPTED: &str = include_str!("scripted.py");

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

pub(crate) async fn connect(server: (String, Vec<String>)) -> Connection {
    local::open(plan(server), &Guard::none()).await.unwrap()
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
    Fleet::start(&load(&config), FleetSetup::new(DialContext::new(environment)))
}

pub(crate) fn server(fleet: &Fleet, name: &str) -> Arc<Server> {
    Arc::clone(fleet.agent("main").unwrap().server(name).unwrap())
}
