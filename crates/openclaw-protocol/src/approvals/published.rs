//! `plugin.approval.*` and `exec.approval.*`: approvals under the names and in the shapes of the
//! published schema.

use openclaw_content::{QuestionText, Untrusted, clean_excerpt};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{Approval, Decision, Severity};

/// Maximum characters of a description in the published schema.
const DESCRIPTION: usize = 512;
/// Maximum characters of a title.
const TITLE: usize = 80;
/// Maximum characters of a detail.
const DETAIL: usize = 4_000;
/// Characters of a title that say that it was shortened.
const MARKER: usize = 30;

/// What is shown instead of a question for which there is no room: it can only be denied.
const NO_ROOM: &str = "This call is too long to be shown here, and can only be denied. To decide about it, use \
                       `openclaw chat`, or another client of the gateway.";

/// The text of a question in this number of characters, and the decisions that it allows.
fn shown(approval: &Approval, room: usize) -> (String, Vec<Decision>) {
    let question = QuestionText {
        title: &approval.tool,
        arguments: approval.args.as_ref().map_or("{}", |args| args.get()),
        changes: &approval.changes,
        description: approval.description.as_deref().unwrap_or_default(),
        whole: approval.whole.as_deref(),
    };
    match question.fit(room) {
        Ok(text) => (text, approval.allowed_decisions.clone()),
        Err(_) => (NO_ROOM.to_owned(), vec![Decision::Deny]),
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
    /// More of the call, for clients that have room for it.
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
        let (description, allowed_decisions) = shown(approval, DESCRIPTION);
        Self {
            id: approval.id.clone(),
            request: ApprovalRequest {
                title: clean_excerpt(Untrusted::new(&approval.title), TITLE - MARKER),
                description,
                detail: Some(shown(approval, DETAIL).0),
                severity: approval.severity,
                tool_name: approval.tool.clone(),
                allowed_decisions,
                agent_id: approval.agent_id.clone(),
                session_key: approval.session_key.clone(),
            },
            created_at_ms: approval.created_at_ms,
            expires_at_ms: approval.expires_at_ms,
        }
    }
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
        let (command_text, allowed_decisions) = shown(approval, DETAIL);
        Self {
            id: approval.id.clone(),
            command_text,
            allowed_decisions,
            agent_id: approval.agent_id.clone(),
            expires_at_ms: approval.expires_at_ms,
        }
    }
}
