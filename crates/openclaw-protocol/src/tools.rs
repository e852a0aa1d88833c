//! `tools.*`: what agents can use; and calls of tools that a client lent (`node.invoke.*`).

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// `tools.catalog`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CatalogParams {
    /// Whose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Also those of plugins; for us, those of MCP servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_plugins: Option<bool>,
}

/// What `tools.catalog` answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogResult {
    /// Whose.
    pub agent_id: String,
    /// Sets of tools that can be chosen.
    pub profiles: Vec<Profile>,
    /// The tools, by where they come from.
    pub groups: Vec<Group>,
}

/// A set of tools that can be chosen.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Profile {
    /// Which.
    pub id: ProfileId,
    /// What it is called.
    pub label: String,
}

/// The sets of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProfileId {
    /// Hardly any.
    Minimal,
    /// For programs.
    Coding,
    /// For messages.
    Messaging,
    /// All.
    Full,
}

/// Tools from one place.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// Its id; of an MCP server, its name.
    pub id: String,
    /// What it is called.
    pub label: String,
    /// Where it comes from.
    pub source: Source,
    /// Which plugin; of an MCP server, its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin_id: Option<String>,
    /// Its tools.
    pub tools: Vec<Entry>,
}

/// Where tools come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The program.
    Core,
    /// A plugin or an MCP server.
    Plugin,
}

/// A tool, as a catalogue shows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The name that models use.
    pub id: String,
    /// What it is called.
    pub label: String,
    /// What it does.
    pub description: String,
    /// Where it comes from.
    pub source: Source,
    /// Which plugin or server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin_id: Option<String>,
    /// Whether it must be switched on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
    /// How much harm it can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risk>,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// The sets that it is in.
    pub default_profiles: Vec<ProfileId>,
}

/// How much harm a tool can do.
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

/// `tools.invoke`: one tool, once.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InvokeParams {
    /// Its name.
    pub name: String,
    /// Its arguments, an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Box<RawValue>>,
    /// For which conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    /// Of whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Whether the caller has decided already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm: Option<bool>,
    /// Sent twice, it is called once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// `direct-operator`, if a person asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_read_origin: Option<String>,
}

/// What `tools.invoke` answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InvokeResult {
    /// Whether it was called, and went well.
    pub ok: bool,
    /// Its name.
    pub tool_name: String,
    /// What it gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Box<RawValue>>,
    /// Whether somebody must decide first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires_approval: Option<bool>,
    /// What they decide about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
    /// `core`, `plugin`, `mcp`, `channel`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<InvokeError>,
}

/// What went wrong in a call.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InvokeError {
    /// Which kind.
    pub code: String,
    /// For people.
    pub message: String,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<RawValue>>,
}

/// The event `node.invoke.request`: a tool that this client lent is called.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InvokeRequestEvent {
    /// The call.
    pub id: String,
    /// Who is called: the id of the connection.
    pub node_id: String,
    /// The name of the tool.
    pub command: String,
    /// Its arguments, JSON as text.
    #[serde(rename = "paramsJSON", skip_serializing_if = "Option::is_none")]
    pub params_json: Option<String>,
    /// How long it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Sent twice, it is called once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// `node.invoke.result`: what such a call gave.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InvokeResultParams {
    /// The call.
    pub id: String,
    /// Who was called.
    pub node_id: String,
    /// Whether it went well.
    pub ok: bool,
    /// What it gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Box<RawValue>>,
    /// The same, as text.
    #[serde(rename = "payloadJSON", skip_serializing_if = "Option::is_none")]
    pub payload_json: Option<String>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<NodeError>,
}

/// What went wrong in a client's tool.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeError {
    /// Which kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What `node.invoke.result` answers.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InvokeResultReceived {
    /// True.
    pub ok: bool,
}
