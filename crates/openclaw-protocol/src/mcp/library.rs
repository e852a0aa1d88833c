//! Resources and prompts: `mcp.resources`, `mcp.read`, `mcp.prompts`, `mcp.prompt`, `mcp.complete`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

use super::Missing;

/// Result of `mcp.resources`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourcesResult {
    /// Resources as listed, each with its `server`.
    pub resources: Vec<Box<RawValue>>,
    /// Resource templates as listed, each with its `server`.
    pub templates: Vec<Box<RawValue>>,
    /// Skills as listed, each with its `server`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Box<RawValue>>,
    /// Unavailable servers, whose entries are missing here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
}

/// Parameters of `mcp.read`, which reads one resource.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadParams {
    /// Agent id.
    pub agent_id: Option<String>,
    /// Server name.
    pub server: String,
    /// Resource URI.
    pub uri: String,
    /// Whether to return texts as a model sees them, inside their boundaries.
    pub raw: Option<bool>,
    /// Timeout in milliseconds, including the start of the server.
    pub timeout_ms: Option<u64>,
}

/// Result of `mcp.prompts`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptsResult {
    /// Prompts as listed, each with its `server`.
    pub prompts: Vec<Box<RawValue>>,
    /// Unavailable servers, whose entries are missing here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
}

/// Parameters of `mcp.prompt`, which renders one prompt.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptParams {
    /// Agent id.
    pub agent_id: Option<String>,
    /// Server name.
    pub server: String,
    /// Prompt name.
    pub name: String,
    /// Arguments.
    pub args: Option<BTreeMap<String, String>>,
    /// Whether to return texts as a model sees them, inside their boundaries.
    pub raw: Option<bool>,
    /// Timeout in milliseconds, including the start of the server.
    pub timeout_ms: Option<u64>,
}

/// Parameters of `mcp.complete`, which completes an argument of a prompt or resource template.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompleteParams {
    /// Agent id.
    pub agent_id: Option<String>,
    /// Server name; if absent, `of` is the name of a prompt's command.
    pub server: Option<String>,
    /// Prompt name or URI template.
    pub of: String,
    /// Argument name.
    pub argument: String,
    /// What was typed of its value.
    pub value: Option<String>,
    /// Values of other arguments.
    pub args: Option<BTreeMap<String, String>>,
}

/// Result of `mcp.complete`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompleteResult {
    /// Values, best first, each one printable line. Untrusted: not for a model.
    pub values: Vec<String>,
    /// How many values there are, if known.
    pub total: Option<u64>,
    /// Whether there are more than these.
    pub has_more: bool,
}
