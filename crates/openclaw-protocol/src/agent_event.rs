//! The event `agent`: the steps of a run, by stream.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_with::skip_serializing_none;

/// Payload of the event `agent`: a step of a run.
#[derive(Debug, Clone)]
pub struct AgentEvent {
    /// Run id.
    pub run_id: String,
    /// Sequence number within the run.
    pub seq: u64,
    /// Timestamp, in milliseconds since 1970.
    pub ts: u64,
    /// Session key. The Node gateway sends it, too; the published schema lacks it.
    pub session_key: Option<String>,
    /// Session that started the run.
    pub spawned_by: Option<String>,
    /// Whether the run is a heartbeat, not a response to a user.
    pub is_heartbeat: Option<bool>,
    /// The step. On the wire, its stream is beside it.
    pub data: AgentData,
}

/// A step of a run: the stream and its data.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum AgentData {
    /// The run begins or ends (`lifecycle`).
    Lifecycle(RunPhase),
    /// More of the answer (`assistant`).
    Assistant(TextDelta),
    /// More of the model's reasoning (`reasoning`).
    Reasoning(TextDelta),
    /// A tool call (`tool`).
    Tool(ToolPhase),
    /// A call that waits for approval, for clients that show approvals as part of the turn (`approval`).
    Approval(ApprovalPhase),
    /// The tokens used so far (`usage`).
    Usage(RunUsage),
    /// A notice for the user (`notice`).
    Notice(Notice),
    /// A stream, a phase or data that we do not know: other gateways send more.
    #[serde(serialize_with = "only_data")]
    Other {
        /// Name of the stream.
        stream: String,
        /// Its data.
        data: Value,
    },
}

/// The beginning or the end of a run.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum RunPhase {
    /// The run begins.
    Start {
        /// Timestamp, in milliseconds since 1970.
        started_at: Option<u64>,
        /// Session key.
        session_key: Option<String>,
        /// The user's message: its sender may be another client.
        message: Option<String>,
    },
    /// The run is over.
    End {
        /// Timestamp, in milliseconds since 1970.
        ended_at: Option<u64>,
    },
    /// The run failed.
    Error {
        /// Message for the user.
        error: Option<String>,
        /// Timestamp, in milliseconds since 1970.
        ended_at: Option<u64>,
    },
}

/// A piece of text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TextDelta {
    /// The new text.
    pub delta: String,
}

/// A phase of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "lowercase")]
pub enum ToolPhase {
    /// The call has started.
    Start(ToolStart),
    /// The call has made progress.
    Update(ToolUpdate),
    /// The call has ended.
    Result(ToolResult),
}

/// The start of a tool call.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolStart {
    /// The model's id for the call.
    pub tool_call_id: String,
    /// Tool name.
    #[serde(default)]
    pub name: String,
    /// Display name of the tool; empty for an unknown one.
    pub label: Option<String>,
    /// The arguments; a string if the model wrote no valid JSON.
    pub args: Option<Value>,
}

/// The progress of a tool call.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolUpdate {
    /// The model's id for the call.
    pub tool_call_id: String,
    /// Tool name.
    #[serde(default)]
    pub name: String,
    /// How far it is.
    pub progress: Option<ToolProgress>,
    /// The same as a result, for clients that show nothing else.
    pub partial_result: Option<Value>,
}

/// How far a tool call is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolProgress {
    /// Progress so far.
    pub done: f64,
    /// Progress in percent, if known.
    pub percent: Option<f64>,
    /// Progress message. Untrusted.
    pub message: Option<String>,
}

/// The end of a tool call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// The model's id for the call.
    pub tool_call_id: String,
    /// Tool name.
    #[serde(default)]
    pub name: String,
    /// Whether the call failed.
    #[serde(default)]
    pub is_error: bool,
    /// The result as text, shortened for display.
    #[serde(default)]
    pub text: String,
    /// The same as `{content: [{type, …}]}`.
    pub result: Option<Value>,
    /// Whether the result has content from outside.
    #[serde(default)]
    pub untrusted: bool,
    /// How long the call took, in milliseconds.
    pub duration_ms: Option<f64>,
    /// Why the tool returned no result of its own, if so.
    pub failure: Option<String>,
    /// The check that refused the call, if one did: `nobody-to-ask`, `changed`, …
    pub refused_by: Option<String>,
    /// Names of suspicious patterns in the result.
    #[serde(default)]
    pub findings: Vec<String>,
    /// The file with the full result, if models get it shortened.
    pub kept_in: Option<String>,
}

