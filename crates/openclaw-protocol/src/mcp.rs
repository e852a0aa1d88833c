//! `mcp.*` (ours): MCP servers, their tools, resources and prompts.
//!
//! Answers are what `openclaw mcp … --json` prints. What a server's status is made of belongs to the MCP
//! engine and stays raw here.

pub mod elicitation;
mod outcome;

pub use outcome::{Details, Failure, Finding, Link, Outcome, Part};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::config::Issue;

/// `mcp.servers`, and `mcp.reload`: all servers of an agent.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServersParams {
    /// Whose; the default agent's, if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
}

/// What `mcp.servers` answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServersResult {
    /// Whose.
    pub agent: String,
    /// How many are ready, or wait for their first use.
    pub ready: u64,
    /// Those that must be there, and are not ready.
    pub missing: Vec<String>,
    /// A status each.
    pub servers: Vec<Box<RawValue>>,
}

/// `mcp.status`, `mcp.disconnect`: one server.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServerParams {
    /// Whose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Its name.
    pub server: String,
}

/// `mcp.connect`: a service that is used from now on, until the gateway ends; or a server that was
/// disconnected.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConnectParams {
    /// Whose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Where it is. If left out, `server` is one that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Its name; if left out, one that follows from the address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

/// What `mcp.connect` and `mcp.disconnect` answer. `mcp.status` answers the status alone.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerResult {
    /// Whether it is as was asked for.
    pub ok: bool,
    /// Its status.
    pub server: Box<RawValue>,
}

/// `mcp.auth`: logging in to a server.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AuthParams {
    /// Whose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Its name.
    pub server: String,
    /// What to do; to log in, if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<AuthAction>,
}

/// What to do about a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuthAction {
    /// Log in.
    Login,
    /// Forget it.
    Logout,
    /// Tell how it is.
    Status,
}

/// What `mcp.auth` answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthResult {
    /// Whether the server can be used now.
    pub ok: bool,
    /// How it is: `authorized`, `pending`, `none`.
    pub state: String,
    /// Where a person must go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// `mcp.refresh`: lists are read again.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RefreshParams {
    /// Whose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Its name; all, if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

/// What `mcp.refresh` answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefreshResult {
    /// Whether all could be read.
    pub ok: bool,
    /// What came of it.
    pub servers: Vec<Refreshed>,
}

/// What came of reading one server's lists again.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refreshed {
    /// Its name.
    pub name: String,
    /// Whether they could be read.
    pub ok: bool,
    /// How many tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<u64>,
    /// How many resources and families of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<u64>,
    /// How many prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts: Option<u64>,
    /// Tools that are new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<Vec<String>>,
    /// Tools that are gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<Vec<String>>,
    /// Tools that say something else than before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<Vec<String>>,
    /// Why they could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What the server wrote to stderr last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_lines: Vec<String>,
}

/// What `mcp.reload` answers: the servers' configuration was read again.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReloadResult {
    /// Whether it could be taken over.
    pub ok: bool,
    /// Servers that are new.
    pub added: Vec<String>,
    /// Servers that are gone.
    pub removed: Vec<String>,
    /// Servers that are connected to in another way, and were started anew.
    pub restarted: Vec<String>,
    /// Servers that are treated in another way, which was applied live.
    pub updated: Vec<String>,
    /// Why it could not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub issues: Vec<Issue>,
}

/// `mcp.tools`, `mcp.resources`, `mcp.prompts`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListParams {
    /// Whose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Of which server; of all, if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Of tools: only this one, by the name that models use, or by its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Of tools: with the schema of their arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<bool>,
    /// Of tools: with all that the server says, as it says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<bool>,
}

/// What `mcp.tools` answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolsResult {
    /// What there is.
    pub tools: Vec<Tool>,
    /// What cannot be used.
    pub left_out: Vec<LeftOut>,
    /// Servers that are not available, and whose part is missing here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
}

/// A tool of a server.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// The name that models use.
    pub name: String,
    /// Its server.
    pub server: String,
    /// Its name there.
    pub tool: String,
    /// What the server calls it.
    pub title: Option<String>,
    /// What the server says about it.
    pub description: Option<String>,
    /// What it does to the world.
    pub effect: Effect,
    /// The rule that denies it.
    pub denied_by: Option<String>,
    /// Whether it says something else than when it was approved.
    pub changed: bool,
    /// All that it says about itself, as one number: what an approval is about.
    pub fingerprint: String,
    /// Why nobody can use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unusable: Option<String>,
    /// What it takes, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
}

/// What a tool does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Nothing.
    ReadOnly,
    /// It may destroy something.
    Destructive,
    /// Nobody says.
    Unknown,
}

/// Something that a server lists, and that cannot be used.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    /// Whose.
    pub server: String,
    /// Its name.
    pub name: String,
    /// Why not.
    pub reason: String,
}

/// A server that is not available.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Missing {
    /// Which.
    pub server: String,
    /// Why, in a line.
    pub error: String,
}

/// `mcp.call`: one tool, once.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallParams {
    /// As whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Of which server; if left out, `tool` is the name that models use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Which tool.
    pub tool: String,
    /// Its arguments, an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Box<RawValue>>,
    /// More arguments, as texts: each becomes what the tool's schema asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub texts: Option<BTreeMap<String, String>>,
    /// For which conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    /// Whether the tool is approved as `fingerprint` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approve: Option<bool>,
    /// The tool as `mcp.tools` has told it. With another one it is not called. To approve a tool that has
    /// changed takes this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// How long it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Whether texts are wanted as a model would see them, inside their boundaries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<bool>,
    /// If given, the events `mcp.progress` with this token tell the caller how far the call has got.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress_token: Option<String>,
}

/// The event `mcp.progress`: how far a call has got, in the words of its server. Only the latest is told, a few
/// times a second, to the caller that made the call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressEvent {
    /// The `progressToken` of the call.
    pub token: String,
    /// How much is done.
    pub done: f64,
    /// Of a hundred, where that can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    /// What it is doing, in one clean line. From outside: not for a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What `mcp.resources` answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourcesResult {
    /// As listed, each with its `server`.
    pub resources: Vec<Box<RawValue>>,
    /// Families of them, likewise.
    pub templates: Vec<Box<RawValue>>,
    /// Servers that are not available, and whose part is missing here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
}

/// `mcp.read`: one resource.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReadParams {
    /// As whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Of which server.
    pub server: String,
    /// Which.
    pub uri: String,
    /// Whether texts are wanted as a model would see them, inside their boundaries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<bool>,
    /// How long all of it may take: the start of the server, and its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// What `mcp.prompts` answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptsResult {
    /// As listed, each with its `server`.
    pub prompts: Vec<Box<RawValue>>,
    /// Servers that are not available, and whose part is missing here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
}

/// `mcp.prompt`: one prompt, filled in.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PromptParams {
    /// As whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Of which server.
    pub server: String,
    /// Which.
    pub name: String,
    /// What it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<BTreeMap<String, String>>,
    /// Whether texts are wanted as a model would see them, inside their boundaries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<bool>,
    /// How long all of it may take: the start of the server, and its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// `mcp.logs`: what a server wrote to stderr, and what became of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LogsParams {
    /// Which.
    pub server: String,
    /// How many lines, from the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<u32>,
}

/// What `mcp.logs` answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogsResult {
    /// Which.
    pub server: String,
    /// Oldest first.
    pub lines: Vec<String>,
}

/// The event `mcp.server`: something about a server has changed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerEvent {
    /// Whose; several may share it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Its name.
    pub name: String,
    /// How it is now, as in its status.
    pub state: String,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
