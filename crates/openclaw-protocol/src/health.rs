//! `health` and `status`: the state of the gateway.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

/// Parameters of `health`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HealthParams {
    /// Whether to run the checks again.
    pub probe: Option<bool>,
    /// Whether to include sensitive information.
    pub include_sensitive: Option<bool>,
}

/// Result of `health`, and part of `hello-ok`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// `true` or absent.
    pub ok: Option<bool>,
    /// Timestamp, in milliseconds since 1970.
    pub ts: Option<u64>,
    /// Duration of the check, in milliseconds.
    pub duration_ms: Option<u64>,
    /// Agent used when a request names none.
    pub default_agent_id: Option<String>,
    /// Whether configuration files are watched.
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
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusResult {
    /// Version of the gateway.
    pub runtime_version: Option<String>,
    /// Process id.
    pub pid: Option<u32>,
    /// Uptime in milliseconds.
    pub uptime_ms: Option<u64>,
    /// Number of connected clients.
    pub connections: Option<u64>,
    /// Agents.
    pub agents: Option<Box<RawValue>>,
    /// Sessions.
    pub sessions: Option<Box<RawValue>>,
    /// MCP servers.
    pub mcp: Option<Box<RawValue>>,
}
