//! The validated configuration that the rest of the program uses.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use openclaw_secrets::{SecretRef, SecretTemplate};

use crate::agent::AgentConfig;
use crate::files::FileContent;
use crate::gateway::{GatewayConfig, MetricsConfig};
use crate::name::{ProviderId, ServerName};
use crate::native::NativeToolSettings;
use crate::provider::ProviderConfig;
use crate::server::ServerConfig;
use crate::source::Location;

/// A configuration without errors.
#[derive(Debug, Clone)]
pub struct Config {
    /// The file it was read from; `None` for the built-in default.
    pub file: Option<PathBuf>,
    /// Whether the requested file and each included file has content.
    pub contents: BTreeMap<PathBuf, FileContent>,
    /// The agents, never empty; the first is the default.
    pub agents: Vec<AgentConfig>,
    /// The tool policy for all agents.
    pub tools: ToolPolicy,
    /// The built-in tools.
    pub native_tools: NativeToolSettings,
    /// The model providers configured in the file.
    pub models: BTreeMap<ProviderId, ProviderConfig>,
    /// The gateway.
    pub gateway: GatewayConfig,
    /// The tool policy for calls through the gateway.
    pub gateway_tools: ToolPolicy,
    /// The gateway's metrics.
    pub metrics: MetricsConfig,
    /// Settings of editor sessions.
    pub acp: AcpSettings,
    /// Settings of the secret providers.
    pub secrets: openclaw_secrets::SecretSettings,
    /// Where the values outside the agents come from, for display.
    pub origins: Vec<Setting>,
}

impl Config {
    /// Returns the agent with this id, or the default agent if `id` is `None`.
    pub fn agent(&self, id: Option<&str>) -> Option<&AgentConfig> {
        match id {
            Some(id) => self.agents.iter().find(|agent| agent.id.as_str() == id),
            None => self.agents.first(),
        }
    }

    /// Returns every secret reference in the configuration, with the settings that use it:
    /// `server.env.NAME`, `models.providers.ID.apiKey`, `gateway.auth.token`, `metrics.token`.
    /// Disabled servers are skipped.
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
        let remote_token = self.gateway.remote.as_ref().and_then(|remote| remote.token.as_ref());
        let tokens = [
            ("gateway", "auth.token", self.gateway.token.as_ref()),
            ("metrics", "token", self.metrics.token.as_ref()),
            ("gateway", "remote.token", remote_token),
        ];
        for (owner, setting, token) in tokens {
            for reference in token.into_iter().flat_map(SecretTemplate::references) {
                note(&owner, setting, reference);
            }
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

/// The MCP servers and settings of an agent.
#[derive(Debug, Clone)]
pub struct McpConfig {
    /// `false` if MCP is disabled as a whole; no server is listed then.
    pub enabled: bool,
    /// Settings for all servers.
    pub settings: McpSettings,
    /// The servers that can be started, including disabled ones.
    pub servers: BTreeMap<ServerName, ServerConfig>,
    /// The servers that cannot start until an environment variable is set.
    pub held_back: BTreeMap<ServerName, HeldBack>,
    /// The servers with plaintext credentials in the file (K4).
    pub plaintext_credentials: BTreeSet<ServerName>,
    /// Where the settings and servers come from, for display.
    pub origins: Origins,
}

/// Why a server cannot start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBack {
    /// Whether the program refuses to start without it.
    pub required: bool,
    /// The unset environment variables that its entry uses.
    pub unset_variables: Vec<String>,
    /// The secret references in its entry, each with its setting.
    pub references: Vec<(SecretRef, String)>,
}

/// Settings for all MCP servers of an agent (C5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpSettings {
    /// The interval of tool discovery; `None` disables it.
    pub tool_discovery_interval: Option<Duration>,
    /// How many servers may connect concurrently.
    pub max_concurrent_servers: usize,
    /// The template for the tool names that the model sees.
    pub tool_naming: ToolNaming,
    /// Whether to log every MCP message. Accepted, but without effect yet.
    pub debug: bool,
    /// The maximum duration of a call whose timeout is extended by progress notifications.
    pub call_timeout_cap: Duration,
}

/// A template for the names of tools: `mcp_{server}_{tool}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolNaming(String);

impl ToolNaming {
    /// Validates a template: letters, digits, `_`, `-`, one `{tool}` and at most one `{server}`.
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

/// Which tools may be used, as glob patterns on their names. Deny takes precedence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolPolicy {
    /// If set, only these tools.
    pub allow: Option<Vec<String>>,
    /// Never these tools.
    pub deny: Vec<String>,
}

/// Settings of editor sessions (P5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcpSettings {
    /// MCP servers per session.
    pub max_servers: usize,
    /// MCP tools per session.
    pub max_tools: usize,
    /// Whether servers of an editor may use the user's stored logins.
    pub use_logins: bool,
}

/// Where the values of an agent's MCP configuration come from.
#[derive(Debug, Clone, Default)]
pub struct Origins {
    /// The settings for all servers.
    pub settings: Vec<Setting>,
    /// The settings of each server.
    pub servers: BTreeMap<ServerName, Vec<Setting>>,
}

/// A value that is safe to display, and where it comes from.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Setting {
    /// The key within its section: `timeout`, `env.TOKEN`.
    pub key: String,
    /// The value, with credentials redacted.
    pub value: serde_json::Value,
    /// Where it comes from.
    pub origin: SettingOrigin,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum SettingOrigin {
    /// The default value.
    Default,
    /// Inferred from another key.
    Inferred {
        /// The other key.
        from: &'static str,
    },
    /// Set in a file.
    File {
        /// The position in the file.
        location: Location,
        /// The path of the key.
        path: String,
    },
}
