//! The sides of a comparison: our fleet with every check enabled, the fast lane alone, and a bare
//! `rmcp` client.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use openclaw_config::Config;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp::fleet::{Fleet, FleetSetup};
use openclaw_mcp::server::StorageFolders;
use openclaw_mcp::server::dial::DialContext;
use openclaw_mcp::services::CallServices;
use openclaw_mcp::store::pins::Pins;
use openclaw_mcp_client::host::{
    ElicitationAnswer as Elicited, ElicitationRequest, Elicitor, Host,
};
use openclaw_mcp_client::process::{Launch, Pipes, ServerProcess};
use openclaw_mcp_client::wire::json::Json;
use openclaw_mcp_client::wire::{self, FastLane, TimeLimits, WireCall};
use openclaw_metrics::Metrics;
use openclaw_process::Guard;
use openclaw_testkit::{Script, TestServer};
use openclaw_tools::audit::{Audit, AuditOptions};
use openclaw_tools::{
    ApprovalAnswer, ApprovalExtent, ApprovalRequest, Approver, CallContext, Consent, Fallback,
    GrantRule, NoApprover,
};
use openclaw_trace::Tracer;
use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, ClientConfig, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, RunningService, serve_client_with_lifecycle};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::common::load;
pub(crate) use crate::connection::client;

pub(crate) const LIMITS: TimeLimits =
    TimeLimits { timeout: Duration::from_secs(60), cap: Duration::from_secs(60) };

pub(crate) type Rmcp = RunningService<RoleClient, ClientConfig>;

/// The command line of a local server.
pub(crate) type CommandLine = (PathBuf, Vec<String>);

/// A well-behaved server with the default tools.
pub(crate) fn usual() -> CommandLine {
    TestServer::stdio(&Script::new())
}

fn start_process((program, args): &CommandLine) -> (ServerProcess, Pipes) {
    let program = program.to_str().unwrap().to_owned();
    let launch = Launch { program, args: args.clone(), env: BTreeMap::new(), cwd: None };
    ServerProcess::spawn(&launch, &Guard::none()).unwrap()
}

/// Returns the entry of a local server, with all checks enabled and none of them failing.
pub(crate) fn local_entry((program, args): &CommandLine) -> Value {
    entry(json!({ "command": program, "args": args }))
}

/// Adds limits that are checked but never reached.
pub(crate) fn entry(mut entry: Value) -> Value {
    entry["timeout"] = json!(60_000);
    entry["toolTimeout"] = json!(60_000);
    entry["rateLimit"] = json!(1_000_000);
    entry["maxResultChars"] = json!(100_000_000);
    entry["tools"] = json!({ "deny": ["crash"] });
    entry
}

pub(crate) fn config(servers: &Value) -> Config {
    load(&json!({
        "mcp": { "servers": servers },
        "tools": { "allow": ["mcp_*"], "deny": ["*_sleep"] },
    }))
}

pub(crate) fn setup(services: CallServices, folders: StorageFolders) -> FleetSetup {
    let environment = [("PATH", "/usr/bin:/bin")].into_iter().collect();
    let host = Host { elicitor: Some(Arc::new(Absent)), ..Host::default() };
    let context = DialContext { host, ..DialContext::new(environment) };
    FleetSetup { folders, services, ..FleetSetup::new(context) }
}

/// A user is present, as in the product, so that the calls in progress are tracked.
struct Absent;

impl Elicitor for Absent {
    fn ask(&self, _: ElicitationRequest) -> BoxFuture<'_, Elicited> {
        Box::pin(std::future::ready(Elicited::Decline))
    }
}

/// The whole pipeline to one server, named `x`, as the product runs it: policy, pins, schema,
/// limiter, timeout, provenance, audit line.
pub(crate) struct Bridge {
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) tools: Arc<AgentTools>,
    _folder: TempDir,
}

impl Bridge {
    pub(crate) async fn open(entry: Value) -> Self {
        Self::open_with(entry, Metrics::off(), Tracer::off()).await
    }

    /// Like [`open`](Self::open), but everything is counted.
    pub(crate) async fn open_counted(entry: Value) -> Self {
        let metrics = Metrics::on(openclaw_secrets::Redactor::new());
        Self::open_with(entry, metrics, Tracer::off()).await
    }

    /// With spans.
    pub(crate) async fn open_traced(entry: Value, tracer: Tracer) -> Self {
        Self::open_with(entry, Metrics::off(), tracer).await
    }

