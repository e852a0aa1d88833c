//! The differences between two configurations, part by part, for hot reload (C9).

use std::collections::BTreeMap;

use crate::agent::AgentConfig;
use crate::mcp::McpConfig;
use crate::model::Config;
use crate::name::{AgentId, ProviderId, ServerName};
use crate::server::ServerConfig;

/// How a provider or an agent changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryChange {
    /// New.
    Added,
    /// Removed.
    Removed,
    /// Its settings changed.
    Changed,
    /// Unchanged.
    Same,
}

impl EntryChange {
    fn between<T>(old: Option<&T>, new: Option<&T>, is_same: fn(&T, &T) -> bool) -> Self {
        match (old, new) {
            (Some(old), Some(new)) if is_same(old, new) => Self::Same,
            (Some(_), Some(_)) => Self::Changed,
            (Some(_), None) => Self::Removed,
            (None, _) => Self::Added,
        }
    }
}

/// What happens to a server of an agent when another configuration is applied (L10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerChange {
    /// It is new, was enabled, or can now be started: it is started.
    Added,
    /// It was removed, was disabled, or can no longer be started: it is stopped.
    Removed,
    /// Its connection changed: it is restarted.
    Restarted,
    /// Only its options changed: it is updated live.
    Updated,
    /// Its entry changed, but it runs neither before nor after.
    NotRunning,
    /// Unchanged.
    Same,
}

impl ServerChange {
    /// Compares the old and the new entry of a server.
    pub fn between(old: Option<&ServerConfig>, new: Option<&ServerConfig>) -> Self {
        let running = |config: Option<&'_ ServerConfig>| config.is_some_and(|it| it.enabled);
        match (old, new) {
            _ if !running(old) && !running(new) => {
                if old == new {
                    Self::Same
                } else {
                    Self::NotRunning
                }
            }
            _ if !running(old) => Self::Added,
            _ if !running(new) => Self::Removed,
            (Some(old), Some(new)) => {
                // Destructured, so that a new field must be handled here.
                let ServerConfig { enabled: _, connection, options } = old;
                if *connection != new.connection {
                    Self::Restarted
                } else if *options != new.options {
                    Self::Updated
                } else {
                    Self::Same
                }
            }
            _ => Self::Same,
        }
    }
}

/// The differences between two configurations. Only values are compared, not their origins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigChanges {
    /// How each agent changed.
    pub agents: BTreeMap<AgentId, AgentChanges>,
    /// Whether the order of the agents changed, and possibly the default agent.
    pub agent_order: bool,
    /// How each model provider changed.
    pub models: BTreeMap<ProviderId, EntryChange>,
    /// Whether the gateway's settings or its tool policy changed.
    pub gateway: bool,
    /// Whether the tool policy for all agents or a setting of the built-in tools changed.
    pub tools: bool,
    /// Whether the settings of the metrics changed.
    pub metrics: bool,
    /// Whether the limits for editor sessions changed.
    pub acp: bool,
    /// Whether the settings of the secret providers changed.
    pub secrets: bool,
    restart: Vec<RestartCause>,
}

/// How an agent changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentChanges {
    /// The agent itself: its model, its limits, its tool policy, its MCP settings.
    pub settings: EntryChange,
    /// How each of its servers changed.
    pub servers: BTreeMap<ServerName, ServerChange>,
}

/// A setting whose change requires a gateway restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartCause {
    /// `gateway.port`.
    Port,
    /// `gateway.bind`.
    Bind,
    /// `gateway.auth.token`.
    Token,
}

impl RestartCause {
    /// Returns the key of the setting.
    pub fn key(self) -> &'static str {
        match self {
            Self::Port => "gateway.port",
            Self::Bind => "gateway.bind",
            Self::Token => "gateway.auth.token",
        }
    }
}

impl ConfigChanges {
    /// Returns the changed settings that require a gateway restart.
    pub fn needs_restart(&self) -> &[RestartCause] {
        &self.restart
    }

    /// Returns the keys that changed, for display: `agents.main.mcp.servers.git`, `gateway`.
    pub fn keys(&self) -> Vec<String> {
        let changed = |change: &EntryChange| *change != EntryChange::Same;
        let mut keys = Vec::new();
        for (id, agent) in &self.agents {
            if changed(&agent.settings) {
                keys.push(format!("agents.{id}"));
            }
            let servers = agent.servers.iter().filter(|(_, change)| **change != ServerChange::Same);
            keys.extend(servers.map(|(name, _)| format!("agents.{id}.mcp.servers.{name}")));
        }
        let models = self.models.iter().filter(|(_, change)| changed(change));
        keys.extend(models.map(|(id, _)| format!("models.providers.{id}")));
        let flags = [
            (self.agent_order, "agents"),
            (self.gateway, "gateway"),
            (self.tools, "tools"),
            (self.metrics, "metrics"),
            (self.acp, "acp"),
            (self.secrets, "secrets"),
        ];
        keys.extend(flags.iter().filter(|(it, _)| *it).map(|(_, key)| (*key).to_owned()));
        keys
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.keys().is_empty()
    }
}

