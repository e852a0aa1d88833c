//! The MCP servers of an agent, and the settings for all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use openclaw_secrets::SecretRef;

use crate::name::ServerName;
use crate::server::ServerConfig;
use crate::setting::Setting;

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

/// Where the values of an agent's MCP configuration come from.
#[derive(Debug, Clone, Default)]
pub struct Origins {
    /// The settings for all servers.
    pub settings: Vec<Setting>,
    /// The settings of each server.
    pub servers: BTreeMap<ServerName, Vec<Setting>>,
}
