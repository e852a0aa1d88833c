//! `agent` and `agent.wait`: a message whose answer is the response.

use serde::{Deserialize, Serialize};

use crate::chat::Attachment;

/// Parameters of `agent`, as far as they are supported.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunParams {
    /// The message.
    pub message: String,
    /// Agent id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Session key; the agent's main session if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    /// Session id, if there is no key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Provider of the model, if its name has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Model for this run, as in `models.list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Attached files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachments: Option<Vec<Attachment>>,
    /// Timeout of the run, in seconds; 0 for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// Deduplicates requests, and becomes the run id.
    pub idempotency_key: String,
}

/// The status of [`RunAccepted`].
pub const ACCEPTED: &str = "accepted";

/// The first response to `agent` on a socket. [`RunResult`] follows under the same id.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunAccepted {
    /// Run id.
    pub run_id: String,
    /// Session key.
    pub session_key: String,
    /// Agent id.
    pub agent_id: String,
    /// Always [`ACCEPTED`].
    pub status: String,
    /// When, in milliseconds since 1970.
    pub accepted_at: u64,
}

/// Result of `agent`, when the run has ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunResult {
    /// Run id.
    pub run_id: String,
    /// Session key.
    pub session_key: String,
    /// How it ended: `ok`, `error`, `timeout`, or `in_flight` for a run that another request follows.
    pub status: String,
    /// How it ended, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<RunAnswer>,
}

/// The answer of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunAnswer {
    /// The texts of the answer.
    pub payloads: Vec<Payload>,
}

/// A text of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Payload {
    /// The text.
    pub text: String,
}

/// Parameters of `agent.wait`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitParams {
    /// Run id.
    pub run_id: String,
    /// How long to wait, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// Result of `agent.wait`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitResult {
    /// Run id.
    pub run_id: String,
    /// `ok`, `error` or `timeout`: the run is in progress, or unknown.
    pub status: String,
}
