//! `tools.*`: the tools of agents; and calls of tools that a client lent (`node.invoke.*`).

use openclaw_trace::SpanContext;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

/// Parameters of `tools.catalog`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogParams {
    /// Agent id.
    pub agent_id: Option<String>,
    /// Whether to include tools of plugins; for us, those of MCP servers.
    pub include_plugins: Option<bool>,
}

/// Result of `tools.catalog`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogResult {
    /// Agent id.
    pub agent_id: String,
    /// Selectable sets of tools.
    pub profiles: Vec<Profile>,
    /// Tools, grouped by source.
    pub groups: Vec<Group>,
}

/// A selectable set of tools.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Profile {
    /// Profile id.
    pub id: ProfileId,
    /// Display name.
    pub label: String,
}

/// Ids of profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProfileId {
    /// Very few tools.
    Minimal,
    /// Tools for programming.
    Coding,
    /// Tools for messaging.
    Messaging,
    /// All tools.
    Full,
}

/// Tools of one source.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// Group id; for an MCP server, its name.
    pub id: String,
    /// Display name.
    pub label: String,
    /// Source.
    pub source: Source,
    /// Plugin id; for an MCP server, its name.
    pub plugin_id: Option<String>,
    /// Tools.
    pub tools: Vec<Entry>,
}

/// Where tools come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Built in.
    Core,
    /// A plugin or an MCP server.
    Plugin,
}

/// A tool in the catalogue.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Model-facing name.
    pub id: String,
    /// Display name.
    pub label: String,
    /// What it does.
    pub description: String,
    /// Source.
    pub source: Source,
    /// Plugin or server name.
    pub plugin_id: Option<String>,
    /// Whether it must be enabled explicitly.
    pub optional: Option<bool>,
    /// Risk level.
    pub risk: Option<Risk>,
    /// Tags.
    pub tags: Option<Vec<String>>,
    /// Profiles that include it.
    pub default_profiles: Vec<ProfileId>,
}

/// Risk level of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    /// It changes nothing.
    Low,
    /// It may change something.
    Medium,
    /// It may destroy something.
    High,
}

/// Parameters of `tools.invoke`, which calls one tool once.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InvokeParams {
    /// Tool name.
    pub name: String,
    /// Arguments, an object.
    pub args: Option<Box<RawValue>>,
    /// Session key.
    pub session_key: Option<String>,
    /// Agent id.
    pub agent_id: Option<String>,
    /// Whether the caller has already confirmed the call.
    pub confirm: Option<bool>,
    /// The folder to work in (ours), as in `chat.send`.
    pub workspace: Option<String>,
    /// Deduplicates requests: a repeated key does not call the tool again.
    pub idempotency_key: Option<String>,
    /// `direct-operator` if a user makes the request.
    pub conversation_read_origin: Option<String>,
}

/// Result of `tools.invoke`.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InvokeResult {
    /// Whether the tool was called and succeeded.
    pub ok: bool,
    /// Tool name.
    pub tool_name: String,
    /// Output of the tool.
    pub output: Option<Box<RawValue>>,
    /// Whether the call needs an approval first.
    pub requires_approval: Option<bool>,
    /// Id of that approval.
    pub approval_id: Option<String>,
    /// `core`, `plugin`, `mcp`, `channel`.
    pub source: Option<String>,
    /// Error.
    pub error: Option<InvokeError>,
}

/// The error of a call.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InvokeError {
    /// Error code.
    pub code: String,
    /// Message for users.
    pub message: String,
    /// Details.
    pub details: Option<Box<RawValue>>,
}

/// Payload of the event `node.invoke.request`: a call of a tool that this client lent.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InvokeRequestEvent {
    /// Call id.
    pub id: String,
    /// Connection id of the called client.
    pub node_id: String,
    /// Tool name.
    pub command: String,
    /// Arguments, as JSON text.
    #[serde(rename = "paramsJSON")]
    pub params_json: Option<String>,
    /// Timeout in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Deduplicates calls: a repeated key must not run the tool again.
    pub idempotency_key: Option<String>,
    /// The span of the call.
    pub traceparent: Option<String>,
    /// What tracing systems pass to each other.
    pub tracestate: Option<String>,
    /// What applications pass to each other.
    pub baggage: Option<String>,
}

impl InvokeRequestEvent {
    /// The span of the call; `None` if there is no valid one.
    #[must_use]
    pub fn trace(&self) -> Option<SpanContext> {
        let context = SpanContext::parse(self.traceparent.as_deref()?)?;
        Some(context.carrying(self.tracestate.as_deref(), self.baggage.as_deref()))
    }
}

/// Parameters of `node.invoke.result`: the result of such a call.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InvokeResultParams {
    /// Call id.
    pub id: String,
    /// Connection id of the called client.
    pub node_id: String,
    /// Whether the call succeeded.
    pub ok: bool,
    /// Output of the tool. `{"content": [{"type": "text", "text"}, …]}` is taken as blocks (`text`,
    /// `image` or `audio` with `mimeType` and `data`), anything else as text.
    pub payload: Option<Box<RawValue>>,
    /// Output of the tool, as JSON text.
    #[serde(rename = "payloadJSON")]
    pub payload_json: Option<String>,
    /// Error.
    pub error: Option<NodeError>,
}

/// The error of a client's tool.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeError {
    /// Error code.
    pub code: Option<String>,
    /// Message for users.
    pub message: Option<String>,
}

/// Parameters of `node.invoke.progress`: the progress of such a call.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InvokeProgressParams {
    /// Call id.
    pub invoke_id: String,
    /// Connection id of the called client.
    pub node_id: String,
    /// Number of the report.
    pub seq: u64,
    /// JSON text of an [`InvokeProgress`]; any other text is a message.
    pub chunk: String,
}

/// The progress of a call.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct InvokeProgress {
    /// Progress so far.
    pub progress: f64,
    /// Total, if known.
    pub total: Option<f64>,
    /// Message for users.
    pub message: Option<String>,
}

/// Result of `node.invoke.result` and `node.invoke.progress`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InvokeResultReceived {
    /// Always `true`.
    pub ok: bool,
}

/// Parameters of `tools.effective`: the tools of a session.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveParams {
    /// Agent id.
    pub agent_id: Option<String>,
    /// Session key.
    pub session_key: String,
}

/// Result of `tools.effective`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveResult {
    /// Agent id.
    pub agent_id: String,
    /// Always `full`.
    pub profile: String,
    /// Tools by source.
    pub groups: Vec<EffectiveGroup>,
}

/// The tools of a source.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveGroup {
    /// `core` or `mcp`.
    pub id: String,
    /// Display name.
    pub label: String,
    /// Like `id`.
    pub source: String,
    /// Tools.
    pub tools: Vec<EffectiveTool>,
}

/// A tool of a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveTool {
    /// Tool name.
    pub id: String,
    /// Display name.
    pub label: String,
    /// What it does.
    pub description: String,
    /// What it does, in full.
    pub raw_description: String,
    /// `core` or `mcp`.
    pub source: String,
}
