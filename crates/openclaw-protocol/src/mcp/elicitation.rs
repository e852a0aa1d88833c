//! `mcp.elicitation.*`: questions that servers ask the user during a call (T11).

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::approvals::ResolvedReason;

/// A question of a server; payload of the event `mcp.elicitation.requested`. It is sent to clients
/// that have the approvals scope, announce
/// [`caps::ELICITATION`](crate::connect::caps::ELICITATION), and follow one of the sessions or announce
/// [`caps::ALL_QUESTIONS`](crate::connect::caps::ALL_QUESTIONS).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Elicitation {
    /// Id to quote in the response.
    pub id: String,
    /// Server that asks.
    pub server: String,
    /// Sessions that the server is used by: the question concerns one of them.
    pub session_keys: Vec<String>,
    /// One-line message. Untrusted.
    pub message: String,
    /// Requested input.
    #[serde(flatten)]
    pub wanted: QuestionKind,
    /// Creation time, in milliseconds since 1970.
    pub created_at_ms: u64,
    /// Expiry time, in milliseconds since 1970; an expired question is cancelled.
    pub expires_at_ms: u64,
}

/// Input that a server requests from the user. All of it is untrusted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum QuestionKind {
    /// A form.
    Form {
        /// JSON Schema of a flat object.
        requested_schema: Value,
    },
    /// A URL to visit. It must be shown in full and not be fetched in advance.
    Url {
        /// The URL.
        url: String,
    },
}

/// The user's response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Accept.
    Accept,
    /// Decline.
    Decline,
    /// Cancel.
    Cancel,
}

/// Parameters of `mcp.elicitation.list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListParams {}

/// Result of `mcp.elicitation.list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListResult {
    /// Pending questions that this client may answer, oldest first.
    pub elicitations: Vec<Elicitation>,
}

/// Parameters of `mcp.elicitation.respond`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RespondParams {
    /// Elicitation id.
    pub id: String,
    /// The response.
    pub action: Action,
    /// Form values, if accepted.
    pub content: Option<Value>,
}

/// Result of `mcp.elicitation.respond`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RespondResult {
    /// Always `true`.
    pub ok: bool,
    /// Elicitation id.
    pub id: String,
    /// The response in effect: of two responses, the first one counts.
    pub action: Action,
}

/// Payload of the event `mcp.elicitation.resolved`. Form values are not included.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedEvent {
    /// Elicitation id.
    pub id: String,
    /// The response; `None` if there was none.
    pub action: Option<Action>,
    /// How the elicitation was resolved.
    pub reason: ResolvedReason,
}
