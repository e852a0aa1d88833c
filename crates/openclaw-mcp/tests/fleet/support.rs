//! Starts a fleet from a few lines of configuration.

use std::sync::Arc;

use openclaw_config::Config;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp::fleet::{Fleet, FleetSetup};
use openclaw_mcp::server::dial::DialContext;
use openclaw_secrets::Environment;
use openclaw_testkit::{Script, TestServer};
use openclaw_tools::{CallContext, ToolOutcome};
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub(crate) use crate::common::{assert_nothing_left, load as config};

/// The entry of a testkit server.
pub(crate) fn entry(script: &Script) -> Value {
    let (program, args) = TestServer::stdio(script);
    json!({ "command": program, "args": args, "timeout": 60_000 })
}

/// Like [`entry`], with further keys.
pub(crate) fn entry_with(script: &Script, more: Value) -> Value {
    let mut entry = entry(script);
    let Value::Object(more) = more else { panic!("not an object") };
    for (key, value) in more {
        entry[key] = value;
    }
    entry
}

pub(crate) fn servers(servers: Value) -> Config {
    let mut whole = json!({ "mcp": {} });
    whole["mcp"]["servers"] = servers;
    config(&whole)
}

pub(crate) fn setup() -> FleetSetup {
    setup_in([("PATH", "/usr/bin:/bin")].into_iter().collect())
}

/// Like [`setup`], with this environment.
pub(crate) fn setup_in(environment: Environment) -> FleetSetup {
    FleetSetup::new(DialContext::new(environment))
}

pub(crate) fn start(config: &Config) -> Arc<Fleet> {
    Fleet::start(config, setup())
}

/// Starts a fleet, and waits until every server was tried. Returns it with the tools of the default
/// agent.
pub(crate) async fn ready(config: &Config) -> (Arc<Fleet>, Arc<AgentTools>) {
    ready_with(config, setup()).await
}

/// Like [`ready`], with this setup.
pub(crate) async fn ready_with(
    config: &Config,
    setup: FleetSetup,
) -> (Arc<Fleet>, Arc<AgentTools>) {
    let fleet = Fleet::start(config, setup);
    fleet.tried().await;
    let tools = tools(&fleet);
    (fleet, tools)
}

/// The tools of the default agent.
pub(crate) fn tools(fleet: &Fleet) -> Arc<AgentTools> {
    fleet.agent("main").unwrap()
}

pub(crate) async fn call(tools: &AgentTools, name: &str, arguments: Value) -> ToolOutcome {
    call_in(tools, name, arguments, &CallContext::by_hand("test")).await
}

/// Like [`call`], with a context.
pub(crate) async fn call_in(
    tools: &AgentTools,
    name: &str,
    arguments: Value,
    context: &CallContext<'_>,
) -> ToolOutcome {
    let arguments = RawValue::from_string(arguments.to_string()).unwrap();
    tools.call(name, &arguments, context).await
}