impl Config {
    /// Returns what changed from `self` to `newer`.
    ///
    /// ```
    /// # use std::path::Path;
    /// # use openclaw_config::{RestartCause, LoadEnvironment, load_text};
    /// # let load = |text| load_text(Path::new("c"), text, LoadEnvironment::empty());
    /// let old = load("{ gateway: { port: 1 } }").config.unwrap();
    /// let new = load("{ gateway: { port: 2 } }").config.unwrap();
    /// assert!(old.diff(&old).is_empty());
    /// assert_eq!(old.diff(&new).needs_restart(), [RestartCause::Port]);
    /// ```
    pub fn diff(&self, newer: &Self) -> ConfigChanges {
        // Destructured, so that a new field must be handled here.
        let Self {
            file: _,
            contents: _,
            agents: _,
            tools,
            native_tools,
            models,
            gateway,
            gateway_tools,
            metrics,
            acp,
            secrets,
            origins: _,
        } = self;
        let agents = ids(self).chain(ids(newer)).map(|id| {
            (
                id.clone(),
                agent_changes(self.agent(Some(id.as_str())), newer.agent(Some(id.as_str()))),
            )
        });
        let restart = [
            (gateway.port != newer.gateway.port, RestartCause::Port),
            (gateway.bind != newer.gateway.bind, RestartCause::Bind),
            (gateway.token != newer.gateway.token, RestartCause::Token),
        ];
        ConfigChanges {
            agents: agents.collect(),
            agent_order: ids(self).ne(ids(newer)),
            models: tables(models, &newer.models),
            gateway: *gateway != newer.gateway || *gateway_tools != newer.gateway_tools,
            tools: *tools != newer.tools || *native_tools != newer.native_tools,
            metrics: *metrics != newer.metrics,
            acp: *acp != newer.acp,
            secrets: *secrets != newer.secrets,
            restart: restart
                .iter()
                .filter(|(is_new, _)| *is_new)
                .map(|(_, cause)| *cause)
                .collect(),
        }
    }
}

impl McpConfig {
    /// Returns how each server changed from `self` to `newer`. Origins are not compared.
    ///
    /// ```
    /// # use std::path::Path;
    /// # use openclaw_config::{ServerChange, LoadEnvironment, load_text};
    /// # let load = |text: &str| load_text(Path::new("c"), text, LoadEnvironment::empty());
    /// let servers = |text: &str| load(&format!("{{ mcp: {{ servers: {{ {text} }} }} }}")).config.unwrap();
    /// let old = servers("a: { command: 'x' }, b: { command: 'x' }, c: { command: 'x' }");
    /// let new = servers("b: { command: 'y' }, c: { command: 'x', approval: 'never' }, d: { command: 'z' }");
    /// let changes = old.agents[0].mcp.diff(&new.agents[0].mcp);
    /// assert_eq!(changes["a"], ServerChange::Removed);
    /// assert_eq!(changes["b"], ServerChange::Restarted);
    /// assert_eq!(changes["c"], ServerChange::Updated);
    /// assert_eq!(changes["d"], ServerChange::Added);
    /// ```
    pub fn diff(&self, newer: &Self) -> BTreeMap<ServerName, ServerChange> {
        server_changes(&self.servers, &newer.servers)
    }
}

fn agent_changes(old: Option<&AgentConfig>, new: Option<&AgentConfig>) -> AgentChanges {
    let nothing = BTreeMap::new();
    let [old_servers, new_servers] =
        [old, new].map(|agent| agent.map_or(&nothing, |agent| &agent.mcp.servers));
    AgentChanges {
        settings: EntryChange::between(old, new, has_same_settings),
        servers: server_changes(old_servers, new_servers),
    }
}

/// Whether two agents are equal except for their servers.
fn has_same_settings(old: &AgentConfig, new: &AgentConfig) -> bool {
    let AgentConfig {
        id,
        model,
        workspace,
        system_prompt,
        max_rounds,
        max_parallel_tools,
        tool_search_threshold,
        context_tokens,
        approval,
        mcp,
        tools,
        origins: _,
    } = old;
    // Servers are compared one by one elsewhere; servers that are held back count here.
    let McpConfig {
        enabled,
        settings,
        held_back,
        servers: _,
        plaintext_credentials: _,
        origins: _,
    } = mcp;
    *id == new.id
        && *model == new.model
        && *workspace == new.workspace
        && *system_prompt == new.system_prompt
        && *max_rounds == new.max_rounds
        && *max_parallel_tools == new.max_parallel_tools
        && *tool_search_threshold == new.tool_search_threshold
        && *context_tokens == new.context_tokens
        && *approval == new.approval
        && *tools == new.tools
        && *enabled == new.mcp.enabled
        && *settings == new.mcp.settings
        && *held_back == new.mcp.held_back
}

fn ids(config: &Config) -> impl Iterator<Item = &AgentId> {
    config.agents.iter().map(|agent| &agent.id)
}

fn server_changes(
    old: &BTreeMap<ServerName, ServerConfig>,
    new: &BTreeMap<ServerName, ServerConfig>,
) -> BTreeMap<ServerName, ServerChange> {
    let change = |name: &ServerName| ServerChange::between(old.get(name), new.get(name));
    old.keys().chain(new.keys()).map(|name| (name.clone(), change(name))).collect()
}

/// Returns how each entry of a table changed.
fn tables<K: Ord + Clone, V: PartialEq>(
    old: &BTreeMap<K, V>,
    new: &BTreeMap<K, V>,
) -> BTreeMap<K, EntryChange> {
    let change = |name: &K| EntryChange::between(old.get(name), new.get(name), V::eq);
    old.keys().chain(new.keys()).map(|name| (name.clone(), change(name))).collect()
}
