//! `approvals.*` (ours): calls that wait for an operator's decision, and approvals for later calls.
//! The decisions are those of the published schema.

pub mod published;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

/// Parameters of `approvals.list`, which lists pending approvals.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListParams {
    /// Only approvals of this session.
    pub session_key: Option<String>,
    /// Only approvals of this agent.
    pub agent_id: Option<String>,
}

/// Result of `approvals.list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListResult {
    /// Pending approvals, oldest first.
    pub approvals: Vec<Approval>,
}

/// A pending approval; also the payload of the event `approval.requested`.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// Id to quote in `approvals.respond`.
    pub id: String,
    /// What the decision is about.
    #[serde(default, skip_serializing_if = "ApprovalKind::is_call")]
    pub kind: ApprovalKind,
    /// Agent that makes the call.
    pub agent_id: Option<String>,
    /// Session key.
    pub session_key: Option<String>,
    /// Run id.
    pub run_id: Option<String>,
    /// Tool name.
    pub tool: String,
    /// MCP server that provides the tool.
    pub server: Option<String>,
    /// One-line title.
    pub title: String,
    /// Details.
    pub description: Option<String>,
    /// How risky the call is.
    pub severity: Severity,
    /// Arguments of the call.
    pub args: Option<Box<RawValue>>,
    /// Decisions that are accepted.
    pub allowed_decisions: Vec<Decision>,
    /// What `allow-always` can allow, the default first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub always: Vec<AlwaysChoice>,
    /// For a tool that has changed: how, as lines that begin with `+` or `-`. Text of the server,
    /// untrusted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    /// Where all of it can be read, for a client that has no room for it.
    pub whole: Option<String>,
    /// Creation time, in milliseconds since 1970.
    pub created_at_ms: u64,
    /// Expiry time, in milliseconds since 1970; an expired approval is denied.
    pub expires_at_ms: u64,
}

/// What `allow-always` can allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AlwaysChoice {
    /// Says in one line what is allowed, where, and for which agent. It may quote a command of the
    /// model.
    pub words: String,
    /// Whether it is valid only in this session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_session: bool,
}

/// What an approval is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalKind {
    /// A tool call.
    #[default]
    Call,
    /// A sampling request of an MCP server to the agent's model. `server` names the server; `args`
    /// is what it wants to send: `model`, `maxTokens`, `modelHints`, `systemPrompt`, `messages`
    /// (`role` and `text` each), `tools`. All but the first two are untrusted.
    Sampling,
}

impl ApprovalKind {
    fn is_call(&self) -> bool {
        *self == Self::Call
    }
}

/// How risky a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Low risk.
    Info,
    /// Medium risk.
    Warning,
    /// High risk.
    Critical,
}

/// A decision about an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// Allow this call.
    AllowOnce,
    /// Allow also what the chosen entry of `always` says.
    AllowAlways,
    /// Deny this call.
    Deny,
}

/// Parameters of `approvals.respond`.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RespondParams {
    /// Approval id.
    pub id: String,
    /// The decision.
    pub decision: Decision,
    /// For `allow-always`: the index of the chosen entry of `always`. Default: the first one.
    pub always: Option<usize>,
    /// For `deny`: what the user wants instead, for the model.
    pub instead: Option<String>,
}

/// Result of `approvals.respond`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RespondResult {
    /// Always `true`.
    pub ok: bool,
    /// Approval id.
    pub id: String,
    /// The decision in effect: of two responses, the first one counts.
    pub decision: Decision,
}

/// Parameters of `approvals.pass`: the client cannot decide. If no other client can, the fallback of
/// the configuration applies.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PassParams {
    /// Approval id.
    pub id: String,
}

/// Result of `approvals.pass`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PassResult {
    /// Always `true`.
    pub ok: bool,
    /// Approval id.
    pub id: String,
}

/// Payload of the event `approval.resolved`.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedEvent {
    /// Approval id.
    pub id: String,
    /// The decision; `None` if none was made.
    pub decision: Option<Decision>,
    /// How the approval was resolved.
    pub reason: ResolvedReason,
}

/// How a pending approval or elicitation was resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResolvedReason {
    /// A user responded.
    User,
    /// It expired.
    Expired,
    /// The run ended, or no client that could respond is connected any more.
    Cancelled,
}

/// Parameters of `approvals.rules`, which lists the approvals for later calls.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RulesParams {
    /// Only those of this agent.
    pub agent_id: Option<String>,
}

/// Result of `approvals.rules`, `approvals.revoke` and `approvals.allow`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RulesResult {
    /// The approvals for later calls, by agent and tool; or those that were removed or added.
    pub rules: Vec<Rule>,
}

/// An approval for later calls.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// Id to quote in `approvals.revoke`. It depends on the content only.
    pub id: String,
    /// The agent.
    pub agent_id: String,
    /// The tool: for that of an MCP server, the server's name for it.
    pub tool: String,
    /// The MCP server.
    pub server: Option<String>,
    /// The folder, for a tool that works in one.
    pub workspace: Option<String>,
    /// The session, if it is limited to one.
    pub session_key: Option<String>,
    /// Says in one line what is allowed. It may quote a command of a model.
    pub words: String,
}

/// Parameters of `approvals.revoke`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RevokeParams {
    /// Ids of the approvals; each may be shortened as long as it is unique.
    pub ids: Vec<String>,
}

/// Parameters of `approvals.allow`, which adds an approval for later calls.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AllowParams {
    /// The agent; the default agent if absent.
    pub agent_id: Option<String>,
    /// The tool's name, as models see it.
    pub tool: String,
    /// For `exec`: the command. If its program is known to be harmless, it stands for all harmless
    /// commands that begin with it.
    pub command: Option<String>,
    /// Only calls in which these arguments have these values.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub arguments: serde_json::Map<String, serde_json::Value>,
    /// The folder, for a tool that works in one; the agent's workspace if absent.
    pub workspace: Option<String>,
}

/// Ignored parameters.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct AnyParams {}

impl<'de> Deserialize<'de> for AnyParams {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self {})
    }
}

/// Result of `question.list`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuestionsResult {
    /// Pending questions.
    pub questions: Vec<Box<RawValue>>,
}
