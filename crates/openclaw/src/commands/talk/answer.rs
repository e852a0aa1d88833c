//! The result of a turn.

use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::chat::ErrorKind;
use openclaw_protocol::{RequestError, detail};
use serde_json::{Value, json};

use super::call::ShownCall;
use super::parts::{ShownMessage, ShownPart};
use crate::exit::Exit;

/// The maximum length of the reason of a denial.
const REASON_CHARS: usize = 300;

/// The result of a turn.
#[derive(Debug, Clone)]
pub(crate) struct TurnOutcome {
    pub(crate) ending: TurnStatus,
    /// The content of the last message, as received.
    pub(crate) content: Value,
    /// The text of the content.
    pub(crate) text: String,
    pub(crate) calls: Vec<ShownCall>,
    pub(crate) usage: Option<Value>,
    pub(crate) stop_reason: Option<String>,
    /// The error message.
    pub(crate) error: Option<String>,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnStatus {
    /// The answer is complete.
    Done,
    /// The agent stopped early, with a partial answer.
    Short,
    /// The user cancelled it.
    Cancelled,
    TimedOut,
    /// The connection to the gateway was lost.
    Gone,
    Failed,
}

impl TurnStatus {
    pub(super) fn of_stop(reason: Option<&str>) -> Self {
        match reason {
            Some("cancelled") => Self::Cancelled,
            Some("too-many-rounds" | "going-in-circles" | "cut-off") => Self::Short,
            Some("refused") => Self::Failed,
            _ => Self::Done,
        }
    }

    pub(super) fn of_abort(reason: Option<&str>) -> Self {
        match reason {
            Some("timeout") => Self::TimedOut,
            _ => Self::Cancelled,
        }
    }

    pub(super) fn of_error(kind: Option<ErrorKind>) -> Self {
        match kind {
            Some(ErrorKind::Timeout) => Self::TimedOut,
            _ => Self::Failed,
        }
    }

    pub(crate) fn exit(self) -> Exit {
        match self {
            Self::Done => Exit::Ok,
            Self::Short | Self::Failed => Exit::Failed,
            Self::Cancelled => Exit::Interrupted,
            Self::TimedOut => Exit::TimedOut,
            Self::Gone => Exit::Unavailable,
        }
    }
}

impl TurnOutcome {
    pub(super) fn new(ending: TurnStatus, message: Option<&Value>) -> Self {
        let read = message.and_then(ShownMessage::of).unwrap_or_default();
        Self {
            ending,
            content: message.and_then(|it| it.get("content")).cloned().unwrap_or(json!([])),
            text: read.text(),
            calls: Vec::new(),
            usage: None,
            stop_reason: None,
            error: None,
        }
    }

    /// A result without content.
    pub(super) fn bare(ending: TurnStatus) -> Self {
        Self::new(ending, None)
    }

    /// A failure without content.
    pub(super) fn failed(error: String) -> Self {
        Self { error: Some(error), ..Self::new(TurnStatus::Failed, None) }
    }

    /// A failure of a request to the gateway.
    pub(crate) fn refused(error: &RequestError) -> Self {
        let is_gone = matches!(error, RequestError::Refused(shape)
            if shape.detail().as_deref() == Some(detail::CONNECTION_LOST));
        match is_gone {
            true => Self::bare(TurnStatus::Gone),
            false => Self::failed(error.to_string()),
        }
    }

    /// Uses the streamed text as the answer if the turn did not complete.
    pub(super) fn or_streamed(mut self, heard: &str) -> Self {
        if self.ending != TurnStatus::Done
            && self.text.trim().is_empty()
            && !heard.trim().is_empty()
        {
            self.text = heard.to_owned();
            self.content = json!([{ "type": "text", "text": heard }]);
        }
        self
    }

    /// Whether the turn completed with an empty answer.
    pub(crate) fn is_empty(&self) -> bool {
        let content = json!({ "content": self.content });
        let parts = ShownMessage::of(&content).unwrap_or_default().parts;
        let is_something = |part: &ShownPart| match part {
            ShownPart::Text(text) => !text.trim().is_empty(),
            ShownPart::Thought(_) => false,
            _ => true,
        };
        self.ending == TurnStatus::Done
            && self.text.trim().is_empty()
            && !parts.iter().any(is_something)
    }

    /// Returns the exit code, and why it is not [`Exit::Ok`].
    pub(crate) fn exit(&self) -> (Exit, Option<String>) {
        match (self.trouble(), self.denied()) {
            (Some(trouble), _) => (self.ending.exit(), Some(trouble)),
            (None, Some(denied)) => (Exit::Denied, Some(denied)),
            (None, None) => (Exit::Ok, None),
        }
    }

    /// Describes the call that was denied, if there is one.
    fn denied(&self) -> Option<String> {
        let call = self.denied_call()?;
        let reason = clean_line(Untrusted::new(call.result()), REASON_CHARS);
        Some(format!("the call `{}` was denied: {reason}", call.asked()))
    }

    /// Returns the call that was denied, if the tool was not used later, either.
    pub(crate) fn denied_call(&self) -> Option<&ShownCall> {
        let is_denied = |call: &ShownCall| call.failure.as_deref() == Some("denied");
        let lasting = self.calls.iter().enumerate().find(|(at, call)| {
            let mut later = self.calls[at + 1..].iter();
            is_denied(call) && !later.any(|other| other.name == call.name && !other.is_error)
        });
        lasting.map(|(_, call)| call)
    }

    /// Describes the tokens that the turn used, and their cost; `None` if the provider reports none.
    pub(crate) fn used(&self) -> Option<String> {
        let usage = self.usage.as_ref()?;
        let count = |key: &str| usage.get(key).and_then(Value::as_u64).unwrap_or(0);
        let (input, output) = (count("inputTokens"), count("outputTokens"));
        if input + output == 0 {
            return None;
        }
        let cached = match count("cachedTokens") {
            0 => String::new(),
            cached => format!(" ({cached} cached)"),
        };
        let cost = usage.get("costUsd").and_then(Value::as_f64);
        let cost = cost.map(|cost| format!(", ${cost:.4}")).unwrap_or_default();
        Some(format!("{input} tokens in{cached}, {output} out{cost}"))
    }

    /// Returns why there is no complete answer; `None` if there is one.
    pub(crate) fn trouble(&self) -> Option<String> {
        let words = match (self.ending, self.stop_reason.as_deref()) {
            (TurnStatus::Done, _) => return None,
            (TurnStatus::Cancelled, _) => "cancelled",
            (TurnStatus::TimedOut, _) => "the turn timed out",
            (TurnStatus::Gone, _) => "the connection to the gateway was lost",
            (TurnStatus::Short, Some("too-many-rounds")) => {
                "the agent stopped: too many model requests in one turn (`maxRounds`)"
            }
            (TurnStatus::Short, Some("going-in-circles")) => {
                "the agent stopped: the model repeats the same calls"
            }
            (TurnStatus::Short, _) => "the answer is cut off: the model's output limit was reached",
            (TurnStatus::Failed, Some("refused")) => "the model refused to answer",
            (TurnStatus::Failed, _) => "the turn failed",
        };
        Some(match &self.error {
            Some(error) => error.clone(),
            None => words.to_owned(),
        })
    }
}
