//! `plugin.approval.*` and `exec.approval.*`: approvals under the names and in the shapes of the
//! published schema.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{Approval, Decision, Severity};

/// Maximum characters of a description in the published schema.
const DESCRIPTION: usize = 512;
/// Maximum characters of a title.
const TITLE: usize = 80;
/// Maximum characters of a detail.
const DETAIL: usize = 4_000;

/// Cuts a text to a number of characters.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
    }
}

/// A pending approval; also the payload of the event `plugin.approval.requested`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Requested {
    /// Id to quote in `plugin.approval.resolve`.
    pub id: String,
    /// What the decision is about.
    pub request: ApprovalRequest,
    /// Creation time, in milliseconds since 1970.
    pub created_at_ms: u64,
    /// Expiry time, in milliseconds since 1970.
    pub expires_at_ms: u64,
}

/// What a decision is about.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRequest {
    /// One-line title.
    pub title: String,
    /// Description.
    pub description: String,
    /// The arguments of the call, as JSON.
    pub detail: Option<String>,
    /// How risky the call is.
    pub severity: Severity,
    /// Tool name.
    pub tool_name: String,
    /// Decisions that are accepted.
    pub allowed_decisions: Vec<Decision>,
    /// Agent that makes the call.
    pub agent_id: Option<String>,
    /// Session key.
    pub session_key: Option<String>,
}

impl From<&Approval> for Requested {
    fn from(approval: &Approval) -> Self {
        Self {
            id: approval.id.clone(),
            request: ApprovalRequest {
                title: cut(&approval.title, TITLE),
                description: cut(&what(approval), DESCRIPTION),
                detail: approval.args.as_ref().map(|args| cut(args.get(), DETAIL)),
                severity: approval.severity,
                tool_name: approval.tool.clone(),
                allowed_decisions: approval.allowed_decisions.clone(),
                agent_id: approval.agent_id.clone(),
                session_key: approval.session_key.clone(),
            },
            created_at_ms: approval.created_at_ms,
            expires_at_ms: approval.expires_at_ms,
        }
    }
}

/// The tool with its arguments, for clients that show nothing else, then what it does.
fn what(approval: &Approval) -> String {
    let args = approval.args.as_ref().map(|args| args.get()).filter(|args| *args != "{}");
    let call = format!("{} {}", approval.tool, args.unwrap_or_default());
    let changes = approval.changes.join("\n");
    let words = [call.trim_end(), &changes, approval.description.as_deref().unwrap_or_default()];
    words.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Payload of the event `plugin.approval.resolved`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resolved {
    /// Approval id.
    pub id: String,
    /// The decision; `None` if none was made.
    pub decision: Option<Decision>,
    /// Timestamp, in milliseconds since 1970.
    pub ts: u64,
}

/// Parameters of `plugin.approval.resolve` and `exec.approval.resolve`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResolveParams {
    /// Approval id.
    pub id: String,
    /// The decision.
    pub decision: Decision,
}

/// Result of `plugin.approval.resolve` and `exec.approval.resolve`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct ResolveResult {
    /// Always `true`.
    pub ok: bool,
}

/// Parameters of `exec.approval.get`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetParams {
    /// Approval id.
    pub id: String,
}

/// Result of `exec.approval.get`: a pending approval as a command.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecDetails {
    /// Approval id.
    pub id: String,
    /// The tool and its arguments.
    pub command_text: String,
    /// Decisions that are accepted.
    pub allowed_decisions: Vec<Decision>,
    /// Agent that makes the call.
    pub agent_id: Option<String>,
    /// Expiry time, in milliseconds since 1970.
    pub expires_at_ms: u64,
}

impl From<&Approval> for ExecDetails {
    fn from(approval: &Approval) -> Self {
        Self {
            id: approval.id.clone(),
            command_text: cut(&what(approval), DETAIL),
            allowed_decisions: approval.allowed_decisions.clone(),
            agent_id: approval.agent_id.clone(),
            expires_at_ms: approval.expires_at_ms,
        }
    }
}
