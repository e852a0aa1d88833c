//! Assigns servers to agents when a configuration is loaded or changed (C9, L7, L10).

use std::collections::BTreeMap;
use std::sync::Arc;

use openclaw_config::{
    AgentConfig, AgentId, Config, ConfigChanges, EntryChange, ServerChange, ServerConnection,
    ServerName,
};

use crate::catalogue::member::FleetMember;
use crate::fleet::agent::AgentTools;
use crate::server::shared_options::SharedOptions;
use crate::server::{Ended, Predecessors, Server, SharedContext};
use crate::services::CallServices;

/// The agents with their servers, and the servers that no agent uses any more.
pub(crate) struct ReloadPlan {
    pub(crate) agents: BTreeMap<AgentId, Arc<AgentTools>>,
    pub(crate) go: Vec<Arc<Server>>,
}

/// A server that was asked to stop.
#[derive(Debug)]
pub(crate) struct EndingServer {
    pub(crate) name: ServerName,
    pub(crate) ended: Ended,
}

impl EndingServer {
    pub(crate) fn new(server: &Server) -> Self {
        Self { name: server.name().clone(), ended: server.ended() }
    }
}

/// Returns all servers of the agents, each once.
pub(crate) fn servers(agents: &BTreeMap<AgentId, Arc<AgentTools>>) -> Vec<Arc<Server>> {
    let mut servers: Vec<Arc<Server>> = Vec::new();
    for server in agents.values().flat_map(|tools| tools.servers()) {
        if !servers.iter().any(|known| Arc::ptr_eq(known, server)) {
            servers.push(Arc::clone(server));
        }
    }
    servers
}

/// The input of a plan.
struct Base<'a> {
    config: &'a Config,
    /// The changes since the previous configuration, and its agents; `None` at the start.
    before: Option<(&'a ConfigChanges, &'a BTreeMap<AgentId, Arc<AgentTools>>)>,
    common: &'a SharedContext,
    services: &'a Arc<CallServices>,
}

/// A server of the new configuration, with the merged requirements of its agents.
struct PlannedServer<'a> {
    name: &'a ServerName,
    connection: &'a ServerConnection,
    upkeep: SharedOptions,
    /// The running server that is reused.
    kept: Option<Arc<Server>>,
    /// Whether an agent's options for it have changed.
    is_updated: bool,
    /// The running server that it replaces.
    replaces: Option<Arc<Server>>,
}

impl ReloadPlan {
    /// Starts the servers of a configuration.
    pub(crate) fn first(
        config: &Config,
        common: &SharedContext,
        services: &Arc<CallServices>,
    ) -> Self {
        Base { config, before: None, common, services }.crew(&[])
    }

    /// Reuses the servers that did not change and starts the rest. A server that replaces one of
    /// the same name, or one that is still stopping, starts after that one has stopped: both may
    /// need the same port or file.
    pub(crate) fn next(
        config: &Config,
        changes: &ConfigChanges,
        before: &BTreeMap<AgentId, Arc<AgentTools>>,
        leaving: &[EndingServer],
        common: &SharedContext,
        services: &Arc<CallServices>,
    ) -> Self {
        Base { config, before: Some((changes, before)), common, services }.crew(leaving)
    }
}

impl<'a> Base<'a> {
    fn crew(&self, leaving: &[EndingServer]) -> ReloadPlan {
        let old = self.before.map(|(_, agents)| servers(agents)).unwrap_or_default();
        let wanted = self.wanted(&old);
        let is_kept = |server: &Arc<Server>| {
            let mut kept = wanted.iter().filter_map(|wanted| wanted.kept.as_ref());
            kept.any(|kept| Arc::ptr_eq(kept, server))
        };
        let go: Vec<Arc<Server>> = old.iter().filter(|it| !is_kept(it)).map(Arc::clone).collect();
        let running: Vec<(&PlannedServer<'_>, Arc<Server>)> =
            wanted.iter().map(|it| (it, self.run(it, &go, leaving))).collect();
        let agents = self.config.agents.iter();
        let agents = agents.map(|agent| (agent.id.clone(), self.agent(agent, &running))).collect();
        ReloadPlan { agents, go }
    }

    /// The servers of all agents, each once.
    fn wanted(&self, old: &[Arc<Server>]) -> Vec<PlannedServer<'a>> {
        let mut all: Vec<PlannedServer<'a>> = Vec::new();
        for agent in &self.config.agents {
            for (name, config) in agent.mcp.servers.iter().filter(|(_, config)| config.enabled) {
                let change = self.change(agent, name);
                let upkeep = SharedOptions::new(&config.options, &agent.mcp.settings);
                let connection = &config.connection;
                let is_updated = change == ServerChange::Updated;
                let known = all
                    .iter_mut()
                    .find(|wanted| wanted.name == name && wanted.connection == connection);
                if let Some(known) = known {
                    known.upkeep = known.upkeep.clone().and(upkeep);
                    known.is_updated |= is_updated;
                    continue;
                }
                let own = self.own(agent, name);
                let (kept, replaces) = match change {
                    ServerChange::Same | ServerChange::Updated => (own, None),
                    ServerChange::Restarted => (None, own),
                    ServerChange::Added | ServerChange::Removed | ServerChange::NotRunning => {
                        (None, None)
                    }
                };
                // Another agent may be connected to it.
                let is_it = |it: &&Arc<Server>| it.name() == name && it.connection() == connection;
                let kept = kept.or_else(|| old.iter().find(is_it).map(Arc::clone));
                all.push(PlannedServer { name, connection, upkeep, kept, is_updated, replaces });
            }
        }
        all
    }

