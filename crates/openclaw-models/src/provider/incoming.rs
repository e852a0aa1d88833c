//! Drives the receiving of an answer.

use futures_util::stream::{self, Stream};
use serde_json::Value;

use super::draft::{Draft, StreamStep};
use super::failure::Explain;
use super::sse::{Reader, SseError};
use crate::error::ModelError;
use crate::model::{Chunk, StopReason};

/// The last message of Chat Completions.
const DONE: &str = "[DONE]";

/// Adds a message of one wire format to the answer.
pub(super) type Read = fn(&Value, &mut Draft) -> StreamStep;

/// An answer that is being received.
pub(super) struct IncomingAnswer {
    reader: Reader,
    read: Read,
    draft: Draft,
    explain: Explain,
    /// How the answer ended, until it is returned.
    end: Option<Result<StopReason, ModelError>>,
    is_over: bool,
}

impl IncomingAnswer {
    pub(super) fn new(reader: Reader, read: Read, draft: Draft, explain: Explain) -> Self {
        Self { reader, read, draft, explain, end: None, is_over: false }
    }

    pub(super) fn chunks(self) -> impl Stream<Item = Result<Chunk, ModelError>> + Send {
        stream::unfold(self, |mut this| async move {
            loop {
                if let Some(chunk) = this.draft.ready.pop_front() {
                    return Some((Ok(chunk), this));
                }
                if this.is_over {
                    return this.end.take().map(|end| (end.map(Chunk::End), this));
                }
                this.end = this.step().await;
                this.is_over = this.end.is_some();
            }
        })
    }

    /// Reads the next message. Returns how the answer ended, if it did.
    async fn step(&mut self) -> Option<Result<StopReason, ModelError>> {
        let message = match self.reader.next().await {
            Ok(message) => message,
            Err(SseError::TooLong) => return Some(self.cut_off()),
            Err(SseError::Silent) => return Some(Err(ModelError::Silent(self.explain.silence))),
            Err(SseError::Broken(error)) => return Some(Err(self.explain.transport(&error))),
        };
        // Not every server sends `[DONE]`: an answer with a stop reason is complete without it.
        let Some(message) = message.filter(|message| message != DONE) else {
            return Some(self.finish());
        };
        let Ok(message) = serde_json::from_str(&message) else {
            return Some(Err(self.explain.unreadable()));
        };
        let step = (self.read)(&message, &mut self.draft);
        if self.draft.is_endless() {
            return Some(self.cut_off());
        }
        match step {
            StreamStep::More => None,
            StreamStep::Over => Some(self.finish()),
            StreamStep::Failed(error) => Some(Err(self.explain.sent(&error))),
        }
    }

    /// Ends an answer that exceeds a limit. The part received so far is kept.
    fn cut_off(&self) -> Result<StopReason, ModelError> {
        if self.draft.is_empty() {
            return Err(ModelError::invalid("the model's answer exceeds the size limit"));
        }
        Ok(StopReason::Length)
    }

    fn finish(&mut self) -> Result<StopReason, ModelError> {
        let explain = &self.explain;
        match self.draft.finish(&explain.model) {
            Some(StopReason::Refused(word)) => Ok(StopReason::Refused(explain.short(&word))),
            Some(StopReason::Other(word)) => Ok(StopReason::Other(explain.short(&word))),
            Some(reason) => Ok(reason),
            None if self.reader.is_foreign() && self.draft.is_empty() => {
                Err(ModelError::invalid(format!(
                    "the server at the `baseUrl` of the model provider `{}` does not implement its API: \
                     check `baseUrl` and `api`",
                    explain.provider
                )))
            }
            None => Err(ModelError::Interrupted),
        }
    }
}
