//! A turn: what it is given, and what it comes to.

use std::fmt;
use std::sync::Arc;

use openclaw_content::Text;
use openclaw_models::{Part, Usage};
use openclaw_sessions::SessionKey;
use openclaw_tools::{Approver, ToolSource};
use tokio_util::sync::CancellationToken;

use crate::event::Observer;

/// A message to an agent, and all that belongs to answering it.
#[derive(Clone)]
pub struct Turn {
    /// The conversation.
    pub session: SessionKey,
    /// The turn's own name.
    pub run: String,
    /// What is said.
    pub message: Vec<Part>,
    /// Who is behind it, for the audit.
    pub who: String,
    /// What the model should know now: servers, resources, notices. It is not kept.
    pub briefing: Vec<Text>,
    /// What it can do.
    pub tools: Arc<dyn ToolSource>,
    /// Who is asked before something is changed.
    pub approver: Arc<dyn Approver>,
    /// Who watches.
    pub observer: Arc<dyn Observer>,
    /// Ends the turn early. What was said until then is kept.
    pub cancel: CancellationToken,
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("session", &self.session).field("run", &self.run).finish()
    }
}

/// What a turn came to.
#[derive(Debug, Clone)]
pub struct Answer {
    /// All text of the last message.
    pub text: String,
    /// Its pictures and sounds.
    pub parts: Vec<Part>,
    /// How it ended.
    pub ended: Ended,
    /// How often the model was asked.
    pub rounds: u32,
    /// How many tools were called.
    pub calls: u32,
    /// What it cost.
    pub usage: Usage,
    /// The model that answered.
    pub model: String,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The model has answered.
    Done,
    /// Somebody stopped it.
    Cancelled,
    /// There were too many rounds.
    TooManyRounds,
    /// The model made the same call over and over.
    GoingInCircles,
    /// The answer was too long for the model.
    CutOff,
    /// The model did not want to answer.
    Refused,
}

impl Ended {
    /// The stable name, as in events.
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