    fn change(&self, agent: &AgentConfig, name: &ServerName) -> ServerChange {
        let changes = self.before.and_then(|(changes, _)| changes.agents.get(&agent.id));
        let change = changes.and_then(|agent| agent.servers.get(name));
        change.copied().unwrap_or(ServerChange::Added)
    }

    /// Returns the running server of this name that the agent has used so far.
    fn own(&self, agent: &AgentConfig, name: &ServerName) -> Option<Arc<Server>> {
        let (_, agents) = self.before?;
        agents.get(&agent.id)?.server(name.as_str()).map(Arc::clone)
    }

    /// Reuses or starts the server.
    fn run(
        &self,
        wanted: &PlannedServer<'_>,
        go: &[Arc<Server>],
        leaving: &[EndingServer],
    ) -> Arc<Server> {
        if let Some(server) = &wanted.kept {
            server.users().clear();
            server.keep(wanted.upkeep.clone());
            if wanted.is_updated {
                server.revive();
            }
            return Arc::clone(server);
        }
        let going = go.iter().filter(|server| server.name() == wanted.name);
        let still = leaving.iter().filter(|leaving| leaving.name == *wanted.name);
        let predecessors = Predecessors {
            ended: going
                .map(|server| server.ended())
                .chain(still.map(|leaving| leaving.ended.clone()))
                .collect(),
            inventory: wanted.replaces.as_ref().map(|server| server.cache().inventory()),
        };
        let name = wanted.name.clone();
        let connection = wanted.connection.clone();
        let upkeep = wanted.upkeep.clone();
        Arc::new(Server::start(name, connection, upkeep, predecessors, self.common))
    }

    fn agent(
        &self,
        agent: &AgentConfig,
        running: &[(&PlannedServer<'_>, Arc<Server>)],
    ) -> Arc<AgentTools> {
        let enabled = agent.mcp.servers.iter().filter(|(_, config)| config.enabled);
        let members = enabled.filter_map(|(name, config)| {
            let is_it = |wanted: &PlannedServer<'_>| {
                wanted.name == name && *wanted.connection == config.connection
            };
            let (_, server) = running.iter().find(|(wanted, _)| is_it(wanted))?;
            server.users().add(&agent.id);
            let member = FleetMember::new(Arc::clone(server), &config.options, agent);
            Some(Arc::new(member))
        });
        let members: Vec<Arc<FleetMember>> = members.collect();
        let before = self.before.and_then(|(_, agents)| agents.get(&agent.id));
        if let Some(before) = before
            && self.is_untouched(agent)
        {
            return Arc::clone(before);
        }
        let last_notices = before.map(|tools| tools.last_notices().clone()).unwrap_or_default();
        let revision = self.common.revision.clone();
        Arc::new(AgentTools::new(
            agent,
            self.config,
            members,
            revision,
            self.services,
            last_notices,
            before.map(|tools| Arc::clone(tools.names())).unwrap_or_default(),
        ))
    }

    /// Whether nothing changed that the agent can see.
    fn is_untouched(&self, agent: &AgentConfig) -> bool {
        let Some((changes, _)) = self.before else { return false };
        let Some(of_agent) = changes.agents.get(&agent.id) else { return false };
        let mut servers = of_agent.servers.values();
        !changes.tools
            && !changes.gateway
            && of_agent.settings == EntryChange::Same
            && servers.all(|change| *change == ServerChange::Same)
    }
}

#[cfg(test)]
#[path = "reload_tests.rs"]
mod tests;
