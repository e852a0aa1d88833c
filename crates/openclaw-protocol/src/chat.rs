//! `chat.*`: sending and aborting messages, reading history, and the events of a run.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

pub use crate::attachment::Attachment;
use crate::fields::present;
use crate::sessions::{Defaults, Row};

/// Maximum message size in bytes: a longer message fits no model.
pub const MAX_MESSAGE: usize = 4 * 1024 * 1024;
/// Error message for a longer one.
pub const MESSAGE_TOO_LONG: &str = "the message is longer than 4 MB; put it into a file";

/// Parameters of `chat.send`, which sends a message to a session.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SendParams {
    /// Session key.
    pub session_key: String,
    /// Agent id, if the key does not contain it.
    pub agent_id: Option<String>,
    /// Expected session id; the request is rejected if the session has another one.
    pub session_id: Option<String>,
    /// Message text.
    pub message: String,
    /// Goal that the message starts.
    pub intent: Option<Value>,
    /// Thinking level of the model.
    pub thinking: Option<String>,
    /// `true`, `false` or `"auto"`.
    pub fast_mode: Option<Value>,
    /// Seconds after which `"auto"` switches.
    pub fast_auto_on_seconds: Option<u64>,
    /// How to queue the message if a run is in progress.
    pub queue_mode: Option<QueueMode>,
    /// Whether to deliver the answer to the channel as well.
    pub deliver: Option<bool>,
    /// Channel that the message came from.
    pub originating_channel: Option<String>,
    /// Recipient on that channel.
    pub originating_to: Option<String>,
    /// Account on that channel.
    pub originating_account_id: Option<String>,
    /// Thread on that channel.
    pub originating_thread_id: Option<String>,
    /// Id of the message it replies to.
    pub reply_to_id: Option<String>,
    /// Attached files.
    pub attachments: Option<Vec<Attachment>>,
    /// Tools bound to this run.
    pub tool_bindings: Option<Value>,
    /// Timeout of the run, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Origin of a message that was not written by a user.
    pub system_input_provenance: Option<Value>,
    /// Receipt for `system_input_provenance`.
    pub system_provenance_receipt: Option<String>,
    /// Whether to treat a leading slash as plain text.
    pub suppress_command_interpretation: Option<bool>,
    /// Last entry known to the sender; `null` for none.
    #[serde(default, deserialize_with = "present")]
    pub expected_leaf_entry_id: Option<Value>,
    /// Routing known to the sender.
    pub expected_session_routing_contract: Option<String>,
    /// Permission mode known to the sender; `null` for none.
    #[serde(default, deserialize_with = "present")]
    pub expected_permission_mode: Option<Value>,
    /// Tool overrides known to the sender; `null` for none.
    #[serde(default, deserialize_with = "present")]
    pub expected_tool_overrides: Option<Value>,
    /// The folder to work in (ours): an absolute path on the gateway's machine. Needs the scope
    /// `operator.admin`. Default: the agent's workspace.
    pub workspace: Option<String>,
    /// Deduplicates requests: a repeated key does not start another run. It becomes the run id.
    pub idempotency_key: String,
}

/// What happens to a message that arrives while a run is in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueMode {
    /// It is passed to the current run.
    Steer,
    /// It waits for its turn.
    Followup,
    /// It waits, and is combined with other waiting messages.
    Collect,
    /// The current run is aborted.
    Interrupt,
}

/// The kind of an attached text that is not the user's own, such as a prompt of an MCP server. The
/// model sees it as external content.
pub const EXTERNAL: &str = "external";

/// Result of `chat.send`, returned immediately.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SendResult {
    /// Run id, as in the events of the run.
    pub run_id: String,
    /// Status of the run.
    pub status: SendStatus,
}

/// Status of a sent message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SendStatus {
    /// A run was started.
    Started,
    /// The run with this idempotency key is in progress.
    InFlight,
    /// The run with this idempotency key has finished.
    Ok,
    /// The run with this idempotency key timed out.
    Timeout,
    /// The run with this idempotency key failed.
    Error,
}

/// Parameters of `chat.abort`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AbortParams {
    /// Session key.
    pub session_key: String,
    /// Agent id.
    pub agent_id: Option<String>,
    /// Run to abort; all of them if absent.
    pub run_id: Option<String>,
    /// Whether side runs continue.
    pub preserve_side_runs: Option<bool>,
}

/// Result of `chat.abort`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AbortResult {
    /// Always `true`.
    pub ok: bool,
    /// Whether any run was aborted.
    pub aborted: bool,
    /// Ids of the aborted runs.
    pub run_ids: Vec<String>,
}