/// A phase of an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "lowercase")]
pub enum ApprovalPhase {
    /// An approval is requested.
    Requested(RequestedApproval),
}

/// A call that waits for approval.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestedApproval {
    /// Kind of approval; clients know `exec` only.
    pub kind: Option<String>,
    /// `pending`.
    pub status: Option<String>,
    /// Approval id.
    pub approval_id: Option<String>,
    /// One-line title.
    pub title: String,
    /// The tool and its arguments.
    pub command: Option<String>,
}

/// The tokens used so far.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunUsage {
    /// Input tokens, including cached ones.
    pub input_tokens: u64,
    /// Output tokens, including thinking.
    pub output_tokens: u64,
    /// Input tokens that were read from the provider's cache.
    #[serde(default)]
    pub cached_tokens: u64,
    /// What it cost in US dollars, if the provider reports that.
    pub cost_usd: Option<f64>,
    /// The context window of the model, in tokens.
    pub context_tokens: u64,
}

/// A notice for the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// Its text.
    pub text: String,
}

impl AgentData {
    const LIFECYCLE: &str = "lifecycle";
    const ASSISTANT: &str = "assistant";
    const REASONING: &str = "reasoning";
    const TOOL: &str = "tool";
    const APPROVAL: &str = "approval";
    const USAGE: &str = "usage";
    const NOTICE: &str = "notice";

    /// Returns the name of the stream.
    #[must_use]
    pub fn stream(&self) -> &str {
        match self {
            Self::Lifecycle(_) => Self::LIFECYCLE,
            Self::Assistant(_) => Self::ASSISTANT,
            Self::Reasoning(_) => Self::REASONING,
            Self::Tool(_) => Self::TOOL,
            Self::Approval(_) => Self::APPROVAL,
            Self::Usage(_) => Self::USAGE,
            Self::Notice(_) => Self::NOTICE,
            Self::Other { stream, .. } => stream,
        }
    }

    /// Reads the data of a stream; [`Other`](Self::Other) if it is not what we know.
    fn read(stream: &str, data: Value) -> Self {
        let known = match stream {
            Self::LIFECYCLE => RunPhase::deserialize(&data).map(Self::Lifecycle),
            Self::ASSISTANT => TextDelta::deserialize(&data).map(Self::Assistant),
            Self::REASONING => TextDelta::deserialize(&data).map(Self::Reasoning),
            Self::TOOL => ToolPhase::deserialize(&data).map(Self::Tool),
            Self::APPROVAL => ApprovalPhase::deserialize(&data).map(Self::Approval),
            Self::USAGE => RunUsage::deserialize(&data).map(Self::Usage),
            Self::NOTICE => Notice::deserialize(&data).map(Self::Notice),
            _ => return Self::Other { stream: stream.to_owned(), data },
        };
        known.unwrap_or_else(|_| Self::Other { stream: stream.to_owned(), data })
    }
}

fn only_data<S: Serializer>(_: &str, data: &Value, serializer: S) -> Result<S::Ok, S::Error> {
    data.serialize(serializer)
}

/// An event as it is on the wire: the stream is beside its data.
#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a, D> {
    run_id: Cow<'a, str>,
    seq: u64,
    stream: Cow<'a, str>,
    ts: u64,
    session_key: Option<Cow<'a, str>>,
    spawned_by: Option<Cow<'a, str>>,
    is_heartbeat: Option<bool>,
    data: D,
}

