//! `sessions.*`: sessions, and the tools that clients lend to them.

mod lending;
mod lifecycle;

pub use lending::{ExtraTool, ExtraToolSchema, SetExtraToolsParams, SetExtraToolsResult};
pub use lifecycle::{
    ChangedEvent, CreateParams, CreateResult, GetParams, GetResult, MessagesParams, MessagesResult,
    ResetParams, ResetResult, ResolveParams, ResolveResult,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chat::present;
use crate::number;

/// Parameters of `sessions.list`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListParams {
    /// Maximum number of sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Number of sessions to skip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Only sessions updated within this many minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_minutes: Option<u64>,
    /// Only sessions with user interaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_last_interaction: Option<bool>,
    /// Sort order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sort_by: Option<SortBy>,
    /// Whether to include the global session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_global: Option<bool>,
    /// Whether to include sessions of unknown kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_unknown: Option<bool>,
    /// Only sessions of configured agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configured_agents_only: Option<bool>,
    /// Whether to include titles derived from the messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_derived_titles: Option<bool>,
    /// Whether to include the beginning of the last message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_last_message: Option<bool>,
    /// Only sessions with this label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Only sessions shown as `chat` or `dashboard`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub board_face: Option<String>,
    /// Only sessions created by this user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creator_id: Option<String>,
    /// Only sessions owned by this user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<String>,
    /// Whether the caller's own sessions come first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_first: Option<bool>,
    /// Only sessions that the caller participates in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub involving_me: Option<bool>,
    /// Only sessions that this user participates in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub involving_profile_id: Option<String>,
    /// Whether to include the participants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_people: Option<bool>,
    /// Only sessions started by this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawned_by: Option<String>,
    /// Only sessions of this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Only sessions that contain this text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// `true`, `false` or `"all"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived: Option<Value>,
}

/// Sort order of a list of sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SortBy {
    /// Last updated first.
    UpdatedAt,
    /// Last user interaction first.
    LastInteractionAt,
    /// An order of a newer client.
    #[serde(other)]
    Unknown,
}

/// Result of `sessions.list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListResult {
    /// Timestamp, in milliseconds since 1970.
    pub ts: u64,
    /// Path of the store.
    pub path: String,
    /// Number of sessions in this response.
    pub count: u64,
    /// Defaults for sessions without settings of their own.
    pub defaults: Defaults,
    /// Sessions.
    pub sessions: Vec<Row>,
}

/// Defaults for sessions without settings of their own. `null` where nothing is set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Defaults {
    /// Model provider.
    pub model_provider: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Context window of the model, in tokens.
    pub context_tokens: Option<u64>,
}

/// A session.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Session key.
    pub key: String,
    /// Kind of session.
    pub kind: Kind,
    /// Session id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Label set by a user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Title derived from the messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub derived_title: Option<String>,
    /// Beginning of the last message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_message_preview: Option<String>,
    /// Channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Where answers go. The Node gateway sends it, too; its schema lacks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_context: Option<DeliveryContext>,
    /// Agent id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Whether it is the agent's main session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_main: Option<bool>,
    /// Creation time, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number::write")]
    pub created_at: Option<f64>,
    /// Time of the last update, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number::write")]
    pub updated_at: Option<f64>,
    /// Time of the last user interaction, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number::write")]
    pub last_interaction_at: Option<f64>,
    /// Whether it is archived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
    /// Status of the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<RunStatus>,
    /// Error of the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_run_error: Option<String>,
    /// Id of the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_run_id: Option<String>,
    /// Session that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawned_by: Option<String>,
    /// Input tokens used.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number::write")]
    pub input_tokens: Option<f64>,
    /// Output tokens used.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number::write")]
    pub output_tokens: Option<f64>,
    /// Tokens at the start of the next request.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number::write")]
    pub total_tokens: Option<f64>,
    /// Context window of the model, in tokens.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number::write")]
    pub context_tokens: Option<f64>,
    /// Model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Model provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_provider: Option<String>,
    /// Who chose the model: `user`, or absent for the configured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_override_source: Option<String>,
    /// How strict it is about tool calls; absent for the configured rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<PermissionMode>,
    /// Whether the token counts are those of the last request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens_fresh: Option<bool>,
    /// How much of tool calls a client shows by default: `off`, `on` or `full`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbose_level: Option<String>,
    /// Whether a run is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_active_run: Option<bool>,
    /// Ids of all runs in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_run_ids: Option<Vec<String>>,
    /// When this row was read, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_at: Option<u64>,
}

