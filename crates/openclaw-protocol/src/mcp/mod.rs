//! `mcp.*` (ours): MCP servers, their tools, resources and prompts.
//!
//! Results are what `openclaw mcp … --json` prints. The shape of a server's status belongs to the
//! MCP engine and stays raw here.

pub mod elicitation;
mod library;
mod outcome;
mod tools;

pub use library::{
    CompleteParams, CompleteResult, PromptParams, PromptsResult, ReadParams, ResourcesResult,
};
pub use outcome::{Audience, Details, Failure, Finding, Link, Outcome, Part};
pub use tools::{
    CallParams, DefinitionRest, Effect, LeftOut, ListParams, Missing, ProgressEvent, Tool,
    ToolsResult,
};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

use crate::config::Issue;

/// Parameters of `mcp.servers` and `mcp.reload`: all servers of an agent.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServersParams {
    /// Agent id; the default agent if absent.
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
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerParams {
    /// Agent id.
    pub agent_id: Option<String>,
    /// Server name.
    pub server: String,
}

/// Parameters of `mcp.connect`, which adds a remote server until the gateway stops, or reconnects a
/// disconnected one.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectParams {
    /// Agent id.
    pub agent_id: Option<String>,
    /// Server URL. If absent, `server` names a known server.
    pub url: Option<String>,
    /// Server name; derived from the URL if absent.
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
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthParams {
    /// Agent id.
    pub agent_id: Option<String>,
    /// Server name.
    pub server: String,
    /// Action; `login` if absent.
    pub action: Option<AuthAction>,
    /// With `login`: finishes the login that has begun, with the code, or with the URL that the
    /// browser was redirected to.
    pub code: Option<String>,
    /// With `login`: scopes to request besides the usual ones and those granted before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// With `login`: confirms this authorization server first, of a result with the state
    /// `unconfirmed`.
    pub issuer: Option<String>,
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
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthResult {
    /// Whether the server can be used now.
    pub ok: bool,
    /// State: `authorized`, `pending` (a login has begun), `required`, `failed`, `none`, `unconfirmed`
    /// (the user must confirm the `issuer`, for the reason in `message`).
    pub state: String,
    /// URL that the user must visit.
    pub url: Option<String>,
    /// Why the last login failed, or what a logout could not do. May quote a server.
    pub message: Option<String>,
    /// The authorization server to confirm. Untrusted.
    pub issuer: Option<String>,
    /// The stored login.
    pub grant: Option<GrantInfo>,
}

/// A stored login, without its tokens.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GrantInfo {
    /// The authorization server. Untrusted.
    pub issuer: String,
    /// The granted scopes. Untrusted.
    pub scopes: Vec<String>,
    /// When the access token expires, in Unix milliseconds.
    pub expires_at_ms: Option<i64>,
    /// Whether it is renewed without the user.
    pub renewable: bool,
    /// How the client was registered: `configured`, `metadata-document`, `dynamic`.
    pub registration: String,
    /// Whether the token is bound to a key (DPoP).
    pub bound: bool,
    /// Where the key that encrypts it is kept.
    pub key_in: Option<String>,
}

/// Parameters of `mcp.refresh`, which reads the listings of servers again.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefreshParams {
    /// Agent id.
    pub agent_id: Option<String>,
    /// Server name; all servers if absent.
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
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refreshed {
    /// Server name.
    pub name: String,
    /// Whether its listings could be read.
    pub ok: bool,
    /// Number of tools.
    pub tools: Option<u64>,
    /// Number of resources and resource templates.
    pub resources: Option<u64>,
    /// Number of prompts.
    pub prompts: Option<u64>,
    /// New tools.
    pub added: Option<Vec<String>>,
    /// Removed tools.
    pub removed: Option<Vec<String>>,
    /// Tools whose definition has changed.
    pub changed: Option<Vec<String>>,
    /// Error message.
    pub error: Option<String>,
    /// Whether a login would help.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_login: bool,
    /// How to fix it.
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

/// Parameters of `mcp.logs`: a server's stderr output and lifecycle events.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogsParams {
    /// Server name.
    pub server: String,
    /// Maximum number of lines, from the end.
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
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerEvent {
    /// Agent id; several agents may share the server.
    pub agent_id: Option<String>,
    /// Server name.
    pub name: String,
    /// New state, as in the status.
    pub state: String,
    /// Error message.
    pub error: Option<String>,
}
