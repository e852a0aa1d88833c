//! A gateway as `openclaw gateway run` starts it, in this process, with one server named `x`.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::{LoadEnvironment, Loaded, load_text};
use openclaw_gateway::serve::{Served, serve};
use openclaw_gateway::state;
use openclaw_gateway::{GatewaySetup, Prepare};
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp::fleet::{self};
use openclaw_mcp::server::StorageFolders;
use openclaw_mcp::server::dial::DialContext;
use openclaw_mcp::services::CallServices;
use openclaw_mcp::store::pins::Pins;
use openclaw_mcp::store::spill::{Spill, SpillLimits};
use openclaw_protocol::Surface;
use openclaw_protocol::agent_event::{AgentData, AgentEvent, ToolPhase};
use openclaw_protocol::chat::{ChatEvent, ChatState, SendParams, SendResult};
use openclaw_protocol::client::{Client, ConnectOptions};
use openclaw_protocol::{EventReceiver, Received, ask, names, rpc};
use openclaw_secrets::Environment;
use openclaw_testkit::{Script, TestServer};
use openclaw_tools::CallContext;
use openclaw_tools::audit::{Audit, AuditOptions};
use serde_json::json;
use serde_json::value::RawValue;
use tempfile::TempDir;

/// Number of calls per turn.
pub(crate) const CALLS: usize = 5;
/// Timeout after which a run has failed.
const LONG: Duration = Duration::from_secs(60);

/// A listening gateway, and its state folder.
pub(crate) struct RunningGateway {
    pub(crate) served: Served,
    pub(crate) folder: TempDir,
}

impl RunningGateway {
    pub(crate) async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let served = serve(setup(folder.path()), Some(Ipv4Addr::LOCALHOST.into()), Some(0)).await;
        let served = served.unwrap();
        served.gateway.fleet().tried().await;
        Self { served, folder }
    }

    /// The tools, for calls without the agent.
    pub(crate) fn tools(&self) -> Arc<AgentTools> {
        self.served.gateway.fleet().agent("main").unwrap()
    }

    /// A connected client.
    pub(crate) async fn client(&self) -> Client {
        let running = state::find(self.folder.path()).unwrap();
        let mut options = ConnectOptions::new(running.url, running.token, "bench");
        options.connect_timeout = LONG;
        Client::connect(&options).await.unwrap()
    }

    pub(crate) async fn close(self) {
        self.served.stop(Duration::ZERO).await;
    }
}

/// Audit, approvals and large results are stored as in the real program.
fn setup(folder: &Path) -> GatewaySetup {
    let environment: Environment = [("PATH", "/usr/bin:/bin")].into_iter().collect();
    let services = CallServices {
        audit: Audit::to_file(folder.join("audit.jsonl"), AuditOptions::default()).unwrap(),
        pins: Some(Arc::new(Pins::load(folder.join("pins.json")).unwrap())),
        spill: Some(Arc::new(Spill::open(folder.join("spill"), SpillLimits::default()).unwrap())),
        metrics: openclaw_metrics::Metrics::off(),
        tracer: openclaw_trace::Tracer::off(),
    };
    let folders = StorageFolders {
        catalogue: Some(folder.join("catalogue")),
        logs: Some(folder.join("logs")),
    };
    let context = DialContext::new(environment.clone());
    GatewaySetup {
        config: load(folder).config.unwrap(),
        config_file: folder.join("openclaw.json"),
        load: Arc::new({
            let folder = folder.to_owned();
            move || load(&folder)
        }),
        state: folder.to_owned(),
        fleet: fleet::FleetSetup { folders, services, ..fleet::FleetSetup::new(context) },
        environment,
        version: "bench".to_owned(),
        prepare: Prepare::AtStart,
        workspace: None,
    }
}

/// Limits are checked, and never reached.
fn load(folder: &Path) -> Loaded {
    let (program, args) = TestServer::stdio(&Script::new());
    let config = json!({
        "agents": { "defaults": { "model": "offline" } },
        "mcp": { "servers": { "x": {
            "command": program,
            "args": args,
            "toolTimeout": 60_000,
            "rateLimit": 1_000_000,
        } } },
    });
    let environment = LoadEnvironment { variable: &|_| None, home: Some(folder) };
    load_text(Path::new("openclaw.json"), &config.to_string(), environment)
}

/// The arguments of the nth call of a turn.
pub(crate) fn arguments(nth: usize) -> Box<RawValue> {
    RawValue::from_string(format!(r#"{{"text":"hello {nth}"}}"#)).unwrap()
}

/// Makes one call without the agent.
pub(crate) async fn call(tools: &AgentTools, arguments: &RawValue) {
    let (name, session) = ("mcp_x_echo", Some("bench"));
    let context = CallContext { session, ..CallContext::by_hand("bench") };
    let outcome = tools.call(name, arguments, &context).await;
    assert!(!outcome.is_error, "{}", outcome.text());
}

/// Sends a message for which the built-in model makes the calls, and waits until the turn is over.
pub(crate) async fn chat(
    surface: &dyn Surface,
    events: &mut EventReceiver,
    session: &str,
    message: usize,
) {
    let wishes: Vec<String> = (0..CALLS).map(|nth| format!("echo hello {nth}")).collect();
    let run = format!("{session}-{message}");
    let params = SendParams {
        session_key: session.to_owned(),
        message: wishes.join("; "),
        idempotency_key: run.clone(),
        ..SendParams::default()
    };
    let sent: SendResult = ask::<rpc::ChatSend>(surface, params).await.unwrap();
    assert_eq!(sent.run_id, run);
    let made = tokio::time::timeout(LONG, answered(events, &run)).await.unwrap();
    assert_eq!(made, CALLS, "successful calls of {run}");
}

/// Waits for the end of a turn. Returns the number of successful calls.
async fn answered(events: &mut EventReceiver, run: &str) -> usize {
    let mut made = 0;
    loop {
        let event = match events.next().await.unwrap() {
            Received::Event(event) => event,
            Received::Lagged(missed) => unreachable!("{missed} events were lost"),
        };
        if event.event == names::AGENT {
            let event: AgentEvent = event.read().unwrap();
            let is_success = matches!(
                &event.data,
                AgentData::Tool(ToolPhase::Result(result)) if !result.is_error
            );
            made += usize::from(is_success && event.run_id == run);
        } else if event.event == names::CHAT {
            let event: ChatEvent = event.read().unwrap();
            match event.state {
                _ if event.run_id != run => {}
                ChatState::Delta { .. } => {}
                ChatState::Final { .. } => return made,
                other => unreachable!("the turn has no answer: {other:?}"),
            }
        }
    }
}
