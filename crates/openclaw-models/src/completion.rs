//! Assembles an answer from its chunks.

use futures_util::StreamExt as _;

use crate::error::ModelError;
use crate::message::{Message, Part, Reasoning, ToolUse};
use crate::model::{Chunk, Model, ModelRequest, StopReason, Usage};

/// The part of an answer received so far.
///
/// ```
/// use openclaw_models::{Completion, Chunk, Message, StopReason};
///
/// let mut answer = Completion::default();
/// for chunk in [Chunk::Text("Hel".into()), Chunk::Text("lo".into()), Chunk::End(StopReason::Done)] {
///     answer.push(chunk);
/// }
/// assert_eq!(answer.stop_reason, Some(StopReason::Done));
/// assert_eq!(answer.into_message(), Message::assistant("Hello"));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Completion {
    /// The text.
    pub text: String,
    /// The thinking, for display.
    pub thinking: String,
    /// The tool calls that the model requests.
    pub tool_uses: Vec<ToolUse>,
    /// Output other than text.
    pub parts: Vec<Part>,
    /// Reasoning that the provider requires back with the next request.
    pub reasoning: Option<Reasoning>,
    /// The tokens used.
    pub usage: Option<Usage>,
    /// Why the answer ended; none while it is incomplete.
    pub stop_reason: Option<StopReason>,
}

impl Completion {
    /// Adds a chunk.
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

    /// Returns the answer as a message of the conversation.
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

/// Returns the text of an answer, in case nothing else of it matters. Reading stops when it has more
/// than `max_bytes`: a model may ignore the limit of the request.
///
/// # Errors
/// If the model fails.
pub async fn read_text(
    model: &dyn Model,
    request: ModelRequest,
    max_bytes: usize,
) -> Result<String, ModelError> {
    let mut stream = model.stream(request);
    let mut text = String::new();
    while let Some(chunk) = stream.next().await
        && text.len() <= max_bytes
    {
        if let Chunk::Text(more) = chunk? {
            text.push_str(&more);
        }
    }
    Ok(text)
}
