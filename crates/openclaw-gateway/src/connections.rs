//! Servers that are connected or disconnected at run time. None of it is written to the
//! configuration file (M1).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use openclaw_config::{
    AgentId, Config, LoadEnvironment, ServerConfig, ServerConnection, ServerName, Severity,
    Transport, load_text,
};
use openclaw_mcp::server::Server;
use openclaw_mcp::server::status::{ServerState, ServerStatus};
use parking_lot::Mutex;
use serde_json::json;

use crate::gateway::Gateway;
use crate::mcp::{self, Problem, ProblemKind};

/// Maximum number of servers per agent in addition to the configured ones.
const MAX_ADDED: usize = 50;
/// Maximum number of servers of one host that get a name automatically.
const MAX_TWINS: usize = 99;
/// Maximum length of a URL, in bytes.
const MAX_ADDRESS: usize = 4_096;

/// How the running servers differ from the configured ones.
#[derive(Debug, Default)]
pub(crate) struct Connections(Mutex<BTreeMap<AgentId, AgentConnections>>);

#[derive(Debug, Default)]
struct AgentConnections {
    added: BTreeMap<ServerName, ServerConfig>,
    /// Disconnected servers, with the connection at that time: a server with another connection is
    /// a different one.
    off: BTreeMap<ServerName, ServerConnection>,
}

