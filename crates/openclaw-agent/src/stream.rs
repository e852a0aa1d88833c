//! Reads a model's output of one round from its stream.

use futures_util::StreamExt as _;
use openclaw_models::{
    Chunk, Message, Model, ModelError, ModelRequest, Part, Reasoning, StopReason, ToolUse, Usage,
};
use tokio_util::sync::CancellationToken;

use crate::event::{LoopEvent, Observer};

/// The model's output so far.
#[derive(Debug, Default)]
pub(crate) struct ModelOutput {
    pub(crate) text: String,
    pub(crate) reasoning: Option<Reasoning>,
    pub(crate) tool_uses: Vec<ToolUse>,
    pub(crate) parts: Vec<Part>,
    pub(crate) usage: Usage,
    pub(crate) stop: Option<StopReason>,
    pub(crate) is_cancelled: bool,
}

impl ModelOutput {
    /// Whether there is no text, tool call or media.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.tool_uses.is_empty() && self.parts.is_empty()
    }

    pub(crate) fn message(&self) -> Message {
        Message::Assistant {
            text: self.text.clone(),
            reasoning: self.reasoning.clone(),
            tool_uses: self.tool_uses.clone(),
            parts: self.parts.clone(),
        }
    }
}

/// Sends a request to a model with this context window, and reads the stream until it ends or is
/// cancelled. On an error, `spoken` holds the output up to then.
pub(crate) async fn listen(
    model: &dyn Model,
    request: ModelRequest,
    window: u64,
    observer: &dyn Observer,
    cancel: &CancellationToken,
    spoken: &mut ModelOutput,
) -> Result<(), ModelError> {
    let mut stream = model.stream(request);
    loop {
        let chunk = tokio::select! {
            biased;
            () = cancel.cancelled() => {
                spoken.is_cancelled = true;
                return Ok(());
            }
            chunk = stream.next() => chunk,
        };
        match chunk {
            None => {
                return if spoken.stop.is_some() { Ok(()) } else { Err(ModelError::Interrupted) };
            }
            Some(Err(error)) => return Err(error),
            Some(Ok(chunk)) => take(chunk, window, observer, spoken),
        }
    }
}

fn take(chunk: Chunk, window: u64, observer: &dyn Observer, spoken: &mut ModelOutput) {
    match chunk {
        Chunk::Text(text) => {
            spoken.text.push_str(&text);
            observer.see(LoopEvent::Text(text));
        }
        Chunk::Reasoning(text) => observer.see(LoopEvent::Reasoning(text)),
        Chunk::Echo(reasoning) => spoken.reasoning = Some(reasoning),
        Chunk::ToolUse(tool_use) => spoken.tool_uses.push(tool_use),
        Chunk::Part(part) => {
            spoken.parts.push(part.clone());
            observer.see(LoopEvent::Part(part));
        }
        Chunk::Usage(usage) => {
            spoken.usage = usage;
            observer.see(LoopEvent::Usage { usage, window });
        }
        Chunk::Again { error, wait } => {
            let (why, seconds) = (error.cause(), wait.as_secs_f64().ceil());
            observer.see(LoopEvent::Notice(format!("{why}; retrying in {seconds} s")));
        }
        Chunk::End(stop) => spoken.stop = Some(stop),
    }
}
