//! The events of a run, up to its end.

use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::agent_event::{AgentData, AgentEvent, ToolPhase};
use openclaw_protocol::chat::{ChatEvent, ChatState, ErrorKind};
use openclaw_protocol::{Event, names};
use serde_json::Value;

/// Maximum length of a name in a progress message, in characters.
const NAME: usize = 80;

/// What happened in a run.
#[derive(Debug)]
pub(crate) enum RunStep {
    /// More text.
    Text(String),
    /// The text since the last call, as a whole.
    Replaced(String),
    /// The model thinks.
    Thinking,
    /// A tool is called.
    Called(String),
    /// The progress of a call.
    Advanced(String),
    /// A message for the user.
    Notice(String),
    /// The run is over.
    Over(Box<RunEnd>),
}

/// The end of a run.
#[derive(Debug, Clone)]
pub(crate) struct RunEnd {
    pub(crate) status: Status,
    /// The last message.
    pub(crate) message: Option<Value>,
    pub(crate) usage: Option<Value>,
    /// Why there is no complete answer.
    pub(crate) error: Option<String>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// With an answer.
    Completed,
    /// Early, with a partial answer.
    Incomplete,
    /// Aborted because its time was up.
    Timeout,
    /// Aborted.
    Aborted,
    /// It failed.
    Failed,
}

impl Status {
    /// The name in the result.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Timeout => "timeout",
            Self::Aborted => "aborted",
            Self::Failed => "failed",
        }
    }
}

impl RunEnd {
    /// An end without a message.
    pub(crate) fn bare(status: Status, error: impl Into<String>) -> Self {
        Self { status, message: None, usage: None, error: Some(error.into()) }
    }

    /// Whether the last message has images or other files.
    pub(crate) fn has_media(&self) -> bool {
        let content = self.message.as_ref().and_then(|message| message.get("content")?.as_array());
        content.into_iter().flatten().any(|part| part["type"] != "text")
    }

    /// The text of the last message.
    pub(crate) fn text(&self) -> String {
        text_of(self.message.as_ref())
    }
}

/// Returns the text of a message of the gateway: `{role, content: [{type, …}]}`, or with a string.
pub(crate) fn text_of(message: Option<&Value>) -> String {
    let content = message.and_then(|message| message.get("content"));
    let text = |part: &Value| match part.get("type").and_then(Value::as_str) {
        Some("text") => part.get("text").and_then(Value::as_str).map(ToOwned::to_owned),
        _ => None,
    };
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(text).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

impl RunStep {
    /// Converts an event; `None` if it is not about this run, or unknown.
    pub(crate) fn from_event(event: &Event, run: &str) -> Option<Self> {
        match &*event.event {
            names::CHAT => {
                let chat: ChatEvent = event.read()?;
                (chat.run_id == run).then(|| of_chat(chat.state)).flatten()
            }
            names::AGENT => {
                let agent: AgentEvent = event.read()?;
                (agent.run_id == run).then(|| of_agent(agent.data)).flatten()
            }
            _ => None,
        }
    }
}

fn of_chat(state: ChatState) -> Option<RunStep> {
    let over = |end| Some(RunStep::Over(Box::new(end)));
    match state {
        ChatState::Status { .. } => None,
        ChatState::Delta { message, replace: Some(true), .. } => {
            Some(RunStep::Replaced(text_of(message.as_ref())))
        }
        ChatState::Delta { delta_text, .. } => Some(RunStep::Text(delta_text)),
        ChatState::Final { message, usage, stop_reason } => {
            let (status, error) = match stop_reason.as_deref() {
                Some("too-many-rounds") => {
                    (Status::Incomplete, Some("too many model requests in one run (`maxRounds`)"))
                }
                Some("going-in-circles") => {
                    (Status::Incomplete, Some("the model repeats the same calls"))
                }
                Some("cut-off") => {
                    (Status::Incomplete, Some("the model's output limit was reached"))
                }
                Some("refused") => (Status::Failed, Some("the model refused to answer")),
                _ => (Status::Completed, None),
            };
            over(RunEnd { status, message, usage, error: error.map(ToOwned::to_owned) })
        }
        ChatState::Aborted { message, error_message, stop_reason } => {
            let status = match stop_reason.as_deref() {
                Some("timeout") => Status::Timeout,
                _ => Status::Aborted,
            };
            over(RunEnd { status, message, usage: None, error: error_message })
        }
        ChatState::Error { message, error_message, error_kind, usage, .. } => {
            let words = match error_kind {
                Some(ErrorKind::Timeout) => "the model did not respond in time",
                _ => "the run failed",
            };
            let error = error_message.unwrap_or_else(|| words.to_owned());
            over(RunEnd { status: Status::Failed, message, usage, error: Some(error) })
        }
    }
}

fn of_agent(data: AgentData) -> Option<RunStep> {
    let line = |text: &str| clean_line(Untrusted::new(text), NAME);
    match data {
        AgentData::Reasoning(_) => Some(RunStep::Thinking),
        AgentData::Notice(notice) => Some(RunStep::Notice(line(&notice.text))),
        AgentData::Tool(ToolPhase::Start(start)) => {
            Some(RunStep::Called(line(start.label.as_deref().unwrap_or(&start.name))))
        }
        AgentData::Tool(ToolPhase::Update(update)) => {
            let message = update.progress.and_then(|it| it.message).unwrap_or_default();
            Some(RunStep::Advanced(format!("{}: {}", line(&update.name), line(&message))))
        }
        AgentData::Tool(ToolPhase::Result(_))
        | AgentData::Lifecycle(_)
        | AgentData::Assistant(_)
        | AgentData::Approval(_)
        | AgentData::Usage(_)
        | AgentData::Other { .. } => None,
    }
}