impl Serialize for AgentEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let wire = Wire {
            run_id: Cow::Borrowed(&self.run_id),
            seq: self.seq,
            stream: Cow::Borrowed(self.data.stream()),
            ts: self.ts,
            session_key: self.session_key.as_deref().map(Cow::Borrowed),
            spawned_by: self.spawned_by.as_deref().map(Cow::Borrowed),
            is_heartbeat: self.is_heartbeat,
            data: &self.data,
        };
        wire.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for AgentEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire: Wire<'_, Value> = Wire::deserialize(deserializer)?;
        Ok(Self {
            run_id: wire.run_id.into_owned(),
            seq: wire.seq,
            ts: wire.ts,
            session_key: wire.session_key.map(Cow::into_owned),
            spawned_by: wire.spawned_by.map(Cow::into_owned),
            is_heartbeat: wire.is_heartbeat,
            data: AgentData::read(&wire.stream, wire.data),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// An event of a stream, as it is on the wire.
    fn wire(stream: &str, data: &str) -> String {
        format!(
            r#"{{"runId":"r","seq":1,"stream":"{stream}","ts":2,"sessionKey":"k","data":{data}}}"#
        )
    }

    fn read(text: &str) -> AgentEvent {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn events_of_our_gateway_are_written_as_they_are_read() {
        for (stream, data) in [
            ("lifecycle", r#"{"phase":"start","startedAt":1,"sessionKey":"k","message":"hi"}"#),
            ("lifecycle", r#"{"phase":"end","endedAt":1}"#),
            ("lifecycle", r#"{"phase":"error","error":"no","endedAt":1}"#),
            ("assistant", r#"{"delta":"hi"}"#),
            ("reasoning", r#"{"delta":"hm"}"#),
            (
                "tool",
                r#"{"phase":"start","toolCallId":"c","name":"add","label":"","args":{"b":1,"a":2}}"#,
            ),
            (
                "tool",
                r#"{"phase":"update","toolCallId":"c","name":"add","progress":{"done":2.0,"percent":null,"message":"m"},"partialResult":{"content":[]}}"#,
            ),
            (
                "tool",
                r#"{"phase":"result","toolCallId":"c","name":"add","isError":false,"text":"5","result":{"content":[]},"untrusted":true,"durationMs":1.5,"failure":null,"refusedBy":null,"findings":["x"],"keptIn":null}"#,
            ),
            (
                "approval",
                r#"{"phase":"requested","kind":"exec","status":"pending","approvalId":"1","title":"t","command":"c"}"#,
            ),
            ("usage", r#"{"inputTokens":1,"outputTokens":2,"cachedTokens":0,"contextTokens":9}"#),
            ("notice", r#"{"text":"n"}"#),
        ] {
            let text = wire(stream, data);
            let event = read(&text);
            assert!(!matches!(event.data, AgentData::Other { .. }), "{text}");
            assert_eq!(serde_json::to_string(&event).unwrap(), text);
        }
    }

    #[test]
    fn what_is_unknown_is_kept() {
        for (stream, data) in [
            ("item", r#"{"itemId":"i","phase":"start"}"#),
            ("tool", r#"{"phase":"paused","toolCallId":"c"}"#),
            ("tool", r#"{"phase":"start"}"#),
            ("lifecycle", r#"{"phase":"fallback_step"}"#),
            ("usage", r#"{"inputTokens":1}"#),
            ("notice", r#"{"texts":["later"]}"#),
        ] {
            let text = wire(stream, data);
            let event = read(&text);
            assert!(matches!(event.data, AgentData::Other { .. }), "{text}");
            assert_eq!(serde_json::to_string(&event).unwrap(), text);
        }
    }

    #[test]
    fn events_of_the_node_gateway_may_have_less_and_more() {
        let start = json!({ "phase": "start", "name": "read", "toolCallId": "c", "args": {},
                            "meta": "later" });
        let AgentData::Tool(ToolPhase::Start(start)) = AgentData::read("tool", start) else {
            panic!("the start of a call")
        };
        assert_eq!((start.name.as_str(), start.label), ("read", None));
        let result = json!({ "phase": "result", "toolCallId": "c", "isError": true, "meta": "x" });
        let AgentData::Tool(ToolPhase::Result(result)) = AgentData::read("tool", result) else {
            panic!("the end of a call")
        };
        assert!(result.is_error && result.duration_ms.is_none());
        let thought = json!({ "text": "all of it" });
        assert!(matches!(AgentData::read("reasoning", thought), AgentData::Reasoning(_)));
    }
}
