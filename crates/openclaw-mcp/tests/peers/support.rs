//! A fleet of real servers, and what is expected of each of them.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::Config;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp::fleet::{Fleet, FleetSetup};
use openclaw_mcp::server::dial::DialContext;
use openclaw_mcp::server::live::LiveConnection;
use openclaw_mcp::server::status::ServerState;
use openclaw_mcp::server::supervisor::ServerSnapshot;
use openclaw_mcp_client::host::Host;
use openclaw_testkit::{Peer, processes};
use openclaw_tools::{CallContext, ToolOutcome};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::common::{self, load};

/// Python servers need seconds of CPU to start, and many start concurrently.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Records its pid, then replaces itself with the given command.
const STARTER: &str = "echo $$ >> \"$1\"\nshift\nexec \"$@\"\n";

/// A temporary folder for a test, with the pids of all started processes and the engine's cache.
pub(crate) struct Yard(tempfile::TempDir);

impl Yard {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("starter.sh"), STARTER).unwrap();
        Self(folder)
    }

    /// Returns a path in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Creates a subfolder.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let folder = self.path(name);
        fs::create_dir_all(&folder).unwrap();
        // Canonical, as servers report it.
        openclaw_files::canonical(folder).unwrap()
    }

    /// Returns the entry of a local server whose pids are recorded.
    pub(crate) fn entry(&self, name: &str, peer: &Peer) -> Value {
        let mut args = vec![json!(self.path("starter.sh")), json!(self.pids_of(name))];
        args.push(json!(peer.program));
        args.extend(peer.args.iter().map(|arg| json!(arg)));
        let env: serde_json::Map<String, Value> =
            peer.env.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        json!({ "command": "/bin/sh", "args": args, "env": env, "timeout": 120_000 })
    }

    fn pids_of(&self, name: &str) -> PathBuf {
        self.path(&format!("{name}.pids"))
    }

    /// Returns the processes that were started for a server so far, each the leader of its own
    /// group.
    pub(crate) fn started(&self, name: &str) -> Vec<u32> {
        let text = fs::read_to_string(self.pids_of(name)).unwrap_or_default();
        text.lines().map(|pid| pid.parse().unwrap()).collect()
    }

    /// Asserts that no started process is left.
    pub(crate) fn assert_nothing_left(&self, names: &[&str]) {
        for name in names {
            let started = self.started(name);
            assert!(!started.is_empty(), "{name} never ran");
            for pid in started {
                let left = processes::wait_until_none(PATIENCE, || processes::in_group(pid));
                assert_eq!(left, Vec::<u32>::new(), "of {name}");
            }
        }
    }
}

/// What is expected of a server.
pub(crate) struct Expected {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    /// Some of its tools, by their own names.
    pub(crate) tools: &'static [&'static str],
    /// Arguments for the first of them, and a part of the result.
    pub(crate) call: (Value, &'static str),
}

pub(crate) fn servers(servers: &Value) -> Config {
    load(&json!({ "mcp": { "servers": servers, "maxConcurrentServers": 16 } }))
}

pub(crate) fn setup(host: Host) -> FleetSetup {
    // Servers need it to find `git`, and perhaps `node`.
    let path = std::env::var("PATH").unwrap();
    let environment = [("PATH", path)].into_iter().collect();
    FleetSetup::new(DialContext { host, ..DialContext::new(environment) })
}

/// Starts a fleet and asserts that all servers are ready.
pub(crate) async fn ready(config: &Config, setup: FleetSetup) -> (Arc<Fleet>, Arc<AgentTools>) {
    let fleet = Fleet::start(config, setup);
    let tools = fleet.agent("main").unwrap();
    within(fleet.tried()).await;
    for status in tools.statuses() {
        assert_eq!(status.state, ServerState::Ready, "{status:?}");
    }
    (fleet, tools)
}

pub(crate) async fn call(tools: &AgentTools, name: &str, arguments: Value) -> ToolOutcome {
    let arguments = RawValue::from_string(arguments.to_string()).unwrap();
    within(Box::pin(tools.call(name, &arguments, &by_hand()))).await
}

pub(crate) fn by_hand() -> CallContext<'static> {
    CallContext::by_hand("test")
}

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap()
}

/// Asserts that an outcome is a successful, untrusted result of a server.
pub(crate) fn assert_result(outcome: &ToolOutcome, server: &str, text: &str) {
    assert!(!outcome.is_error, "{server}: {outcome:?}");
    assert!(outcome.details.untrusted, "{server}: {outcome:?}");
    assert_eq!(outcome.details.server.as_deref(), Some(server));
    assert!(outcome.rendered().contains(text), "{server}: {}", outcome.rendered());
}

impl Expected {
    /// Asserts that the server negotiates the version, lists the tools, and answers the call.
    pub(crate) async fn assert_met(&self, tools: &AgentTools) {
        let status = tools.server(self.name).unwrap().status();
        assert_eq!(status.protocol_version.as_deref(), Some(self.version), "{status:?}");
        let catalogue = tools.catalogue();
        for tool in self.tools {
            let name = self.name_of(tool);
            assert!(catalogue.get(&name).is_some(), "{name} is missing");
        }
        self.assert_answers(tools).await;
    }

    /// Asserts that the server answers the call.
    pub(crate) async fn assert_answers(&self, tools: &AgentTools) {
        let (arguments, text) = &self.call;
        let outcome = call(tools, &self.name_of(self.tools[0]), arguments.clone()).await;
        assert_result(&outcome, self.name, text);
    }

    pub(crate) fn name_of(&self, tool: &str) -> String {
        format!("mcp_{}_{tool}", self.name)
    }
}

/// Starts a long call, and drops it once it is in flight.
pub(crate) async fn cancel(tools: &AgentTools, server: &str, tool: &str, long: Value) {
    let live = tools.server(server).unwrap().ready().await.unwrap();
    let name = format!("mcp_{server}_{tool}");
    let calling = call(tools, &name, long);
    tokio::select! {
        outcome = calling => panic!("finished too early: {outcome:?}"),
        () = common::until(|| live.connection().in_flight() > 0) => {}
    }
    // A list request may be in flight too; the call would take much longer.
    common::until(|| live.connection().in_flight() == 0).await;
}

/// Waits until a server reaches a state.
pub(crate) async fn until(
    snapshots: &mut watch::Receiver<ServerSnapshot<LiveConnection>>,
    state: ServerState,
) {
    let reached = snapshots.wait_for(|snapshot| snapshot.state == state);
    match tokio::time::timeout(PATIENCE, reached).await {
        Ok(snapshot) => drop(snapshot.unwrap()),
        Err(_) => panic!("the server never became {state:?}"),
    }
}