/// Where answers go.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryContext {
    /// Channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The other end of the channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

impl Row {
    /// Returns the model that a user chose for the session.
    #[must_use]
    pub fn chosen_model(&self) -> Option<&str> {
        self.model_override_source.as_deref().filter(|source| *source == "user")?;
        self.model.as_deref()
    }
}

/// How strict a session is about tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PermissionMode {
    /// Nothing may be changed.
    ReadOnly,
    /// Every change needs an approval.
    Guarded,
    /// Changes in the workspace need no approval.
    Workspace,
    /// Nothing needs an approval.
    Full,
}

/// Kind of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// One user.
    Direct,
    /// Several users.
    Group,
    /// All users.
    Global,
    /// Unknown.
    Unknown,
}

/// Status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunStatus {
    /// Waiting.
    Queued,
    /// In progress.
    Running,
    /// Finished.
    Done,
    /// Failed.
    Failed,
    /// Aborted.
    Killed,
    /// Timed out.
    Timeout,
}

/// Parameters of `sessions.describe`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DescribeParams {
    /// Session key.
    pub key: String,
    /// Whether to include a title derived from the messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_derived_titles: Option<bool>,
    /// Whether to include the beginning of the last message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_last_message: Option<bool>,
}

/// Result of `sessions.describe`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DescribeResult {
    /// The session; `null` if it does not exist.
    pub session: Option<Row>,
}

/// Result of `sessions.subscribe`. Its parameters are those of `sessions.list`, or absent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscribeResult {
    /// Whether the client is subscribed to events.
    pub subscribed: bool,
    /// Sessions, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<ListResult>,
}

/// Parameters of `sessions.delete`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteParams {
    /// Session key.
    pub key: String,
    /// Agent id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Whether to delete the transcript as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_transcript: Option<bool>,
    /// Expected session id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_session_id: Option<String>,
    /// Expected lifecycle revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_lifecycle_revision: Option<String>,
    /// Expected time of the last update.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number::write")]
    pub expected_session_updated_at: Option<f64>,
    /// Whether to run lifecycle hooks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emit_lifecycle_hooks: Option<bool>,
    /// Only delete the session if it is archived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived_only: Option<bool>,
}

/// Result of `sessions.delete`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteResult {
    /// Always `true`.
    pub ok: bool,
    /// Session key.
    pub key: String,
    /// Whether the session existed.
    pub deleted: bool,
    /// Files that were archived.
    pub archived: Vec<String>,
}

/// Parameters of `sessions.patch`, as far as they are supported. `null` removes a value.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PatchParams {
    /// Session key.
    pub key: String,
    /// Agent id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Label set by a user.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub label: Option<Option<String>>,
    /// Model, as in `models.list`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub model: Option<Option<String>>,
    /// How strict it is about tool calls. Modes that allow more than the configuration are refused.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub permission_mode: Option<Option<PermissionMode>>,
}

/// Result of `sessions.patch`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PatchResult {
    /// Always `true`.
    pub ok: bool,
    /// Path of the store.
    pub path: String,
    /// Session key.
    pub key: String,
    /// The session as it is now.
    pub entry: Row,
}

/// Parameters of `sessions.title` (ours), which has the session's model write a title in the background,
/// unless the session has a title.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TitleParams {
    /// Session key.
    pub key: String,
    /// Agent id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
}

/// Result of `sessions.title`, returned immediately.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TitleResult {
    /// Whether the session exists.
    pub ok: bool,
    /// The title that the session has already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}
