//! `openclaw gateway status`: whether the gateway is running, and its state.

use std::path::Path;

use openclaw_gateway::mcp::summary;
use openclaw_gateway::state::GatewayRecord;
use openclaw_mcp::server::status::ServerStatus;
use openclaw_protocol::client::{Client, ConnectError};
use openclaw_protocol::config::GetParams;
use openclaw_protocol::health::{StatusParams, StatusResult};
use openclaw_protocol::{detail, rpc};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::duration_words;
use super::stop::kill_command;
use crate::commands::block_on;
use crate::commands::check::state_mark;
use crate::commands::link::{find_running, look};
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::exit::Exit;
use crate::output::{Output, plural, printable};
use openclaw_terminal::style::{BAD, GOOD};

/// The state of the gateway of a state folder.
pub(crate) enum GatewayState {
    /// Not running.
    Stopped,
    /// Running, but not responding as expected: the process, the error and a hint.
    Unresponsive(GatewayRecord, String, Option<String>),
    /// Running until its turns have ended.
    Stopping(GatewayRecord),
    Running(Box<RunningGateway>),
}

/// A gateway that is running and responds.
pub(crate) struct RunningGateway {
    pub(crate) running: GatewayRecord,
    pub(crate) client: Client,
    pub(crate) status: StatusResult,
    pub(crate) servers: Vec<ServerStatus>,
    pub(crate) agents: Vec<AgentStatus>,
    /// The path of its configuration file.
    pub(crate) config: Option<String>,
    /// Why the file on disk is not what it uses.
    pub(crate) config_issues: Vec<String>,
}

/// An agent in the status of a gateway.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct AgentStatus {
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) model_origin: String,
    pub(crate) fallbacks: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Mcp {
    servers: Vec<Value>,
}

/// Finds the gateway of a state folder, and requests its status.
pub(crate) async fn gateway_state(folder: &Path, edge: &Edge) -> GatewayState {
    let Some((running, called)) = find_running(folder, edge).await else {
        return GatewayState::Stopped;
    };
    let client = match called {
        Ok(client) => client,
        Err(ConnectError::Refused(error))
            if error.detail().as_deref() == Some(detail::STOPPING) =>
        {
            return GatewayState::Stopping(running);
        }
        Err(error) => {
            let hint = advice(&error, &running);
            return GatewayState::Unresponsive(running, error.to_string(), hint);
        }
    };
    match look::<rpc::Status>(&client, StatusParams::default()).await {
        Ok(status) => {
            let mcp: Mcp = read(status.mcp.as_deref());
            let servers = each(&mcp.servers);
            let agents = read(status.agents.as_deref());
            let config = client.hello().snapshot.config_path.clone();
            let known = look::<rpc::ConfigGet>(&client, GetParams::default()).await;
            let issues = known.map(|it| it.issues).unwrap_or_default();
            let config_issues = issues.iter().map(ToString::to_string).collect();
            GatewayState::Running(Box::new(RunningGateway {
                running,
                client,
                status,
                servers,
                agents,
                config,
                config_issues,
            }))
        }
        Err(error) => GatewayState::Unresponsive(running, error.to_string(), None),
    }
}

/// Deserializes each value. An entry that cannot be parsed, from a newer gateway, is skipped.
fn each<T: DeserializeOwned>(values: &[Value]) -> Vec<T> {
    values.iter().filter_map(|value| T::deserialize(value).ok()).collect()
}