    async fn open_with(entry: Value, metrics: Metrics, tracer: Tracer) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let audit = folder.path().join("audit");
        let audit = Audit::to_file(audit, AuditOptions::default()).unwrap();
        let pins = Some(Arc::new(Pins::load(folder.path().join("pins")).unwrap()));
        let services = CallServices { audit, pins, metrics, tracer, ..CallServices::none() };
        let setup = setup(services, StorageFolders::default());
        let fleet = Fleet::start(&config(&json!({ "x": entry })), setup);
        fleet.tried().await;
        let tools = fleet.agent("main").unwrap();
        Self { fleet, tools, _folder: folder }
    }

    /// Calls a tool as an agent does. No approval is requested, because the tool is approved
    /// permanently.
    pub(crate) async fn call(&self, name: &str, arguments: &RawValue) -> usize {
        let consent = Consent::Ask { approver: &NoApprover, fallback: Fallback::Deny };
        let (agent, session) = (Some("main"), Some("s"));
        let context = CallContext { agent, session, consent, ..CallContext::by_hand("bench") };
        let outcome = self.tools.call(name, arguments, &context).await;
        assert!(!outcome.is_error, "{}", outcome.text());
        outcome.content.len()
    }

    /// Waits until all audit lines are written.
    pub(crate) async fn settle(&self) {
        assert!(self.fleet.audit().flush().await);
    }

    /// Makes the first call, which approves the tool's definition.
    pub(crate) async fn approve(&self, name: &str, arguments: &RawValue) {
        let consent = Consent::Ask { approver: &Agreeable, fallback: Fallback::Deny };
        let context = CallContext { consent, ..CallContext::by_hand("bench") };
        let outcome = self.tools.call(name, arguments, &context).await;
        assert!(!outcome.is_error, "{}", outcome.text());
    }
}

/// Approves everything permanently.
#[derive(Debug)]
struct Agreeable;

impl Approver for Agreeable {
    fn ask<'a>(&'a self, _: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(std::future::ready(ApprovalAnswer::Yes(ApprovalExtent::Always(GrantRule::Tool))))
    }
}

/// The fast lane of a local server, without the bridge.
pub(crate) struct Lane {
    lane: FastLane,
    _rmcp: Rmcp,
    _process: ServerProcess,
}

impl Lane {
    pub(crate) async fn open(server: &CommandLine) -> Self {
        let (process, pipes) = start_process(server);
        let (redactor, traffic) = (openclaw_secrets::Redactor::new(), wire::Traffic::default());
        let opened = wire::open("bench", &redactor, pipes.stdin, pipes.stdout, traffic);
        let (lane, slow) = opened.unwrap();
        let rmcp = rmcp::serve_client(client(), slow).await.unwrap();
        Self { lane, _rmcp: rmcp, _process: process }
    }

    pub(crate) async fn call(&self, tool: &str, arguments: &RawValue) -> usize {
        self.answer(tool, arguments).await.get().len()
    }

    /// Returns the server's response.
    pub(crate) async fn answer(&self, tool: &str, arguments: &RawValue) -> Json {
        let call =
            WireCall { tool, arguments, meta: "", more: "", headers: &[], trace: None, work: None };
        self.lane.call_tool(call, LIMITS, None).await.unwrap()
    }
}

pub(crate) async fn lane_call(lane: &FastLane, call: WireCall<'_>) -> usize {
    lane.call_tool(call, LIMITS, None).await.unwrap().get().len()
}

/// A bare `rmcp` client of a local server.
pub(crate) struct Bare {
    rmcp: Rmcp,
    _process: ServerProcess,
}

impl Bare {
    /// Opens a client for 2026-07-28, as the pipeline uses.
    pub(crate) async fn open(server: &CommandLine) -> Self {
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        Self::open_as(server, ClientLifecycleMode::Discover { preferred_versions }).await
    }

    /// Opens a client for 2025-11-25, which sends less per call.
    pub(crate) async fn open_older(server: &CommandLine) -> Self {
        Self::open_as(server, ClientLifecycleMode::Initialize).await
    }

    async fn open_as(server: &CommandLine, lifecycle: ClientLifecycleMode) -> Self {
        let (process, pipes) = start_process(server);
        let transport = (pipes.stdout, pipes.stdin);
        let rmcp = serve_client_with_lifecycle(client(), transport, lifecycle).await.unwrap();
        Self { rmcp, _process: process }
    }

    pub(crate) async fn call(&self, tool: &'static str, arguments: &Map<String, Value>) -> usize {
        let params = CallToolRequestParams::new(tool).with_arguments(arguments.clone());
        self.rmcp.call_tool(params).await.unwrap().content.len()
    }
}

/// Arguments in the formats of both sides.
pub(crate) struct Arguments {
    pub(crate) raw: Box<RawValue>,
    pub(crate) map: Map<String, Value>,
}

impl Arguments {
    pub(crate) fn new(arguments: &Value) -> Self {
        let raw = serde_json::value::to_raw_value(arguments).unwrap();
        Self { raw, map: arguments.as_object().unwrap().clone() }
    }
}
