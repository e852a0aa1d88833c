//! `agent` and `agent.wait`: a message whose answer is the response.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::attachment::Attachment;

/// Parameters of `agent`, as far as they are supported.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunParams {
    /// The message.
    pub message: String,
    /// Agent id.
    pub agent_id: Option<String>,
    /// Session key; the agent's main session if absent.
    pub session_key: Option<String>,
    /// Session id, if there is no key.
    pub session_id: Option<String>,
    /// Provider of the model, if its name has none.
    pub provider: Option<String>,
    /// Model for this run, as in `models.list`.
    pub model: Option<String>,
    /// Attached files.
    pub attachments: Option<Vec<Attachment>>,
    /// Timeout of the run, in seconds; 0 for none.
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
#[skip_serializing_none]
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
    pub summary: Option<String>,
    /// The answer.
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
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitParams {
    /// Run id.
    pub run_id: String,
    /// How long to wait, in milliseconds.
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
