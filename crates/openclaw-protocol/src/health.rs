//! `health` and `status`: the state of the gateway.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Parameters of `health`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HealthParams {
    /// Whether to run the checks again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<bool>,
    /// Whether to include sensitive information.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_sensitive: Option<bool>,
}

/// Result of `health`, and part of `hello-ok`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// `true` or absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// Timestamp, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ts: Option<u64>,
    /// Duration of the check, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Agent used when a request names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_agent_id: Option<String>,
    /// Whether configuration files are watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_reload: Option<ConfigReload>,
}

/// Whether configuration files are watched.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigReload {
    /// Status of hot reload.
    pub hot_reload_status: HotReload,
}

/// Whether configuration changes are applied immediately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HotReload {
    /// They are.
    Active,
    /// They are not.
    Disabled,
}

/// Parameters of `status`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusParams {}

/// Result of `status`. The result of the Node gateway has the same version field and other fields.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusResult {
    /// Version of the gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_version: Option<String>,
    /// Process id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Uptime in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uptime_ms: Option<u64>,
    /// Number of connected clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<u64>,
    /// Agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<Box<RawValue>>,
    /// Sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<Box<RawValue>>,
    /// MCP servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp: Option<Box<RawValue>>,
}
