//! An answer, put together from its pieces.

use crate::message::{Message, Part, Reasoning, ToolUse};
use crate::model::{Chunk, StopReason, Usage};

/// What has arrived of an answer so far.
///
/// ```
/// use openclaw_models::{Answer, Chunk, Message, StopReason};
///
/// let mut answer = Answer::default();
/// for chunk in [Chunk::Text("Hel".into()), Chunk::Text("lo".into()), Chunk::End(StopReason::Done)] {
///     answer.push(chunk);
/// }
/// assert_eq!(answer.stop_reason, Some(StopReason::Done));
/// assert_eq!(answer.into_message(), Message::assistant("Hello"));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The words.
    pub text: String,
    /// The thinking, as people may see it.
    pub thinking: String,
    /// The calls that are to be made.
    pub tool_uses: Vec<ToolUse>,
    /// What was produced besides words.
    pub parts: Vec<Part>,
    /// What the provider wants to see again.
    pub reasoning: Option<Reasoning>,
    /// What it took.
    pub usage: Option<Usage>,
    /// Why it ended, if it did.
    pub stop_reason: Option<StopReason>,
}

impl Answer {
    /// Adds a piece.
    pub fn push(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Text(text) => self.text.push_str(&text),
            Chunk::Reasoning(text) => self.thinking.push_str(&text),
            Chunk::ToolUse(call) => self.tool_uses.push(call),
            Chunk::Part(part) => self.parts.push(part),
            Chunk::Echo(reasoning) => self.reasoning = Some(reasoning),
            Chunk::Usage(usage) => self.usage = Some(usage),
            Chunk::Again { .. } => {}
            Chunk::End(reason) => self.stop_reason = Some(reason),
        }
    }

    /// The answer as a part of the conversation.
    #[must_use]
    pub fn into_message(self) -> Message {
        Message::Assistant {
            text: self.text,
            reasoning: self.reasoning,
            tool_uses: self.tool_uses,
            parts: self.parts,
        }
    }
}
