//! Lists of servers, their tools, and calls: `mcp.tools`, `mcp.call`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

/// Parameters of `mcp.tools`, `mcp.resources`, `mcp.prompts`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListParams {
    /// Agent id.
    pub agent_id: Option<String>,
    /// Server name; all servers if absent.
    pub server: Option<String>,
    /// For tools: only this one, by its model-facing name or its name on the server.
    pub tool: Option<String>,
    /// For tools: whether to include the input schema.
    pub schema: Option<bool>,
    /// For tools: whether to return complete definitions, unprocessed, as the server sent them.
    pub raw: Option<bool>,
}

/// Result of `mcp.tools`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolsResult {
    /// Tools.
    pub tools: Vec<Tool>,
    /// Tools that cannot be used.
    pub left_out: Vec<LeftOut>,
    /// Unavailable servers, whose entries are missing here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
}

/// A tool of a server.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// Model-facing name.
    pub name: String,
    /// Server name.
    pub server: String,
    /// Name on the server.
    pub tool: String,
    /// Title, as given by the server.
    pub title: Option<String>,
    /// Description, as given by the server.
    pub description: Option<String>,
    /// Side effects.
    pub effect: Effect,
    /// Rule that denies it.
    pub denied_by: Option<String>,
    /// Whether its definition has changed since it was first seen or approved.
    pub changed: bool,
    /// How it has changed, with its schema: lines that begin with `-` or `+`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    /// Hash of its definition, which approvals refer to.
    pub fingerprint: String,
    /// Why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unusable: Option<String>,
    /// Input schema, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// The rest of its definition, if requested.
    #[serde(flatten)]
    pub rest: DefinitionRest,
}

/// What else a server says about a tool, as the server sent it. Untrusted.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionRest {
    /// Annotations, such as hints about its effects.
    pub annotations: Option<Value>,
    /// Schema of its structured results.
    pub output_schema: Option<Value>,
    /// Icons.
    pub icons: Option<Value>,
    /// How it is executed.
    pub execution: Option<Value>,
    /// Metadata.
    #[serde(rename = "_meta")]
    pub meta: Option<Value>,
    /// Members that the protocol does not define.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub other: Map<String, Value>,
    /// Number of members that are too large to be kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted_members: usize,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Side effects of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// It changes nothing.
    ReadOnly,
    /// It may destroy something.
    Destructive,
    /// Not declared.
    Unknown,
}

/// An entry in a server's listing that cannot be used.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    /// Server name.
    pub server: String,
    /// Entry name.
    pub name: String,
    /// Why it cannot be used.
    pub reason: String,
}

/// An unavailable server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Missing {
    /// Server name.
    pub server: String,
    /// One-line error message.
    pub error: String,
}

/// Parameters of `mcp.call`, which calls one tool once.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallParams {
    /// Agent id.
    pub agent_id: Option<String>,
    /// Server name; if absent, `tool` is a model-facing name.
    pub server: Option<String>,
    /// Tool name.
    pub tool: String,
    /// Arguments, an object.
    pub args: Option<Box<RawValue>>,
    /// More arguments, as strings: each is converted to the type in the tool's schema.
    pub texts: Option<BTreeMap<String, String>>,
    /// Session key.
    pub session_key: Option<String>,
    /// Whether to approve the tool with this `fingerprint`.
    pub approve: Option<bool>,
    /// Expected fingerprint, from `mcp.tools`. If it differs, the tool is not called. Required to
    /// approve a changed tool.
    pub fingerprint: Option<String>,
    /// Timeout in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Whether to return texts as a model sees them, inside their boundaries.
    pub raw: Option<bool>,
    /// If given, `mcp.progress` events with this token report the progress of the call.
    pub progress_token: Option<String>,
}

/// Payload of the event `mcp.progress`: the progress that a server reports for a call. Sent to the
/// caller only, at most a few times a second, with the latest state.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressEvent {
    /// `progressToken` of the call.
    pub token: String,
    /// Progress so far.
    pub done: f64,
    /// Progress in percent, if known.
    pub percent: Option<f64>,
    /// Progress message, one sanitized line. Untrusted: not for a model.
    pub message: Option<String>,
}
