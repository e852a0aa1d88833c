//! `sessions.*`: conversations, and the tools that clients lend to them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::number;

/// `sessions.list`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListParams {
    /// How many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// How many to leave out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Only those that changed within so many minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_minutes: Option<u64>,
    /// Only those that somebody spoke in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_last_interaction: Option<bool>,
    /// What comes first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sort_by: Option<SortBy>,
    /// Also the session that all share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_global: Option<bool>,
    /// Also those of no known kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_unknown: Option<bool>,
    /// Only those of agents that are configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configured_agents_only: Option<bool>,
    /// With titles made from what was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_derived_titles: Option<bool>,
    /// With the beginning of the last message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_last_message: Option<bool>,
    /// Only those with this label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Only those shown as `chat` or `dashboard`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub board_face: Option<String>,
    /// Only those that this person began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creator_id: Option<String>,
    /// Only those that this person owns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<String>,
    /// One's own come first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_first: Option<bool>,
    /// Only those that the caller takes part in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub involving_me: Option<bool>,
    /// Only those that this person takes part in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub involving_profile_id: Option<String>,
    /// With those who take part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_people: Option<bool>,
    /// Only those that this session began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawned_by: Option<String>,
    /// Only those of this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Only those in which this occurs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// `true`, `false` or `"all"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived: Option<Value>,
}

/// What comes first in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SortBy {
    /// What changed last.
    UpdatedAt,
    /// Where somebody spoke last.
    LastInteractionAt,
}

/// What `sessions.list` answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListResult {
    /// When, in milliseconds since 1970.
    pub ts: u64,
    /// Where they are stored.
    pub path: String,
    /// How many are in this answer.
    pub count: u64,
    /// What holds for sessions that say nothing else.
    pub defaults: Defaults,
    /// The sessions.
    pub sessions: Vec<Row>,
}

/// What holds for sessions that say nothing else. `null` where nothing is set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Defaults {
    /// The model's provider.
    pub model_provider: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// How much the model takes.
    pub context_tokens: Option<u64>,
}

/// One session.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Its key.
    pub key: String,
    /// What it is.
    pub kind: Kind,
    /// Its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// What somebody called it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// A title made from what was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub derived_title: Option<String>,
    /// The beginning of the last message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_message_preview: Option<String>,
    /// The channel that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Whose it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Whether it is the agent's main session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_main: Option<bool>,
    /// When it began, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number::write")]
    pub created_at: Option<f64>,
    /// When it changed last.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number::write")]
    pub updated_at: Option<f64>,
    /// When somebody spoke last.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number::write")]
    pub last_interaction_at: Option<f64>,
    /// Whether it was put away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
    /// How its last run is, or was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<RunStatus>,
    /// What went wrong in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_run_error: Option<String>,
    /// Which run that was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_run_id: Option<String>,
    /// The session that began it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawned_by: Option<String>,
    /// Tokens that models read.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number::write")]
    pub input_tokens: Option<f64>,
    /// Tokens that models wrote.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number::write")]
    pub output_tokens: Option<f64>,
    /// Tokens that the next request begins with.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number::write")]
    pub total_tokens: Option<f64>,
    /// How much the model takes.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number::write")]
    pub context_tokens: Option<f64>,
    /// Its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The model's provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_provider: Option<String>,
}

/// What a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// One person's.
    Direct,
    /// Several people's.
    Group,
    /// Everybody's.
    Global,
    /// Something else.
    Unknown,
}

/// How a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunStatus {
    /// It waits.
    Queued,
    /// It is under way.
    Running,
    /// It ended well.
    Done,
    /// It failed.
    Failed,
    /// Somebody ended it.
    Killed,
    /// It took too long.
    Timeout,
}

/// `sessions.describe`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DescribeParams {
    /// Which.
    pub key: String,
    /// With a title made from what was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_derived_titles: Option<bool>,
    /// With the beginning of the last message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_last_message: Option<bool>,
}

/// What `sessions.describe` answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DescribeResult {
    /// The session; `null` if there is none.
    pub session: Option<Row>,
}

/// What `sessions.subscribe` answers. It takes what `sessions.list` takes, or nothing.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscribeResult {
    /// Whether events come from now on.
    pub subscribed: bool,
    /// The list, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<ListResult>,
}

/// `sessions.delete`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeleteParams {
    /// Which.
    pub key: String,
    /// Whose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Whether what was said goes, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_transcript: Option<bool>,
    /// The very session that is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_session_id: Option<String>,
    /// The revision that the caller knows of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_lifecycle_revision: Option<String>,
    /// The change that the caller knows of.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number::write")]
    pub expected_session_updated_at: Option<f64>,
    /// Whether others are told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emit_lifecycle_hooks: Option<bool>,
    /// Only if it was put away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived_only: Option<bool>,
}

/// What `sessions.delete` answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteResult {
    /// Always true.
    pub ok: bool,
    /// Which.
    pub key: String,
    /// Whether there was one.
    pub deleted: bool,
    /// Files that were kept.
    pub archived: Vec<String>,
}

/// `sessions.setExtraTools` (ours): a client lends tools to a session, in place of those that it lent
/// before. A call comes as the event `node.invoke.request` and is answered with `node.invoke.result`;
/// the tools go with the connection.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetExtraToolsParams {
    /// Which conversation.
    pub session_key: String,
    /// Whose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The tools; none takes all away.
    pub tools: Vec<ExtraTool>,
}

/// A tool that a client lends.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExtraTool {
    /// Its name, as the model is to see it.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Box<RawValue>>,
    /// Whether it changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// How long a call may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// What `sessions.setExtraTools` answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetExtraToolsResult {
    /// Always true.
    pub ok: bool,
    /// The names that the model sees, in the order of the request.
    pub tools: Vec<String>,
}
