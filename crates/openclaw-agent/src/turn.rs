//! The input and the result of a turn.

use std::fmt;
use std::sync::Arc;

use openclaw_content::Text;
use openclaw_models::{Part, Usage};
use openclaw_sessions::SessionKey;
use openclaw_tools::{Approver, PermissionMode, ToolSource};
use openclaw_trace::SpanContext;
use tokio_util::sync::CancellationToken;

use crate::event::Observer;

/// A message to an agent, and everything needed to answer it.
#[derive(Clone)]
pub struct Turn {
    /// The session.
    pub session: SessionKey,
    /// Id of the turn.
    pub run: String,
    /// The user's message.
    pub message: Vec<Part>,
    /// On whose behalf the turn runs, for the audit log.
    pub who: String,
    /// Current information for the model: servers, resources, notices. Not stored.
    pub briefing: Vec<Text>,
    /// The tools available to the agent.
    pub tools: Arc<dyn ToolSource>,
    /// Approves tool calls.
    pub approver: Arc<dyn Approver>,
    /// How strict the session is about tool calls.
    pub permission: PermissionMode,
    /// Receives the events of the turn.
    pub observer: Arc<dyn Observer>,
    /// Cancels the turn. Messages up to then are stored.
    pub cancel: CancellationToken,
    /// The span of the turn.
    pub trace: Option<SpanContext>,
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("session", &self.session).field("run", &self.run).finish()
    }
}

/// The result of a turn.
#[derive(Debug, Clone)]
pub struct TurnResult {
    /// The text of the last message.
    pub text: String,
    /// Its images and audio.
    pub parts: Vec<Part>,
    /// Why the turn ended.
    pub ended: EndReason,
    /// Number of requests to the model.
    pub rounds: u32,
    /// Number of tool calls.
    pub calls: u32,
    /// Token usage of the whole turn.
    pub usage: Usage,
    /// The model that answered.
    pub model: String,
}

/// Why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// The model has answered.
    Done,
    /// It was cancelled.
    Cancelled,
    /// The limit of rounds was reached.
    TooManyRounds,
    /// The model repeated the same call too often.
    GoingInCircles,
    /// The answer was cut off at the model's length limit.
    CutOff,
    /// The model refused to answer.
    Refused,
}

impl EndReason {
    /// The stable name, as used in events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Cancelled => "cancelled",
            Self::TooManyRounds => "too-many-rounds",
            Self::GoingInCircles => "going-in-circles",
            Self::CutOff => "cut-off",
            Self::Refused => "refused",
        }
    }
}
