//! Starts a fleet from a few lines of configuration.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::{Config, LoadEnvironment, load_text};
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp::fleet::{Fleet, Setup};
use openclaw_mcp::server::dial::DialContext;
use openclaw_secrets::Environment;
use openclaw_testkit::{Script, TestServer, processes};
use openclaw_tools::{CallContext, ToolOutcome};
use serde_json::value::RawValue;
use serde_json::{Value, json};

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

pub(crate) fn config(config: &Value) -> Config {
    let loaded =
        load_text(Path::new("openclaw.json"), &config.to_string(), LoadEnvironment::empty());
    match loaded.config {
        Some(config) => config,
        None => panic!("{:?}", loaded.report),
    }
}

pub(crate) fn servers(servers: Value) -> Config {
    let mut whole = json!({ "mcp": {} });
    whole["mcp"]["servers"] = servers;
    config(&whole)
}

pub(crate) fn setup() -> Setup {
    setup_in([("PATH", "/usr/bin:/bin")].into_iter().collect())
}

/// Like [`setup`], with this environment.
pub(crate) fn setup_in(environment: Environment) -> Setup {
    Setup::new(DialContext::new(environment))
}

pub(crate) fn start(config: &Config) -> Arc<Fleet> {
    Fleet::start(config, setup())
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

/// Asserts that no process of a server is left. The tag is the name in its script.
pub(crate) async fn assert_nothing_left(tag: &'static str) {
    let left = tokio::task::spawn_blocking(move || {
        processes::wait_until_none(Duration::from_secs(60), || processes::mentioning(tag))
    });
    assert_eq!(left.await.unwrap(), Vec::<u32>::new());
}