/// Parameters of `chat.inject`, which adds a message to the history without starting a run.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InjectParams {
    /// Session key.
    pub session_key: String,
    /// Agent id.
    pub agent_id: Option<String>,
    /// Text of the assistant message.
    pub message: String,
    /// Label.
    pub label: Option<String>,
}

/// Result of `chat.inject`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InjectResult {
    /// Always `true`.
    pub ok: bool,
    /// Message id.
    pub message_id: String,
}

/// Parameters of `chat.history`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryParams {
    /// Session key.
    pub session_key: String,
    /// Agent id.
    pub agent_id: Option<String>,
    /// Cursor from an earlier response.
    pub cursor: Option<String>,
    /// Maximum number of messages, 1 to 1,000.
    pub limit: Option<u32>,
    /// Number of messages to skip, from the end.
    pub offset: Option<u64>,
    /// Only pending inputs before this one.
    pub pending_before: Option<u64>,
    /// Runs whose inputs are requested.
    pub input_run_ids: Option<Vec<String>>,
    /// Message that the page must contain.
    pub message_id: Option<String>,
    /// Expected session id.
    pub session_id: Option<String>,
    /// Maximum characters per text.
    pub max_chars: Option<u32>,
    /// Whether to include image and audio data (ours); otherwise only type and size are returned.
    pub include_media: Option<bool>,
}

/// Result of `chat.history` and `chat.startup`. Messages keep the shape in which they are stored.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryResult {
    /// Session key.
    pub session_key: String,
    /// Session id.
    pub session_id: Option<String>,
    /// `{role, content: [{type, …}], timestamp}`, oldest first.
    pub messages: Vec<Box<RawValue>>,
    /// Whether there are earlier messages. Pages are limited in bytes and may be shorter than
    /// requested.
    pub has_more: Option<bool>,
    /// `offset` of the preceding page, if there is one.
    pub next_offset: Option<u64>,
    /// Thinking level of the model.
    pub thinking_level: Option<String>,
    /// The session's row.
    pub session_info: Option<Row>,
    /// Defaults for sessions without settings of their own.
    pub defaults: Option<Defaults>,
    /// The run in progress, for clients that have not seen its beginning.
    pub in_flight_run: Option<InFlightRun>,
}

/// A run in progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InFlightRun {
    /// Run id.
    pub run_id: String,
    /// Text of the answer so far.
    pub text: String,
}

/// Payload of the event `chat`: progress of a run.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatEvent {
    /// Run id.
    pub run_id: String,
    /// Session key.
    pub session_key: String,
    /// Agent id.
    pub agent_id: Option<String>,
    /// Session that started the run.
    pub spawned_by: Option<String>,
    /// Sequence number within the run.
    pub seq: u64,
    /// State of the run.
    #[serde(flatten)]
    pub state: ChatState,
}

/// State of a run.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum ChatState {
    /// The model has not been called yet.
    Status {
        /// Startup phase.
        phase: StartupPhase,
    },
    /// More text arrived.
    Delta {
        /// The message so far.
        message: Option<Value>,
        /// New text.
        delta_text: String,
        /// Whether `message` replaces the earlier text.
        replace: Option<bool>,
        /// Token usage so far.
        usage: Option<Value>,
    },
    /// The run has finished.
    Final {
        /// The complete message.
        message: Option<Value>,
        /// Total token usage.
        usage: Option<Value>,
        /// Why the model stopped.
        stop_reason: Option<String>,
    },
    /// The run was aborted.
    Aborted {
        /// The message up to the abort.
        message: Option<Value>,
        /// Message for the user.
        error_message: Option<String>,
        /// Why the run stopped.
        stop_reason: Option<String>,
    },
    /// The run failed.
    Error {
        /// The message up to the failure.
        message: Option<Value>,
        /// Message for the user.
        error_message: Option<String>,
        /// Kind of failure.
        error_kind: Option<ErrorKind>,
        /// Error details from the provider.
        error_detail: Option<Value>,
        /// Total token usage.
        usage: Option<Value>,
        /// Why the run stopped.
        stop_reason: Option<String>,
    },
}

/// Phase of a run before the model is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartupPhase {
    /// Preparing the workspace.
    PreparingWorkspace,
    /// Naming a worktree.
    NamingWorktree,
    /// Creating a worktree.
    CreatingWorktree,
    /// Running the setup of the worktree.
    RunningSetup,
    /// Provisioning an environment.
    ProvisioningEnvironment,
    /// Building the prompt.
    PreparingContext,
    /// Calling the model.
    StartingModel,
}

/// Kind of failure that ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The model refused.
    Refusal,
    /// The run timed out.
    Timeout,
    /// Rate limited by the provider.
    RateLimit,
    /// The context is too long for the model.
    ContextLength,
    /// Any other failure.
    Unknown,
}
