//! `chat.*`: sending, aborting, reading back; and the events of a run.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::number;

/// The longest message, in bytes: a longer one would fit into no model.
pub const MAX_MESSAGE: usize = 4 * 1024 * 1024;
/// What is said of a longer one.
pub const MESSAGE_TOO_LONG: &str = "the message is longer than 4096 KB; put it into a file";

/// `chat.send`: a message for a session.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SendParams {
    /// Which conversation.
    pub session_key: String,
    /// Whose, if the key does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The very session that is meant; another one is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// What is said.
    pub message: String,
    /// A goal that the message starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<Value>,
    /// How much the model is to think.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    /// `true`, `false` or `"auto"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fast_mode: Option<Value>,
    /// When `"auto"` switches over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fast_auto_on_seconds: Option<u64>,
    /// What happens while a run is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_mode: Option<QueueMode>,
    /// Whether the answer goes out to the channel, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deliver: Option<bool>,
    /// The channel that it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub originating_channel: Option<String>,
    /// To whom it was addressed there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub originating_to: Option<String>,
    /// By which account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub originating_account_id: Option<String>,
    /// In which thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub originating_thread_id: Option<String>,
    /// The message that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to_id: Option<String>,
    /// Files that come with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attachments: Option<Vec<Attachment>>,
    /// Tools that are bound for this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_bindings: Option<Value>,
    /// How long the run may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Where a message that no person wrote comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_input_provenance: Option<Value>,
    /// And the receipt for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_provenance_receipt: Option<String>,
    /// Whether a leading slash is plain text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suppress_command_interpretation: Option<bool>,
    /// The last entry that the sender knows of; `null` for none.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub expected_leaf_entry_id: Option<Value>,
    /// The routing that the sender knows of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_session_routing_contract: Option<String>,
    /// The permissions that the sender knows of; `null` for none.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub expected_permission_mode: Option<Value>,
    /// The overrides that the sender knows of; `null` for none.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub expected_tool_overrides: Option<Value>,
    /// Sent twice, it is run once. It becomes the id of the run.
    pub idempotency_key: String,
}

/// What is there is kept, even `null`: it is not the same as nothing.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// What happens to a message that comes while a run is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueMode {
    /// The run is told.
    Steer,
    /// It waits for its turn.
    Followup,
    /// It waits, together with others.
    Collect,
    /// The run is ended.
    Interrupt,
}

/// A file that comes with a message.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    /// What it is: `image`, `audio`, `file`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its MIME type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_name: Option<String>,
    /// What is in it, as base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Box<RawValue>>,
    /// Its size.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number::write")]
    pub size_bytes: Option<f64>,
    /// How long it plays.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number::write")]
    pub duration_ms: Option<f64>,
    /// In pixels.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number::write")]
    pub width: Option<f64>,
    /// In pixels.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number::write")]
    pub height: Option<f64>,
}

/// What `chat.send` answers, at once.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SendResult {
    /// The run that its events name.
    pub run_id: String,
    /// Whether it is new.
    pub status: SendStatus,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SendStatus {
    /// A run has begun.
    Started,
    /// That key is being run.
    InFlight,
    /// That key was run.
    Ok,
    /// That key was run, and took too long.
    Timeout,
    /// That key was run, and failed.
    Error,
}

/// `chat.abort`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AbortParams {
    /// Which conversation.
    pub session_key: String,
    /// Whose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Which run; all of them, if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// Whether runs beside the main one go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preserve_side_runs: Option<bool>,
}

/// What `chat.abort` answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AbortResult {
    /// Always true.
    pub ok: bool,
    /// Whether there was anything to end.
    pub aborted: bool,
    /// The runs that were ended.
    pub run_ids: Vec<String>,
}

/// `chat.inject`: a message into the history, without a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InjectParams {
    /// Which conversation.
    pub session_key: String,
    /// Whose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// What is said, by the assistant.
    pub message: String,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// What `chat.inject` answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InjectResult {
    /// Always true.
    pub ok: bool,
    /// The message's id.
    pub message_id: String,
}

