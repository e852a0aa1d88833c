//! `sessions.*`: sessions, and the tools that clients lend to them.

mod lending;
mod lifecycle;

pub use lending::{ExtraTool, ExtraToolSchema, SetExtraToolsParams, SetExtraToolsResult};
pub use lifecycle::{
    ChangedEvent, CreateParams, CreateResult, GetParams, GetResult, MessagesResult, ResetResult,
    ResolveParams, ResolveResult,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::fields::{present, write_number};

/// Parameters of `sessions.list`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListParams {
    /// Maximum number of sessions.
    pub limit: Option<u64>,
    /// Number of sessions to skip.
    pub offset: Option<u64>,
    /// Only sessions updated within this many minutes.
    pub active_minutes: Option<u64>,
    /// Only sessions with user interaction.
    pub require_last_interaction: Option<bool>,
    /// Sort order.
    pub sort_by: Option<SortBy>,
    /// Whether to include the global session.
    pub include_global: Option<bool>,
    /// Whether to include sessions of unknown kind.
    pub include_unknown: Option<bool>,
    /// Only sessions of configured agents.
    pub configured_agents_only: Option<bool>,
    /// Whether to include titles derived from the messages.
    pub include_derived_titles: Option<bool>,
    /// Whether to include the beginning of the last message.
    pub include_last_message: Option<bool>,
    /// Only sessions with this label.
    pub label: Option<String>,
    /// Only sessions shown as `chat` or `dashboard`.
    pub board_face: Option<String>,
    /// Only sessions created by this user.
    pub creator_id: Option<String>,
    /// Only sessions owned by this user.
    pub owner_id: Option<String>,
    /// Whether the caller's own sessions come first.
    pub owner_first: Option<bool>,
    /// Only sessions that the caller participates in.
    pub involving_me: Option<bool>,
    /// Only sessions that this user participates in.
    pub involving_profile_id: Option<String>,
    /// Whether to include the participants.
    pub include_people: Option<bool>,
    /// Only sessions started by this session.
    pub spawned_by: Option<String>,
    /// Only sessions of this agent.
    pub agent_id: Option<String>,
    /// Only sessions that contain this text.
    pub search: Option<String>,
    /// `true`, `false` or `"all"`.
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
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Session key.
    pub key: String,
    /// Kind of session.
    pub kind: Kind,
    /// Session id.
    pub session_id: Option<String>,
    /// Label set by a user.
    pub label: Option<String>,
    /// Display name.
    pub display_name: Option<String>,
    /// Title derived from the messages.
    pub derived_title: Option<String>,
    /// Beginning of the last message.
    pub last_message_preview: Option<String>,
    /// Channel.
    pub channel: Option<String>,
    /// Where answers go. The Node gateway sends it, too; its schema lacks it.
    pub delivery_context: Option<DeliveryContext>,
    /// Agent id.
    pub agent_id: Option<String>,
    /// Whether it is the agent's main session.
    pub is_main: Option<bool>,
    /// Creation time, in milliseconds since 1970.
    #[serde(serialize_with = "write_number")]
    pub created_at: Option<f64>,
    /// Time of the last update, in milliseconds since 1970.
    #[serde(serialize_with = "write_number")]
    pub updated_at: Option<f64>,
    /// Time of the last user interaction, in milliseconds since 1970.
    #[serde(serialize_with = "write_number")]
    pub last_interaction_at: Option<f64>,
    /// Whether it is archived.
    pub archived: Option<bool>,
    /// Status of the last run.
    pub status: Option<RunStatus>,
    /// Error of the last run.
    pub last_run_error: Option<String>,
    /// Id of the last run.
    pub last_run_id: Option<String>,
    /// Session that started it.
    pub spawned_by: Option<String>,
    /// Input tokens used.
    #[serde(serialize_with = "write_number")]
    pub input_tokens: Option<f64>,
    /// Output tokens used.
    #[serde(serialize_with = "write_number")]
    pub output_tokens: Option<f64>,
    /// Tokens at the start of the next request.
    #[serde(serialize_with = "write_number")]
    pub total_tokens: Option<f64>,
    /// Context window of the model, in tokens.
    #[serde(serialize_with = "write_number")]
    pub context_tokens: Option<f64>,
    /// Model.
    pub model: Option<String>,
    /// Model provider.
    pub model_provider: Option<String>,
    /// Who chose the model: `user`, or absent for the configured one.
    pub model_override_source: Option<String>,
    /// How strict it is about tool calls; absent for the configured rules.
    pub permission_mode: Option<PermissionMode>,
    /// The folder that its last turn worked in, if it was not the agent's own (ours).
    pub workspace: Option<String>,
    /// Whether the token counts are those of the last request.
    pub total_tokens_fresh: Option<bool>,
    /// How much of tool calls a client shows by default: `off`, `on` or `full`.
    pub verbose_level: Option<String>,
    /// Whether a run is in progress.
    pub has_active_run: Option<bool>,
    /// Ids of all runs in progress.
    pub active_run_ids: Option<Vec<String>>,
    /// When this row was read, in milliseconds since 1970.
    pub snapshot_at: Option<u64>,
}

/// Where answers go.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryContext {
    /// Channel.
    pub channel: Option<String>,
    /// The other end of the channel.
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
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DescribeParams {
    /// Session key.
    pub key: String,
    /// Whether to include a title derived from the messages.
    pub include_derived_titles: Option<bool>,
    /// Whether to include the beginning of the last message.
    pub include_last_message: Option<bool>,
}

/// Result of `sessions.describe`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DescribeResult {
    /// The session; `null` if it does not exist.
    pub session: Option<Row>,
}

/// Result of `sessions.subscribe`. Its parameters are those of `sessions.list`, or absent.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscribeResult {
    /// Whether the client is subscribed to events.
    pub subscribed: bool,
    /// Sessions, if requested.
    pub list: Option<ListResult>,
}

/// Parameters of `sessions.delete`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteParams {
    /// Session key.
    pub key: String,
    /// Agent id.
    pub agent_id: Option<String>,
    /// Whether to delete the transcript as well.
    pub delete_transcript: Option<bool>,
    /// Expected session id.
    pub expected_session_id: Option<String>,
    /// Expected lifecycle revision.
    pub expected_lifecycle_revision: Option<String>,
    /// Expected time of the last update.
    #[serde(serialize_with = "write_number")]
    pub expected_session_updated_at: Option<f64>,
    /// Whether to run lifecycle hooks.
    pub emit_lifecycle_hooks: Option<bool>,
    /// Only delete the session if it is archived.
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
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PatchParams {
    /// Session key.
    pub key: String,
    /// Agent id.
    pub agent_id: Option<String>,
    /// Label set by a user.
    #[serde(default, deserialize_with = "present")]
    pub label: Option<Option<String>>,
    /// Model, as in `models.list`.
    #[serde(default, deserialize_with = "present")]
    pub model: Option<Option<String>>,
    /// How strict it is about tool calls. Modes that allow more than the configuration are refused.
    #[serde(default, deserialize_with = "present")]
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

/// Parameters of methods that are about one session:
///
/// - `sessions.title` (ours): has the session's model write a title in the background, unless the
///   session has a title.
/// - `sessions.reset`: begins the session anew. Its messages are deleted, its settings are kept.
/// - `sessions.messages.subscribe` and `sessions.messages.unsubscribe`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionParams {
    /// Session key.
    pub key: String,
    /// Agent id.
    pub agent_id: Option<String>,
}

/// Result of `sessions.title`, returned immediately.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TitleResult {
    /// Whether the session exists.
    pub ok: bool,
    /// The title that the session has already.
    pub title: Option<String>,
}
