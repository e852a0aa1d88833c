//! `metrics.sample`: numbers for a live view.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Parameters of `metrics.sample`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SampleParams {}

/// Result of `metrics.sample`. All counts are since the start of the gateway.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SampleResult {
    /// Timestamp, in milliseconds since 1970.
    pub ts: u64,
    /// Uptime of the gateway, in milliseconds.
    pub uptime_ms: u64,
    /// Connected clients.
    pub clients: u64,
    /// Sessions with a turn that runs or waits.
    pub sessions: u64,
    /// Turns that wait for another one of their session.
    pub waiting_turns: u64,
    /// Requests for approval that wait for an answer.
    pub approvals_pending: u64,
    /// The MCP servers, sorted by name.
    pub servers: Vec<ServerSample>,
    /// The tools that were called, of all sources.
    pub tools: Vec<ToolSample>,
}

/// An MCP server.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerSample {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: String,
    /// How often it was restarted.
    pub restarts: u64,
    /// Bytes of messages from it.
    pub received_bytes: u64,
    /// Bytes of messages to it.
    pub sent_bytes: u64,
    /// Calls of all its tools.
    #[serde(flatten)]
    pub calls: CallNumbers,
}

/// A tool that was called.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolSample {
    /// Kind of source: `mcp`, `native`, `client`, `openclaw`.
    pub source: String,
    /// MCP server; empty for other sources.
    pub server: String,
    /// Its name; `other` for the tools of a server beyond a bound.
    pub tool: String,
    /// Its calls.
    #[serde(flatten)]
    pub calls: CallNumbers,
}

/// Numbers about calls.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CallNumbers {
    /// All calls.
    pub calls: u64,
    /// Those without a result: errors, refusals, cancelled calls.
    pub errors: u64,
    /// Those that are being executed.
    pub in_flight: u64,
    /// Median duration of those that were executed, in milliseconds.
    pub p50_ms: Option<f64>,
    /// 95th percentile of the durations, in milliseconds.
    pub p95_ms: Option<f64>,
    /// Durations in microseconds (within 3 %), each with how often it occurred.
    pub durations: Vec<(u64, u64)>,
}
