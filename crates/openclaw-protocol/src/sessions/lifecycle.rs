//! Creating, finding, reading and resetting sessions, and subscribing to them.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

use super::{PermissionMode, Row};
use crate::ErrorShape;
use crate::attachment::Attachment;

/// Parameters of `sessions.create`, as far as they are supported.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateParams {
    /// Session key; a new one if absent.
    pub key: Option<String>,
    /// Agent id.
    pub agent_id: Option<String>,
    /// Label set by a user.
    pub label: Option<String>,
    /// Title; the label takes precedence.
    pub display_name: Option<String>,
    /// Model, as in `models.list`.
    pub model: Option<String>,
    /// How strict it is about tool calls.
    pub permission_mode: Option<PermissionMode>,
    /// First message.
    pub message: Option<String>,
    /// First message, under an older name.
    pub task: Option<String>,
    /// Files attached to the first message.
    pub attachments: Option<Vec<Attachment>>,
    /// Id of the run that answers the first message.
    pub idempotency_key: Option<String>,
}

/// Result of `sessions.create`.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateResult {
    /// Always `true`.
    pub ok: bool,
    /// Session key.
    pub key: String,
    /// Session id.
    pub session_id: Option<String>,
    /// The session.
    pub entry: Row,
    /// Whether the first message was accepted.
    pub run_started: bool,
    /// Id of its run.
    pub run_id: Option<String>,
    /// Why the first message was not accepted.
    pub run_error: Option<ErrorShape>,
}

/// Result of `sessions.reset`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResetResult {
    /// Always `true`.
    pub ok: bool,
    /// Session key.
    pub key: String,
    /// The session as it is now.
    pub entry: Row,
}

/// Parameters of `sessions.get`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetParams {
    /// Session key.
    #[serde(alias = "sessionKey")]
    pub key: String,
    /// Maximum number of messages.
    pub limit: Option<u32>,
}

/// Result of `sessions.get`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetResult {
    /// The last messages, in the shape of `chat.history`.
    pub messages: Vec<Box<RawValue>>,
}

/// Result of `sessions.messages.subscribe` and `sessions.messages.unsubscribe`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessagesResult {
    /// Whether the client is subscribed.
    pub subscribed: bool,
    /// Session key.
    pub key: String,
}

/// Parameters of `sessions.resolve`, as far as they are supported.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResolveParams {
    /// Session key.
    pub key: Option<String>,
    /// Session id.
    pub session_id: Option<String>,
    /// Label.
    pub label: Option<String>,
    /// Agent id.
    pub agent_id: Option<String>,
}

/// Result of `sessions.resolve`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResolveResult {
    /// Whether there is such a session.
    pub ok: bool,
    /// Session key.
    pub key: Option<String>,
    /// Agent id.
    pub agent_id: Option<String>,
    /// Display name.
    pub display_name: Option<String>,
}

/// Payload of the event `sessions.changed`.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedEvent {
    /// Session key.
    pub session_key: String,
    /// Agent id.
    pub agent_id: Option<String>,
    /// Why it changed.
    pub reason: String,
    /// Timestamp, in milliseconds since 1970.
    pub ts: u64,
    /// Whether a run is in progress.
    pub has_active_run: bool,
    /// Ids of all runs in progress.
    pub active_run_ids: Vec<String>,
    /// The session as it is now; absent if it was deleted.
    pub session: Option<Row>,
}
