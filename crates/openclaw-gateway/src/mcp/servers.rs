//! The MCP servers of all agents, with what was changed about them at run time.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::join_all;
use openclaw_config::{AgentId, Config, ConfigChanges};
use openclaw_mcp::fleet::Fleet;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp::server::Server;
use openclaw_mcp::server::status::{ServerState, ServerStatus};
use openclaw_mcp_client::log::ServerLog;
use openclaw_protocol::ErrorShape;
use openclaw_protocol::mcp::{LogsResult, RefreshResult};
use parking_lot::Mutex;
use tokio_util::task::TaskTracker;

use super::connections::Connections;
use super::gather::{server, unknown, unknown_server};
use super::logins::Logins;
use super::problem::{Problem, ProblemKind};
use super::refresh::{not_refreshed, refreshed};

/// The MCP servers of all agents.
#[derive(Debug)]
pub(crate) struct McpServers {
    pub(super) fleet: Arc<Fleet>,
    /// The configuration of the running servers. The fleet is changed under this lock.
    pub(super) connections: Mutex<Connections>,
    pub(super) logins: Logins,
    /// Directory of the servers' logs.
    logs: Option<PathBuf>,
    pub(super) tasks: TaskTracker,
}

impl McpServers {
    /// Manages the servers of a fleet, which has this configuration.
    pub(crate) fn new(
        fleet: Arc<Fleet>,
        config: Arc<Config>,
        logs: Option<PathBuf>,
        tasks: TaskTracker,
    ) -> Self {
        let connections = Mutex::new(Connections::new(config));
        Self { fleet, connections, logins: Logins::default(), logs, tasks }
    }

    /// Applies another configuration, and what was changed at run time. Returns the changes that the fleet
    /// made.
    pub(crate) fn configure(&self, config: Arc<Config>) -> ConfigChanges {
        let mut connections = self.connections.lock();
        connections.replace_config(config);
        self.fleet.apply(&connections.merged()).changes
    }

    /// Returns the servers of an agent.
    pub(crate) fn agent(&self, id: &AgentId) -> Option<Arc<AgentTools>> {
        self.fleet.agent(id.as_str())
    }

    /// Like [`agent`](Self::agent), for an agent that existed a moment ago.
    pub(super) fn tools(&self, id: &AgentId) -> Result<Arc<AgentTools>, Problem> {
        let gone = || Problem::new(ProblemKind::Invalid, format!("agent `{id}` no longer exists"));
        self.agent(id).ok_or_else(gone)
    }

    /// Returns a running server of an agent.
    pub(crate) fn server(&self, agent: &AgentId, name: &str) -> Result<Arc<Server>, Problem> {
        self.running(agent, name).map_err(|problem| self.explained(agent, name, problem))
    }

    /// Like [`server`](Self::server), without the reason of a disconnection.
    pub(super) fn running(&self, agent: &AgentId, name: &str) -> Result<Arc<Server>, Problem> {
        let Some(tools) = self.agent(agent) else {
            return Err(Problem::new(ProblemKind::Invalid, format!("unknown agent `{agent}`")));
        };
        server(&tools, name).map(Arc::clone)
    }

    /// Replaces the error if the server was disconnected at run time.
    pub(super) fn explained(&self, agent: &AgentId, name: &str, problem: Problem) -> Problem {
        self.connections.lock().explained(agent, name, problem)
    }

    /// The status of a server, whatever its state.
    pub(crate) fn status(&self, id: &AgentId, name: &str) -> Result<ServerStatus, Problem> {
        let agent = self.tools(id)?;
        let status = self.statuses_of(id, &agent).into_iter().find(|it| it.name == name);
        status.ok_or_else(|| unknown(name, &agent.statuses()))
    }

    /// The statuses of an agent's servers; none if it does not exist.
    pub(crate) fn statuses(&self, id: &AgentId) -> Vec<ServerStatus> {
        let agent = self.agent(id);
        agent.map(|agent| self.statuses_of(id, &agent)).unwrap_or_default()
    }