impl Connections {
    /// Returns the configuration with the added servers and without the disconnected ones. Forgets
    /// entries that the file has overridden meanwhile.
    pub(crate) fn applied_to(&self, config: &Config) -> Config {
        let mut merged = config.clone();
        let mut all = self.0.lock();
        all.retain(|id, _| merged.agents.iter().any(|agent| agent.id == *id));
        for agent in &mut merged.agents {
            let Some(of_agent) = all.get_mut(&agent.id) else { continue };
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

    fn add(&self, agent: &AgentId, name: &ServerName, config: ServerConfig) -> Result<(), Problem> {
        let mut all = self.0.lock();
        let added = &mut all.entry(agent.clone()).or_default().added;
        if added.len() >= MAX_ADDED {
            let message = format!("at most {MAX_ADDED} servers can be connected this way");
            return Err(Problem::new(ProblemKind::Invalid, message)
                .hint("run `openclaw mcp connect` to add them to the configuration"));
        }
        added.insert(name.clone(), config);
        Ok(())
    }

    /// Returns the disconnected server that `SERVER.TOOL` names, if any.
    pub(crate) fn off_server_of(&self, agent: &AgentId, tool: &str) -> Option<String> {
        let all = self.0.lock();
        let mut names = all.get(agent).into_iter().flat_map(|it| it.off.keys());
        let is_meant = |name: &&ServerName| {
            tool.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('.'))
        };
        names.find(is_meant).map(ToString::to_string)
    }

    /// Whether a server was disconnected.
    pub(crate) fn is_off(&self, agent: &AgentId, name: &str) -> bool {
        self.0.lock().get(agent).is_some_and(|it| it.off.contains_key(name))
    }
}

impl Gateway {
    /// Connects an agent to the server at a URL. The server is removed again if it cannot be
    /// reached, but not if it requires a login.
    pub(crate) async fn connect(
        &self,
        agent: &AgentId,
        url: &str,
        name: Option<&str>,
    ) -> Result<ServerStatus, Problem> {
        let (name, mut unsettled) = {
            let _changing = self.changing.lock().await;
            let active = self.active.load_full();
            let merged = self.connections.applied_to(&active.config);
            let (name, config) = self.planned(agent, url, name, &merged)?;
            self.connections.add(agent, &name, config)?;
            let unsettled = ConnectGuard { gateway: self, agent, name: Some(name.clone()) };
            self.fleet.apply(&self.connections.applied_to(&active.config));
            (name, unsettled)
        };
        let server = self.server_of(agent, name.as_str())?;
        let outcome = server.ready().await;
        unsettled.name = None;
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

    /// Returns the name and the configuration of a new server.
    fn planned(
        &self,
        agent: &AgentId,
        url: &str,
        name: Option<&str>,
        config: &Config,
    ) -> Result<(ServerName, ServerConfig), Problem> {
        let invalid = |message: String| Problem::new(ProblemKind::Invalid, message);
        let suggested = ServerName::from_address(url).filter(|_| url.len() <= MAX_ADDRESS);
        let Some(suggested) = suggested else {
            return Err(invalid("invalid URL".to_owned())
                .hint("write it in full: `https://example.com/mcp`"));
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
                    return Err(invalid(format!("server `{name}` already exists"))
                        .hint("choose another name"));
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

    /// Disconnects a server of an agent until the gateway is restarted.
    pub(crate) async fn disconnect(
        &self,
        agent: &AgentId,
        name: &str,
    ) -> Result<ServerStatus, Problem> {
        let changing = self.changing.lock().await;
        let mut status = self.server_of(agent, name)?.status();
        let active = self.active.load_full();
        {
            let mut all = self.connections.0.lock();
            let of_agent = all.entry(agent.clone()).or_default();
            let configured = active.config.agent(Some(agent.as_str()));
            match configured.and_then(|it| it.mcp.servers.get_key_value(name)) {
                Some((name, config)) => {
                    drop(of_agent.off.insert(name.clone(), config.connection.clone()));
                }
                None => drop(of_agent.added.remove(name)),
            }
        }
        let reloaded = self.fleet.apply(&self.connections.applied_to(&active.config));
        drop(changing);
        reloaded.settled().await;
        status.state = ServerState::Closed;
        (status.pid, status.session_id, status.uptime_ms) = (None, None, None);
        Ok(status)
    }

    /// Reconnects a server that was disconnected. Returns whether it was.
    pub(crate) async fn reconnect(&self, agent: &AgentId, name: &str) -> bool {
        let _changing = self.changing.lock().await;
        let off = self.connections.0.lock().get_mut(agent).and_then(|it| it.off.remove(name));
        if off.is_none() {
            return false;
        }
        let active = self.active.load_full();
        self.fleet.apply(&self.connections.applied_to(&active.config));
        true
    }

    /// Returns a running server of an agent.
    pub(crate) fn server_of(&self, agent: &AgentId, name: &str) -> Result<Arc<Server>, Problem> {
        let Some(tools) = self.fleet.agent(agent.as_str()) else {
            return Err(Problem::new(ProblemKind::Invalid, format!("unknown agent `{agent}`")));
        };
        let server = mcp::server(&tools, name).map(Arc::clone);
        server.map_err(|problem| self.explained(agent, name, problem))
    }

    /// Replaces the error if the server was disconnected at run time.
    pub(crate) fn explained(&self, agent: &AgentId, name: &str, problem: Problem) -> Problem {
        let is_missing =
            matches!(problem.kind, ProblemKind::Unavailable | ProblemKind::UnknownServer);
        if !is_missing || !self.connections.is_off(agent, name) {
            return problem;
        }
        Problem::new(ProblemKind::Unavailable, format!("`{name}` was disconnected")).hint(format!(
            "use `/mcp refresh {name}` in a chat, or run `openclaw mcp refresh {name}`"
        ))
    }
}

/// A new server that is being connected. If the caller stops waiting, the server is removed.
struct ConnectGuard<'a> {
    gateway: &'a Gateway,
    agent: &'a AgentId,
    name: Option<ServerName>,
}

impl Drop for ConnectGuard<'_> {
    fn drop(&mut self) {
        let (name, gateway) = (self.name.take(), self.gateway.this.upgrade());
        let (Some(name), Some(gateway)) = (name, gateway) else { return };
        let agent = self.agent.clone();
        self.gateway.tasks.spawn(async move {
            // It may be gone already.
            let _ = gateway.disconnect(&agent, name.as_str()).await;
        });
    }
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