fn read<T: Default + DeserializeOwned>(raw: Option<&serde_json::value::RawValue>) -> T {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

fn advice(error: &ConnectError, running: &GatewayRecord) -> Option<String> {
    let kill = kill_command(running.pid, cfg!(windows));
    match error {
        // `openclaw gateway stop` asks it for its PID first.
        ConnectError::ProtocolMismatch(_) => {
            Some(format!("run `{kill}`, then `openclaw gateway start`"))
        }
        ConnectError::Unreachable { .. } | ConnectError::TimedOut => {
            Some(format!("it may hang; run `{kill}`, then `openclaw gateway start`"))
        }
        _ => None,
    }
}

impl GatewayState {
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Stopped => json!({ "running": false }),
            Self::Stopping(running) => json!({
                "running": true,
                "ok": false,
                "stopping": true,
                "url": running.url,
                "pid": running.pid,
                "version": running.version,
            }),
            Self::Unresponsive(running, error, hint) => json!({
                "running": true,
                "ok": false,
                "url": running.url,
                "pid": running.pid,
                "version": running.version,
                "error": error,
                "hint": hint,
            }),
            Self::Running(gateway) => json!({
                "running": true,
                "ok": true,
                "url": gateway.running.url,
                "pid": gateway.running.pid,
                "version": gateway.running.version,
                "uptimeMs": gateway.status.uptime_ms,
                "connections": gateway.status.connections,
                "config": gateway.config,
                "configIssues": gateway.config_issues,
                "servers": gateway.servers.iter().map(|server| {
                    json!({ "name": server.name, "state": server.state, "tools": server.tools })
                }).collect::<Vec<_>>(),
            }),
        }
    }

    /// Describes the state in one line.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Stopped => "not running; commands run standalone".to_owned(),
            Self::Stopping(running) => {
                format!("the gateway at {} (PID {}) is stopping", running.url, running.pid)
            }
            Self::Unresponsive(running, error, _) => {
                format!("cannot use the gateway at {} (PID {}): {error}", running.url, running.pid)
            }
            Self::Running(gateway) => {
                let GatewayRecord { url, pid, version, .. } = &gateway.running;
                let uptime = gateway.status.uptime_ms.map(duration_words);
                let uptime = uptime.map(|time| format!(", up for {time}")).unwrap_or_default();
                // This process is one of the connections.
                let others = gateway.status.connections.unwrap_or(1).saturating_sub(1);
                let others = plural(usize::try_from(others).unwrap_or(usize::MAX), "other client");
                format!("running at {url} (PID {pid}, version {version}{uptime}), {others}")
            }
        }
    }
}

pub(super) fn status(edge: &Edge, output: &mut Output) -> CommandResult {
    let paths = edge.paths()?;
    let state = block_on(async { Ok(gateway_state(&paths.state, edge).await) })?;
    if output.json {
        output.value(&state.to_json());
    }
    match &state {
        GatewayState::Stopped => {
            if !output.json {
                output
                    .line("The gateway is not running. Run `openclaw gateway start` to start it.");
            }
            Ok(Exit::Unavailable)
        }
        GatewayState::Stopping(_) => Err(CommandError::unavailable(state.words())
            .hint("`openclaw gateway stop` waits until it has stopped")),
        GatewayState::Unresponsive(_, _, hint) => {
            let error = CommandError::failed(state.words());
            Err(error.with(|failure| failure.hint.clone_from(hint)))
        }
        GatewayState::Running(gateway) => {
            if !output.json {
                show(gateway, &state.words(), output);
            }
            Ok(Exit::Ok)
        }
    }
}

fn show(gateway: &RunningGateway, words: &str, output: &mut Output) {
    output.line(format_args!("{GOOD}✓{GOOD:#} gateway {words}"));
    if let Some(first) = gateway.config_issues.first() {
        let file = gateway.config.as_deref().unwrap_or("the configuration");
        let more = match gateway.config_issues.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let words = format!("{file} has errors; the last valid version is used: {first}{more}");
        output.folded(format_args!("  {BAD}✗{BAD:#} {}", printable(&words)));
        output.line("    → run `openclaw config validate`");
    }
    for server in &gateway.servers {
        let (mark, style) = state_mark(server.state);
        let words = printable(&summary(server)).into_owned();
        output.line(format_args!("  {style}{mark}{style:#} {}  {words}", server.name));
    }
}
