//! Servers that are connected or disconnected at run time. None of it is written to the
//! configuration file (M1).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use openclaw_config::{
    AgentId, Config, LoadEnvironment, ServerConfig, ServerConnection, ServerName, Severity,
    Transport, load_text,
};
use openclaw_mcp::server::status::{ServerState, ServerStatus};
use serde_json::json;

use super::problem::{Problem, ProblemKind};
use super::servers::McpServers;

/// Maximum number of servers per agent in addition to the configured ones.
const MAX_ADDED: usize = 50;
/// Maximum number of servers of one host that get a name automatically.
const MAX_TWINS: usize = 99;
/// Maximum length of a URL, in bytes.
const MAX_ADDRESS: usize = 4_096;

/// The configuration of the servers, and how the running ones differ from it.
#[derive(Debug)]
pub(super) struct Connections {
    config: Arc<Config>,
    agents: BTreeMap<AgentId, AgentConnections>,
}

#[derive(Debug, Default)]
struct AgentConnections {
    added: BTreeMap<ServerName, ServerConfig>,
    /// Disconnected servers, with the connection at that time: a server with another connection is
    /// a different one.
    off: BTreeMap<ServerName, ServerConnection>,
}

impl Connections {
    pub(super) fn new(config: Arc<Config>) -> Self {
        Self { config, agents: BTreeMap::new() }
    }

    pub(super) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config)
    }

    pub(super) fn replace_config(&mut self, config: Arc<Config>) {
        self.config = config;
    }

    /// Returns the configuration with the added servers and without the disconnected ones. Forgets
    /// entries that the file has overridden meanwhile.
    pub(super) fn merged(&mut self) -> Config {
        let mut merged = Config::clone(&self.config);
        self.agents.retain(|id, _| merged.agents.iter().any(|agent| agent.id == *id));
        for agent in &mut merged.agents {
            let Some(of_agent) = self.agents.get_mut(&agent.id) else { continue };
            let servers = &mut agent.mcp.servers;
            let held_back = &agent.mcp.held_back;
            of_agent
                .added
                .retain(|name, _| !servers.contains_key(name) && !held_back.contains_key(name));
            let now = |name: &ServerName| servers.get(name).map(|server| &server.connection);
            of_agent.off.retain(|name, then| now(name) == Some(then));
            for name in of_agent.off.keys() {
                servers.entry(name.clone()).and_modify(|server| server.enabled = false);
            }
            servers.extend(of_agent.added.clone());
        }
        merged
    }

    /// Adds a server at a URL. Returns its name.
    fn add(
        &mut self,
        agent: &AgentId,
        url: &str,
        name: Option<&str>,
    ) -> Result<ServerName, Problem> {
        let (name, config) = planned(agent, url, name, &self.merged())?;
        let added = &mut self.agents.entry(agent.clone()).or_default().added;
        if added.len() >= MAX_ADDED {
            let message = format!("at most {MAX_ADDED} servers can be connected this way");
            return Err(Problem::new(ProblemKind::Invalid, message)
                .hint("run `openclaw mcp connect` to add them to the configuration"));
        }
        added.insert(name.clone(), config);
        Ok(name)
    }

    /// Removes an added server, or disconnects a configured one.
    fn remove(&mut self, agent: &AgentId, name: &str) {
        let of_agent = self.agents.entry(agent.clone()).or_default();
        let configured = self.config.agent(Some(agent.as_str()));
        match configured.and_then(|it| it.mcp.servers.get_key_value(name)) {
            Some((name, config)) => {
                drop(of_agent.off.insert(name.clone(), config.connection.clone()));
            }
            None => drop(of_agent.added.remove(name)),
        }
    }

    /// Returns the disconnected server that `SERVER.TOOL` names, if any.
    pub(super) fn off_server_of(&self, agent: &AgentId, tool: &str) -> Option<String> {
        let mut names = self.agents.get(agent).into_iter().flat_map(|it| it.off.keys());
        let is_meant = |name: &&ServerName| {
            tool.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('.'))
        };
        names.find(is_meant).map(ToString::to_string)
    }

    /// Whether a server was disconnected.
    pub(super) fn is_off(&self, agent: &AgentId, name: &str) -> bool {
        self.agents.get(agent).is_some_and(|it| it.off.contains_key(name))
    }

    /// Replaces the error if the server was disconnected.
    pub(super) fn explained(&self, agent: &AgentId, name: &str, problem: Problem) -> Problem {
        let is_missing =
            matches!(problem.kind, ProblemKind::Unavailable | ProblemKind::UnknownServer);
        if !is_missing || !self.is_off(agent, name) {
            return problem;
        }
        Problem::new(ProblemKind::Unavailable, format!("`{name}` was disconnected")).hint(format!(
            "use `/mcp refresh {name}` in a chat, or run `openclaw mcp refresh {name}`"
        ))
    }
}

impl McpServers {
    /// Connects an agent to the server at a URL. The server is removed again if it cannot be
    /// reached, but not if it requires a login.
    pub(crate) async fn connect(
        self: &Arc<Self>,
        agent: &AgentId,
        url: &str,
        name: Option<&str>,
    ) -> Result<ServerStatus, Problem> {
        let name = {
            let mut connections = self.connections.lock();
            let name = connections.add(agent, url, name)?;
            self.fleet.apply(&connections.merged());
            name
        };
        let mut guard = ConnectGuard { servers: self, agent, name: Some(name.clone()) };
        let server = self.server(agent, name.as_str())?;
        let outcome = server.ready().await;
        guard.name = None;
        match outcome {
            Ok(_) => Ok(server.status()),
            Err(_) if server.status().state == ServerState::NeedsAuth => Ok(server.status()),
            Err(unavailable) => {
                drop(server);
                self.disconnect(agent, name.as_str()).await?;
                let problem = Problem::from(unavailable);
                let message = format!("{}; it was not added", problem.message);
                Err(Problem { message, ..problem })
            }
        }
    }

