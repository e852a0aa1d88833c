//! `approvals.*` (ours): calls that wait for somebody's word. Decisions are those of the published
//! schema.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// `approvals.list`: what waits now.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListParams {
    /// Only of this conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    /// Only of this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
}

/// What `approvals.list` answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListResult {
    /// Oldest first.
    pub approvals: Vec<Approval>,
}

/// Something that waits for a decision; also the event `approval.requested`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// What a decision names.
    pub id: String,
    /// What is to be decided about.
    #[serde(default, skip_serializing_if = "ApprovalKind::is_call")]
    pub kind: ApprovalKind,
    /// Who wants it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// In which conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    /// In which run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The tool.
    pub tool: String,
    /// The MCP server that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// What it is, in one line.
    pub title: String,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How much care it wants.
    pub severity: Severity,
    /// With which arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Box<RawValue>>,
    /// What can be decided.
    pub allowed_decisions: Vec<Decision>,
    /// Since when, in milliseconds since 1970.
    pub created_at_ms: u64,
    /// Until when; then it is denied.
    pub expires_at_ms: u64,
}

/// What is to be decided about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalKind {
    /// The call of a tool.
    #[default]
    Call,
    /// The request of an MCP server for a completion by the agent's model. `server` names it, `args` is
    /// what it wants to send: `model`, `maxTokens`, `modelHints`, `systemPrompt`, `messages` (`role` and
    /// `text` each), `tools`. All but the first two are from outside.
    Sampling,
}

impl ApprovalKind {
    fn is_call(&self) -> bool {
        *self == Self::Call
    }
}

/// How much care a decision wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Little.
    Info,
    /// Some.
    Warning,
    /// Much.
    Critical,
}

/// What can be decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// This call.
    AllowOnce,
    /// This tool, from now on; of sampling, this server, for the run of the gateway.
    AllowAlways,
    /// Not this call.
    Deny,
}

/// `approvals.respond`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RespondParams {
    /// About what.
    pub id: String,
    /// What was decided.
    pub decision: Decision,
}

/// What `approvals.respond` answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RespondResult {
    /// Always true.
    pub ok: bool,
    /// About what.
    pub id: String,
    /// What holds: of two answers, the first.
    pub decision: Decision,
}

/// The event `approval.resolved`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedEvent {
    /// What no longer waits.
    pub id: String,
    /// What was decided; none if nobody did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// How it came to that.
    pub reason: ResolvedReason,
}

/// How a decision came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResolvedReason {
    /// Somebody decided.
    User,
    /// Nobody did in time.
    Expired,
    /// The run ended, or nobody who was asked is there any more.
    Cancelled,
}

/// Parameters that are not looked at: of `question.list` and `plugin.approval.list`, whose lists are empty
/// here.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct AnyParams {}

impl<'de> Deserialize<'de> for AnyParams {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self {})
    }
}

/// What `question.list` answers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuestionsResult {
    /// What waits for an answer.
    pub questions: Vec<Box<RawValue>>,
}
