//! `mcp.*` (ours): MCP servers, their tools, resources and prompts.
//!
//! Results are what `openclaw mcp … --json` prints. The shape of a server's status belongs to the
//! MCP engine and stays raw here.

pub mod elicitation;
mod outcome;

pub use outcome::{Audience, Details, Failure, Finding, Link, Outcome, Part};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::config::Issue;

/// Parameters of `mcp.servers` and `mcp.reload`: all servers of an agent.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServersParams {
    /// Agent id; the default agent if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
}

/// Result of `mcp.servers`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServersResult {
    /// Agent id.
    pub agent: String,
    /// Number of servers that are ready, or start at first use.
    pub ready: u64,
    /// Required servers that are not ready.
    pub missing: Vec<String>,
    /// Status of each server.
    pub servers: Vec<Box<RawValue>>,
}

/// Parameters of `mcp.status` and `mcp.disconnect`: one server.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServerParams {
    /// Agent id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Server name.
    pub server: String,
}

/// Parameters of `mcp.connect`, which adds a remote server until the gateway stops, or reconnects a
/// disconnected one.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConnectParams {
    /// Agent id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Server URL. If absent, `server` names a known server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Server name; derived from the URL if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

/// Result of `mcp.connect` and `mcp.disconnect`. `mcp.status` returns the status alone.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerResult {
    /// Whether the request succeeded.
    pub ok: bool,
    /// Server status.
    pub server: Box<RawValue>,
}

/// Parameters of `mcp.auth`, which manages the login at a server.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AuthParams {
    /// Agent id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Server name.
    pub server: String,
    /// Action; `login` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<AuthAction>,
    /// With `login`: finishes the login that has begun, with the code, or with the URL that the
    /// browser was redirected to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// What to do with a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuthAction {
    /// Begin a login: the result has the URL that the user must visit. Ask for the status until it
    /// is no longer `pending`, or send the code.
    Login,
    /// Revoke the login and forget it.
    Logout,
    /// Return the status of the login.
    Status,
}

/// Result of `mcp.auth`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthResult {
    /// Whether the server can be used now.
    pub ok: bool,
    /// State: `authorized`, `pending` (a login has begun), `required`, `failed`, `none`.
    pub state: String,
    /// URL that the user must visit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Why the last login failed, or what a logout could not do. May quote a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The stored login.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantInfo>,
}

/// A stored login, without its tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GrantInfo {
    /// The authorization server. Untrusted.
    pub issuer: String,
    /// The granted scopes. Untrusted.
    pub scopes: Vec<String>,
    /// When the access token expires, in Unix milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<i64>,
    /// Whether it is renewed without the user.
    pub renewable: bool,
    /// How the client was registered: `configured`, `metadata-document`, `dynamic`.
    pub registration: String,
    /// Whether the token is bound to a key (DPoP).
    pub bound: bool,
    /// Where the key that encrypts it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_in: Option<String>,
}

/// Parameters of `mcp.refresh`, which reads the listings of servers again.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RefreshParams {
    /// Agent id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Server name; all servers if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

/// Result of `mcp.refresh`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefreshResult {
    /// Whether all listings could be read.
    pub ok: bool,
    /// One result per server.
    pub servers: Vec<Refreshed>,
}

/// Result of refreshing one server.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refreshed {
    /// Server name.
    pub name: String,
    /// Whether its listings could be read.
    pub ok: bool,
    /// Number of tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<u64>,
    /// Number of resources and resource templates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<u64>,
    /// Number of prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts: Option<u64>,
    /// New tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<Vec<String>>,
    /// Removed tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<Vec<String>>,
    /// Tools whose definition has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<Vec<String>>,
    /// Error message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How to fix it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Last lines that the server wrote to stderr.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_lines: Vec<String>,
}