    /// A server disconnected at run time is reported as closed, not as disabled.
    pub(super) fn statuses_of(&self, id: &AgentId, agent: &AgentTools) -> Vec<ServerStatus> {
        let mut statuses = agent.statuses();
        let connections = self.connections.lock();
        for status in &mut statuses {
            if connections.is_off(id, &status.name) {
                status.state = ServerState::Closed;
            }
        }
        statuses
    }

    /// The statuses of all servers, each once. `agents` are those whose disconnected servers are included.
    pub(crate) fn all_statuses(&self, agents: &[AgentId]) -> Vec<ServerStatus> {
        let mut all: Vec<ServerStatus> =
            self.fleet.servers().iter().map(|server| server.status()).collect();
        for id in agents {
            // The fleet does not have those that were disconnected, unless another agent uses them.
            for status in self.statuses(id) {
                let is_known = all.iter().any(|it| it.name == status.name);
                if !is_known && self.connections.lock().is_off(id, &status.name) {
                    all.push(status);
                }
            }
        }
        all
    }

    /// Connects to a server that was disconnected or has failed.
    pub(crate) async fn connect_again(
        &self,
        id: &AgentId,
        name: &str,
    ) -> Result<ServerStatus, Problem> {
        let was_off = self.reconnect(id, name);
        let server = self.server(id, name)?;
        if was_off || server.status().state == ServerState::Ready {
            server.ready().await.map(|_| ()).map_err(Problem::from)?;
        } else {
            server.refresh().await.map_err(Problem::from)?;
        }
        Ok(server.status())
    }

    /// Reloads the lists of one server, or of all. A disconnected server is reconnected; one that is
    /// not ready is retried.
    pub(crate) async fn refresh(
        &self,
        id: &AgentId,
        name: Option<&str>,
    ) -> Result<RefreshResult, Problem> {
        if let Some(name) = name {
            self.reconnect(id, name);
        }
        let servers = match name {
            Some(name) => vec![self.server(id, name)?],
            None => self.tools(id)?.servers().to_vec(),
        };
        let each = servers.iter().map(|server| async {
            let before = server.cache().inventory();
            match server.refresh().await {
                Ok(()) => refreshed(server, &before),
                Err(unavailable) => not_refreshed(server, unavailable),
            }
        });
        let servers = join_all(each).await;
        Ok(RefreshResult { ok: servers.iter().all(|it| it.ok), servers })
    }

    /// The last lines of a server's log.
    pub(crate) async fn log(&self, server: String, count: usize) -> Result<LogsResult, ErrorShape> {
        let Some(folder) = self.logs.clone() else {
            return Err(ErrorShape::unavailable("this gateway does not keep server logs"));
        };
        let name = server.clone();
        // At least one line, to find out whether there is a log.
        let read = move || ServerLog::tail(&folder, &name, count.max(1));
        let read = tokio::task::spawn_blocking(read).await;
        let lines = match read {
            Ok(Ok(lines)) => lines,
            Ok(Err(error)) => {
                let message = format!("cannot read the log of `{server}`: {error}");
                return Err(ErrorShape::unavailable(message));
            }
            Err(_) => return Err(ErrorShape::unavailable("cannot read the log")),
        };
        if lines.is_empty() {
            // The log of a removed server may still exist.
            self.check_known(&server)?;
        }
        Ok(LogsResult { server, lines: if count == 0 { Vec::new() } else { lines } })
    }

    /// Fails if no agent has a server with this name.
    fn check_known(&self, name: &str) -> Result<(), Problem> {
        let config = self.connections.lock().config();
        let agents = config.agents.iter().filter_map(|agent| self.agent(&agent.id));
        let statuses: Vec<ServerStatus> = agents.flat_map(|agent| agent.statuses()).collect();
        let mut known: Vec<&str> = statuses.iter().map(|status| status.name.as_str()).collect();
        known.sort_unstable();
        known.dedup();
        match known.contains(&name) {
            true => Ok(()),
            false => Err(unknown_server(name, &known)),
        }
    }
}