/// `chat.history`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HistoryParams {
    /// Which conversation.
    pub session_key: String,
    /// Whose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Where an earlier answer ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// How many messages, 1 to 1,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// How many to leave out, from the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Inputs that wait, before this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_before: Option<u64>,
    /// Runs whose inputs are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_run_ids: Option<Vec<String>>,
    /// The message that must be among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The very session that is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// How much of each text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_chars: Option<u32>,
    /// Whether pictures and sounds are wanted, too (ours); otherwise only their type and size are told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_media: Option<bool>,
}

/// What `chat.history` answers. Messages keep the shape that they are stored in.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryResult {
    /// Which conversation.
    pub session_key: String,
    /// Its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// `{role, content: [{type, …}], timestamp}`, oldest first.
    pub messages: Vec<Box<RawValue>>,
    /// Whether there are earlier ones. A page has a bound in bytes: it may be shorter than was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
    /// The `offset` of the page before this one, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
    /// How much the model thinks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<String>,
    /// The session's row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_info: Option<Box<RawValue>>,
}

/// The event `chat`: how a run gets on.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatEvent {
    /// The run.
    pub run_id: String,
    /// Its conversation.
    pub session_key: String,
    /// Whose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The session that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawned_by: Option<String>,
    /// Counts within the run.
    pub seq: u64,
    /// What happened.
    #[serde(flatten)]
    pub state: ChatState,
}

/// What happened in a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum ChatState {
    /// It is on its way to the model.
    Status {
        /// How far.
        phase: StartupPhase,
    },
    /// More text.
    Delta {
        /// All of the message so far.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<Value>,
        /// What is new.
        delta_text: String,
        /// Whether `message` replaces what was said before.
        #[serde(skip_serializing_if = "Option::is_none")]
        replace: Option<bool>,
        /// Tokens so far.
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Value>,
    },
    /// It is done.
    Final {
        /// The whole message.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<Value>,
        /// Tokens in all.
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Value>,
        /// Why the model stopped.
        #[serde(skip_serializing_if = "Option::is_none")]
        stop_reason: Option<String>,
    },
    /// Somebody ended it.
    Aborted {
        /// What there was of the message.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<Value>,
        /// What to tell people.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
        /// Why it stopped.
        #[serde(skip_serializing_if = "Option::is_none")]
        stop_reason: Option<String>,
    },
    /// It failed.
    Error {
        /// What there was of the message.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<Value>,
        /// What to tell people.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
        /// What kind of failure.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_kind: Option<ErrorKind>,
        /// What the provider said.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_detail: Option<Value>,
        /// Tokens in all.
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Value>,
        /// Why it stopped.
        #[serde(skip_serializing_if = "Option::is_none")]
        stop_reason: Option<String>,
    },
}

/// How far a run is before the model speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartupPhase {
    /// The folder is made ready.
    PreparingWorkspace,
    /// A worktree gets its name.
    NamingWorktree,
    /// A worktree is made.
    CreatingWorktree,
    /// Its setup runs.
    RunningSetup,
    /// A machine is made ready.
    ProvisioningEnvironment,
    /// The prompt is put together.
    PreparingContext,
    /// The model is asked.
    StartingModel,
}

/// What kind of failure ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The model would not.
    Refusal,
    /// It took too long.
    Timeout,
    /// Too many requests.
    RateLimit,
    /// Too much text.
    ContextLength,
    /// Something else.
    Unknown,
}

/// The event `agent`: what an agent does, step by step.
///
/// Streams: `lifecycle`, `assistant`, `tool`, `item`, `usage`; there may be others.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentEvent {
    /// The run.
    pub run_id: String,
    /// Counts within the run.
    pub seq: u64,
    /// What `data` is about.
    pub stream: String,
    /// When, in milliseconds since 1970.
    pub ts: u64,
    /// The session that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawned_by: Option<String>,
    /// Whether nobody asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_heartbeat: Option<bool>,
    /// An object whose shape the stream decides.
    pub data: Value,
}