    /// Disconnects a server of an agent until the gateway is restarted.
    pub(crate) async fn disconnect(
        &self,
        agent: &AgentId,
        name: &str,
    ) -> Result<ServerStatus, Problem> {
        let (mut status, reloaded) = {
            let mut connections = self.connections.lock();
            let server = self.running(agent, name);
            let server = server.map_err(|problem| connections.explained(agent, name, problem))?;
            connections.remove(agent, name);
            (server.status(), self.fleet.apply(&connections.merged()))
        };
        reloaded.settled().await;
        status.state = ServerState::Closed;
        (status.pid, status.session_id, status.uptime_ms) = (None, None, None);
        Ok(status)
    }

    /// Reconnects a server that was disconnected. Returns whether it was.
    pub(super) fn reconnect(&self, agent: &AgentId, name: &str) -> bool {
        let mut connections = self.connections.lock();
        let off = connections.agents.get_mut(agent).and_then(|it| it.off.remove(name));
        if off.is_none() {
            return false;
        }
        self.fleet.apply(&connections.merged());
        true
    }
}

/// A new server that is being connected. If the caller stops waiting, the server is removed.
struct ConnectGuard<'a> {
    servers: &'a Arc<McpServers>,
    agent: &'a AgentId,
    name: Option<ServerName>,
}

impl Drop for ConnectGuard<'_> {
    fn drop(&mut self) {
        let Some(name) = self.name.take() else { return };
        let servers = Arc::clone(self.servers);
        let agent = self.agent.clone();
        self.servers.tasks.spawn(async move {
            // It may be gone already.
            let _ = servers.disconnect(&agent, name.as_str()).await;
        });
    }
}

/// Returns the name and the configuration of a new server.
fn planned(
    agent: &AgentId,
    url: &str,
    name: Option<&str>,
    config: &Config,
) -> Result<(ServerName, ServerConfig), Problem> {
    let invalid = |message: String| Problem::new(ProblemKind::Invalid, message);
    let suggested = ServerName::from_address(url).filter(|_| url.len() <= MAX_ADDRESS);
    let Some(suggested) = suggested else {
        return Err(
            invalid("invalid URL".to_owned()).hint("write it in full: `https://example.com/mcp`")
        );
    };
    let Some(of_agent) = config.agent(Some(agent.as_str())) else {
        return Err(invalid(format!("unknown agent `{agent}`")));
    };
    let mcp = &of_agent.mcp;
    let is_there = |server: &ServerConfig| match &server.connection.transport {
        Transport::Http(http) => server.enabled && http.url.is(url),
        Transport::Stdio(_) => false,
    };
    if let Some((twin, _)) = mcp.servers.iter().find(|(_, server)| is_there(server)) {
        return Err(invalid(format!("this URL is already configured, as `{twin}`")));
    }
    let is_taken =
        |name: &ServerName| mcp.servers.contains_key(name) || mcp.held_back.contains_key(name);
    let name = match name {
        Some(name) => {
            let name = ServerName::new(name).map_err(|error| {
                let problem = invalid(format!("invalid server name `{name}`: {error}"));
                match error.suggestion() {
                    Some(better) => problem.hint(format!("use `{better}`")),
                    None => problem,
                }
            })?;
            if is_taken(&name) {
                return Err(
                    invalid(format!("server `{name}` already exists")).hint("choose another name")
                );
            }
            name
        }
        None => free_name(&suggested, is_taken).ok_or_else(|| {
            invalid("no free name for this server".to_owned()).hint("choose a name")
        })?,
    };
    let server = settings(&name, url)?;
    Ok((name, server))
}

/// Parses the configuration of a server at a URL, with the rules of the file: https, or localhost.
fn settings(name: &ServerName, url: &str) -> Result<ServerConfig, Problem> {
    // The URL is literal: no variable is expanded.
    let url = url.trim().replace('$', "$$");
    let text = json!({ "mcp": { "servers": { name.as_str(): { "url": url } } } }).to_string();
    let loaded = load_text(Path::new("address"), &text, LoadEnvironment::empty());
    let server = loaded.config.and_then(|mut config| {
        let agent = config.agents.first_mut()?;
        agent.mcp.servers.remove(name)
    });
    server.ok_or_else(|| {
        let errors = loaded.report.diagnostics().iter();
        let mut errors = errors.filter(|it| it.severity() == Severity::Error);
        let message = errors.next().map(|it| it.message().to_owned());
        let message = message.unwrap_or_else(|| "invalid URL".to_owned());
        Problem::new(ProblemKind::Invalid, message)
            .hint("use an `https://` URL, or an `http://` URL on this machine")
    })
}

/// Returns the name itself, or the name with a number appended if it is taken.
pub fn free_name(name: &ServerName, is_taken: impl Fn(&ServerName) -> bool) -> Option<ServerName> {
    let numbered =
        (2..=MAX_TWINS).filter_map(|number| ServerName::new(format!("{name}-{number}")).ok());
    std::iter::once(name.clone()).chain(numbered).find(|name| !is_taken(name))
}
