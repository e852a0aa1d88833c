//! `mcp.elicitation.*`: questions that servers ask a person in the middle of a call (T11).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approvals::ResolvedReason;

/// A question of a server; the event `mcp.elicitation.requested`. It goes to callers that may decide about
/// calls, say that they can show it ([`caps::ELICITATION`](crate::connect::caps::ELICITATION)), and follow
/// one of the conversations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Elicitation {
    /// What an answer names.
    pub id: String,
    /// Who asks.
    pub server: String,
    /// The conversations that the server works for: it asks for the sake of one of them.
    pub session_keys: Vec<String>,
    /// What it says, in one line. From outside.
    pub message: String,
    /// What it wants.
    #[serde(flatten)]
    pub wanted: QuestionKind,
    /// Since when, in milliseconds since 1970.
    pub created_at_ms: u64,
    /// Until when; then it is cancelled.
    pub expires_at_ms: u64,
}

/// What a server wants of a person. All of it is from outside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum QuestionKind {
    /// Some values.
    Form {
        /// The JSON Schema of an object of plain values.
        requested_schema: Value,
    },
    /// A visit to an address, which must be shown in full, and not be looked at beforehand.
    Url {
        /// The address.
        url: String,
    },
}

/// What a person can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Yes.
    Accept,
    /// No.
    Decline,
    /// Never mind.
    Cancel,
}

/// `mcp.elicitation.respond`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RespondParams {
    /// To which question.
    pub id: String,
    /// The answer.
    pub action: Action,
    /// The values of a form that was accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
}

/// What `mcp.elicitation.respond` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RespondResult {
    /// Always true.
    pub ok: bool,
    /// To which question.
    pub id: String,
    /// What holds: of two answers, the first.
    pub action: Action,
}

/// The event `mcp.elicitation.resolved`. What was filled in is not told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedEvent {
    /// What no longer waits.
    pub id: String,
    /// What was answered; none if nobody did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// How it came to that.
    pub reason: ResolvedReason,
}
