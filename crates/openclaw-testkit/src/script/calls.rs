//! How calls are answered: slowly, twice, wrongly, or with a request to the client.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Script;

/// A request that the server sends to the client during a call.
///
/// On 2026-07-28 it is sent in an `input_required` result; a `Ping` does not exist there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// `ping`
    Ping,
    /// `roots/list`
    Roots,
    /// `sampling/createMessage`
    Sampling,
    /// `elicitation/create` with a form.
    Elicitation,
    /// `elicitation/create` with a URL.
    ElicitationUrl,
}

impl Ask {
    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Ping => "ping",
            Self::Roots => "roots/list",
            Self::Sampling => "sampling/createMessage",
            Self::Elicitation | Self::ElicitationUrl => "elicitation/create",
        }
    }

    /// The parameters; `modern` for 2026-07-28.
    pub(crate) fn params(self, modern: bool) -> Value {
        match self {
            Self::Ping | Self::Roots => json!({}),
            Self::Sampling => json!({
                "messages": [{"role": "user", "content": {"type": "text", "text": "Say hello"}}],
                "maxTokens": 16
            }),
            Self::Elicitation => json!({
                "message": "What is your name?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}},
                    "required": ["name"]
                }
            }),
            Self::ElicitationUrl if modern => json!({
                "mode": "url",
                "message": "Please log in",
                "url": "https://example.com/login?state=1"
            }),
            Self::ElicitationUrl => json!({
                "mode": "url",
                "message": "Please log in",
                "url": "https://example.com/login?state=1",
                "elicitationId": "elicitation-1"
            }),
        }
    }
}

/// A JSON-RPC error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RpcError {
    /// The code, such as -32603.
    pub code: i64,
    /// The message.
    pub message: String,
    /// Additional data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

/// How calls are answered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallScript {
    /// The process exits with code 1 right after the response to this many calls.
    pub crash_after: Option<u64>,
    /// After this many calls nothing is answered, not even a ping.
    pub silent_after: Option<u64>,
    /// The delay of every call in milliseconds; calls are delayed in parallel.
    pub delay_ms: u64,
    /// Every call is answered twice.
    pub answer_twice: bool,
    /// Calls are answered with an id that the client never used.
    pub wrong_id: bool,
    /// Numeric ids are returned as strings.
    pub string_ids: bool,
    /// Responses are sent in a JSON-RPC batch, together with a notification.
    pub batch: bool,
    /// An unsolicited response is sent before every response.
    pub unsolicited: bool,
    /// Every call sends this request to the client and returns the client's response.
    pub ask: Option<Ask>,
    /// Every call sends this many `roots/list` to the client, and reads nothing meanwhile.
    pub flood: usize,
    /// `prompts/get` and `resources/read` send the request of `ask`, too (before 2026-07-28).
    pub ask_always: bool,
    /// A call that is cancelled goes on, without any delay that is left.
    pub stubborn: bool,
    /// Requests to the client carry the id of the client's own request.
    pub ask_with_client_id: bool,
    /// The interval of pings to the client in milliseconds.
    pub ping_every_ms: Option<u64>,
    /// After this many calls the tool list changes, and the client is notified.
    pub list_changed_after: Option<u64>,
    /// A log notification is sent before every response.
    pub log: bool,
    /// These tools are listed, but calls of them fail with error -32602 "Unknown tool".
    pub unknown_tools: Vec<String>,
    /// Every call is answered with this JSON-RPC error.
    pub error: Option<RpcError>,
    /// Images are invalid base64.
    pub bad_base64: bool,
    /// Calls are executed as tasks, of 2025-11-25 or of the extension of 2026-07-28.
    pub task: Option<TaskScript>,
}

/// How a task proceeds. With `ask` it requests that input first (2026-07-28).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaskScript {
    /// It ends at this poll; `None` if it never ends.
    pub polls: Option<u32>,
    /// The suggested interval between polls in milliseconds.
    pub poll_ms: u64,
    /// It ends with a JSON-RPC error.
    pub fails: bool,
}

impl CallScript {
    /// Whether a call may take the fast path through the engine.
    pub(crate) fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

setters! { calls:
    /// Exits right after the response to the `calls`th call.
    crash_after_calls(calls: u64) => crash_after = Some(calls);
    /// Stops answering after this many calls.
    silent_after_calls(calls: u64) => silent_after = Some(calls);
    /// Delays the response to every call.
    call_delay_ms(ms: u64) => delay_ms = ms;
    /// Answers every call twice.
    answer_twice() => answer_twice = true;
    /// Answers calls with an id that the client never used.
    wrong_id() => wrong_id = true;
    /// Returns ids as strings.
    string_ids() => string_ids = true;
    /// Answers in JSON-RPC batches.
    batch_answers() => batch = true;
    /// Sends an unsolicited response before every response.
    unsolicited() => unsolicited = true;
    /// Sends a request to the client during every call.
    ask(ask: Ask) => ask = Some(ask);
    /// Sends this many `roots/list` during every call, and reads nothing meanwhile.
    flood(requests: usize) => flood = requests;
    /// Sends the request of `ask` during `prompts/get` and `resources/read`, too (before 2026-07-28).
    ask_always() => ask_always = true;
    /// Goes on with a call when it is cancelled, without any delay that is left.
    stubborn() => stubborn = true;
    /// Sends requests with the id of the client's own request.
    ask_with_client_id() => ask_with_client_id = true;
    /// Pings the client at this interval.
    ping_every_ms(ms: u64) => ping_every_ms = Some(ms);
    /// Changes the tool list after this many calls, and notifies the client.
    list_changed_after_calls(calls: u64) => list_changed_after = Some(calls);
    /// Sends a log notification before every response.
    log_notifications() => log = true;
    /// Answers every call with this JSON-RPC error. If it requires visits to URLs (`elicitationId`), those of
    /// the first call are reported at the second.
    call_error(error: RpcError) => error = Some(error);
    /// Executes calls as tasks.
    as_tasks(task: TaskScript) => task = Some(task);
    /// Sends images that are invalid base64.
    bad_base64() => bad_base64 = true;
}

impl Script {
    /// Lists this tool, but rejects calls of it as unknown.
    pub fn unknown_tool(mut self, name: impl Into<String>) -> Self {
        self.calls.unknown_tools.push(name.into());
        self
    }
}
