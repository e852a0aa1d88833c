//! The validated configuration: what the rest of the program works with.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use openclaw_secrets::{SecretRef, SecretTemplate};

use crate::agent::AgentConfig;
use crate::files::Content;
use crate::gateway::GatewayConfig;
use crate::name::{ProviderId, ServerName};
use crate::native::NativeTools;
use crate::provider::ProviderConfig;
use crate::server::ServerConfig;
use crate::source::Location;

/// A configuration without errors.
#[derive(Debug, Clone)]
pub struct Config {
    /// The file that it was read from; none for the built-in default.
    pub file: Option<PathBuf>,
    /// What was found in the file that was asked for, and in those that it includes.
    pub contents: BTreeMap<PathBuf, Content>,
    /// The agents; the first is the one that answers where none is named. Never empty.
    pub agents: Vec<AgentConfig>,
    /// Which tools may be used by all agents.
    pub tools: ToolPolicy,
    /// The tools that are built in.
    pub native_tools: NativeTools,
    /// The providers of models that the file has an entry for.
    pub models: BTreeMap<ProviderId, ProviderConfig>,
    /// The gateway.
    pub gateway: GatewayConfig,
    /// Which tools may be used through the gateway.
    pub gateway_tools: ToolPolicy,
    /// Limits of the sessions that an editor opens.
    pub acp: AcpLimits,
    /// Where secrets come from.
    pub secrets: openclaw_secrets::Settings,
    /// Where the values outside the agents come from, for people.
    pub origins: Vec<Setting>,
}

impl Config {
    /// The agent of that id, or the default one.
    pub fn agent(&self, id: Option<&str>) -> Option<&AgentConfig> {
        match id {
            Some(id) => self.agents.iter().find(|agent| agent.id.as_str() == id),
            None => self.agents.first(),
        }
    }

    /// Every reference to a secret in the configuration, and the settings that it stands in:
    /// `server.env.NAME`, `models.providers.ID.apiKey`, `gateway.auth.token`. Disabled servers need
    /// none.
    pub fn secret_references(&self) -> BTreeMap<SecretRef, BTreeSet<String>> {
        let mut found: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
        let mut note = |owner: &dyn std::fmt::Display, setting: &str, reference: &SecretRef| {
            found.entry(reference.clone()).or_default().insert(format!("{owner}.{setting}"));
        };
        for (id, provider) in &self.models {
            let owner = format!("models.providers.{id}");
            for (setting, template) in provider.credentials() {
                template.references().for_each(|reference| note(&owner, &setting, reference));
            }
        }
        for reference in self.gateway.token.iter().flat_map(SecretTemplate::references) {
            note(&"gateway", "auth.token", reference);
        }
        for agent in &self.agents {
            for (name, server) in agent.mcp.servers.iter().filter(|(_, server)| server.enabled) {
                for (setting, template) in server.connection.credentials() {
                    template.references().for_each(|reference| note(name, &setting, reference));
                }
            }
            for (name, held_back) in &agent.mcp.held_back {
                held_back
                    .references
                    .iter()
                    .for_each(|(reference, setting)| note(name, setting, reference));
            }
        }
        found
    }
}

/// The MCP servers of an agent.
#[derive(Debug, Clone)]
pub struct McpConfig {
    /// `false`: MCP is switched off as a whole, and no server is listed.
    pub enabled: bool,
    /// Settings for all servers.
    pub settings: McpSettings,
    /// The servers that can be started, the disabled ones among them.
    pub servers: BTreeMap<ServerName, ServerConfig>,
    /// The servers that cannot be started until something outside the file is put right.
    pub held_back: BTreeMap<ServerName, HeldBack>,
    /// The servers whose credentials stand in the file as they are (K4).
    pub plaintext_credentials: BTreeSet<ServerName>,
    /// Where the settings and servers come from, for people.
    pub origins: Origins,
}

/// Why a server cannot be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBack {
    /// Whether the program must not start without it.
    pub required: bool,
    /// Environment variables that its entry uses and that are not set.
    pub unset_variables: Vec<String>,
    /// The references to secrets in its entry, each with its setting.
    pub references: Vec<(SecretRef, String)>,
}

/// Settings for all MCP servers of an agent (C5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpSettings {
    /// How often to look for new tools; none: never.
    pub tool_discovery_interval: Option<Duration>,
    /// How many servers may be connecting at once.
    pub max_concurrent_servers: usize,
    /// How tools are named for the model.
    pub tool_naming: ToolNaming,
    /// Whether to log every MCP message.
    pub debug: bool,
    /// The most that progress notifications may prolong a call.
    pub call_timeout_cap: Duration,
}

/// A template for the names of tools: `mcp_{server}_{tool}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolNaming(String);

impl ToolNaming {
    /// Checks a template: letters, digits, `_`, `-`, `{server}` and, once, `{tool}`.
    pub fn new(template: impl Into<String>) -> Option<Self> {
        let template = template.into();
        let rest = template.replacen("{tool}", "", 1);
        let is_complete = rest.len() < template.len();
        let rest = rest.replacen("{server}", "", 1);
        let is_plain = rest.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        (is_complete && is_plain).then_some(Self(template))
    }

    /// The template.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for ToolNaming {
    fn default() -> Self {
        Self("mcp_{server}_{tool}".to_owned())
    }
}

/// Which tools may be used, as glob patterns on their names. Deny beats allow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolPolicy {
    /// Only these, if there are any.
    pub allow: Option<Vec<String>>,
    /// Not these.
    pub deny: Vec<String>,
}

/// Limits of the sessions that an editor opens (P5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcpLimits {
    /// MCP servers a session.
    pub max_servers: usize,
    /// MCP tools a session.
    pub max_tools: usize,
}

/// Where the values of an agent's MCP configuration come from.
#[derive(Debug, Clone, Default)]
pub struct Origins {
    /// The settings for all servers.
    pub settings: Vec<Setting>,
    /// The settings of each server.
    pub servers: BTreeMap<ServerName, Vec<Setting>>,
}

/// A value as it may be shown, and where it comes from.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Setting {
    /// The key within its section: `timeout`, `env.TOKEN`.
    pub key: String,
    /// The value, with credentials redacted.
    pub value: serde_json::Value,
    /// Where it comes from.
    pub origin: Origin,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// It follows from another key.
    Inferred {
        /// That key.
        from: &'static str,
    },
    /// A file says so.
    File {
        /// Where.
        location: Location,
        /// Under which key.
        path: String,
    },
}
