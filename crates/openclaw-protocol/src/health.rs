//! `health` and `status`: how the gateway is.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// `health`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HealthParams {
    /// Whether to look again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<bool>,
    /// Whether to tell what not everybody may know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_sensitive: Option<bool>,
}

/// What `health` answers, and part of the greeting.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// True, or left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// When, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ts: Option<u64>,
    /// How long it took to find out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Who is spoken to if nobody is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_agent_id: Option<String>,
    /// Whether files are watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_reload: Option<ConfigReload>,
}

/// Whether files are watched.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigReload {
    /// Whether they are.
    pub hot_reload_status: HotReload,
}

/// Whether a changed configuration is taken over at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HotReload {
    /// It is.
    Active,
    /// It is not.
    Disabled,
}

/// `status`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StatusParams {}

/// What `status` answers. The Node gateway's answer has other fields, and this version.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusResult {
    /// The gateway's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_version: Option<String>,
    /// Its process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// For how long it has run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uptime_ms: Option<u64>,
    /// How many clients are connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<u64>,
    /// Its agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<Box<RawValue>>,
    /// Its sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<Box<RawValue>>,
    /// Its MCP servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp: Option<Box<RawValue>>,
}