/// Result of `mcp.reload`, which reads the configuration of the servers again.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReloadResult {
    /// Whether the new configuration is in effect.
    pub ok: bool,
    /// New servers.
    pub added: Vec<String>,
    /// Removed servers.
    pub removed: Vec<String>,
    /// Servers whose connection settings have changed, and that were restarted.
    pub restarted: Vec<String>,
    /// Servers whose other settings have changed, and were applied without a restart.
    pub updated: Vec<String>,
    /// Problems in the new configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub issues: Vec<Issue>,
}

/// Parameters of `mcp.tools`, `mcp.resources`, `mcp.prompts`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListParams {
    /// Agent id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Server name; all servers if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// For tools: only this one, by its model-facing name or its name on the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// For tools: whether to include the input schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<bool>,
    /// For tools: whether to return complete definitions, unprocessed, as the server sent them.
    #[serde(skip_serializing_if = "Option::is_none")]
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
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionRest {
    /// Annotations, such as hints about its effects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
    /// Schema of its structured results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Icons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icons: Option<Value>,
    /// How it is executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<Value>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
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
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallParams {
    /// Agent id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Server name; if absent, `tool` is a model-facing name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Tool name.
    pub tool: String,
    /// Arguments, an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Box<RawValue>>,
    /// More arguments, as strings: each is converted to the type in the tool's schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub texts: Option<BTreeMap<String, String>>,
    /// Session key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    /// Whether to approve the tool with this `fingerprint`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approve: Option<bool>,
    /// Expected fingerprint, from `mcp.tools`. If it differs, the tool is not called. Required to
    /// approve a changed tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Timeout in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Whether to return texts as a model sees them, inside their boundaries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<bool>,
    /// If given, `mcp.progress` events with this token report the progress of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress_token: Option<String>,
}

/// Payload of the event `mcp.progress`: the progress that a server reports for a call. Sent to the
/// caller only, at most a few times a second, with the latest state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressEvent {
    /// `progressToken` of the call.
    pub token: String,
    /// Progress so far.
    pub done: f64,
    /// Progress in percent, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    /// Progress message, one sanitized line. Untrusted: not for a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Result of `mcp.resources`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourcesResult {
    /// Resources as listed, each with its `server`.
    pub resources: Vec<Box<RawValue>>,
    /// Resource templates as listed, each with its `server`.
    pub templates: Vec<Box<RawValue>>,
    /// Unavailable servers, whose entries are missing here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
}

/// Parameters of `mcp.read`, which reads one resource.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReadParams {
    /// Agent id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Server name.
    pub server: String,
    /// Resource URI.
    pub uri: String,
    /// Whether to return texts as a model sees them, inside their boundaries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<bool>,
    /// Timeout in milliseconds, including the start of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
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
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PromptParams {
    /// Agent id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Server name.
    pub server: String,
    /// Prompt name.
    pub name: String,
    /// Arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<BTreeMap<String, String>>,
    /// Whether to return texts as a model sees them, inside their boundaries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<bool>,
    /// Timeout in milliseconds, including the start of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// Parameters of `mcp.complete`, which completes an argument of a prompt or resource template.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CompleteParams {
    /// Agent id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Server name; if absent, `of` is the name of a prompt's command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Prompt name or URI template.
    pub of: String,
    /// Argument name.
    pub argument: String,
    /// What was typed of its value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Values of other arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<BTreeMap<String, String>>,
}

/// Result of `mcp.complete`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompleteResult {
    /// Values, best first, each one printable line. Untrusted: not for a model.
    pub values: Vec<String>,
    /// How many values there are, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Whether there are more than these.
    pub has_more: bool,
}

/// Parameters of `mcp.logs`: a server's stderr output and lifecycle events.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LogsParams {
    /// Server name.
    pub server: String,
    /// Maximum number of lines, from the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<u32>,
}

/// Result of `mcp.logs`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogsResult {
    /// Server name.
    pub server: String,
    /// Lines, oldest first.
    pub lines: Vec<String>,
}

/// Payload of the event `mcp.server`: the state of a server has changed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerEvent {
    /// Agent id; several agents may share the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Server name.
    pub name: String,
    /// New state, as in the status.
    pub state: String,
    /// Error message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
