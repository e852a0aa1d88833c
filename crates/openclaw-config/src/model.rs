//! The validated configuration that the rest of the program uses.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use openclaw_secrets::{SecretRef, SecretTemplate};

use crate::agent::AgentConfig;
use crate::files::FileContent;
use crate::gateway::{GatewayConfig, MetricsConfig};
use crate::name::ProviderId;
use crate::native::NativeToolSettings;
use crate::provider::ProviderConfig;
use crate::setting::Setting;
use crate::tool_policy::ToolPolicy;

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
