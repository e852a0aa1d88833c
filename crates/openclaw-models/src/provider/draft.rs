//! The answer received so far, independent of the wire format.

use std::collections::VecDeque;

use serde_json::Value;

use super::calls::ReceivedCalls;
use crate::message::{Part, Reasoning, Thought};
use crate::model::{Chunk, StopReason, Usage};

/// The longest answer in bytes: text, thinking, signatures and arguments of calls.
const MAX_WORDS: usize = 4 << 20;
/// The most images and audio in bytes of base64.
const MAX_MEDIA: usize = 16 << 20;

/// What to do after a message of the stream.
pub(super) enum StreamStep {
    /// Read the next one.
    More,
    /// Finish: that was the last one.
    Over,
    /// Fail: the provider sent this error.
    Failed(Value),
}

/// The answer so far.
pub(super) struct Draft {
    /// Chunks to be returned next.
    pub(super) ready: VecDeque<Chunk>,
    pub(super) calls: ReceivedCalls,
    pub(super) usage: Option<Usage>,
    /// The provider's stop reason.
    pub(super) reason: Option<String>,
    thoughts: Vec<Thought>,
    /// The text of a refusal.
    refusal: String,
    words: usize,
    media: usize,
}

impl Draft {
    pub(super) fn new(calls: ReceivedCalls) -> Self {
        Self {
            ready: VecDeque::new(),
            calls,
            usage: None,
            reason: None,
            thoughts: Vec::new(),
            refusal: String::new(),
            words: 0,
            media: 0,
        }
    }

    /// Adds text.
    pub(super) fn text(&mut self, text: &str) {
        self.words = self.words.saturating_add(text.len());
        if !text.is_empty() {
            self.ready.push_back(Chunk::Text(text.to_owned()));
        }
    }

    /// Adds thinking to be displayed.
    pub(super) fn thinking(&mut self, text: &str) {
        self.words = self.words.saturating_add(text.len());
        if !text.is_empty() {
            self.ready.push_back(Chunk::Reasoning(text.to_owned()));
        }
    }

    /// Adds an image or an audio recording.
    pub(super) fn part(&mut self, part: Part) {
        if let Part::Image { data, .. } | Part::Audio { data, .. } = &part {
            self.media = self.media.saturating_add(data.len());
        }
        if self.media <= MAX_MEDIA {
            self.ready.push_back(Chunk::Part(part));
        }
    }

    /// Begins a thought that is sent back to the provider with the next request.
    pub(super) fn thought(&mut self, thought: Thought) {
        if let Thought::Opaque { data } = &thought {
            self.words = self.words.saturating_add(data.to_string().len());
        }
        self.thoughts.push(thought);
    }

    /// Appends to the last thought, or begins a plain one.
    pub(super) fn more_thought(&mut self, more: &str) {
        match self.thoughts.last_mut() {
            Some(Thought::Signed { text, .. } | Thought::Plain { text }) => text.push_str(more),
            _ if more.is_empty() => {}
            _ => self.thoughts.push(Thought::Plain { text: more.to_owned() }),
        }
    }

    /// Appends to the signature of the last thought.
    pub(super) fn more_signature(&mut self, more: &str) {
        self.words = self.words.saturating_add(more.len());
        if let Some(Thought::Signed { signature, .. }) = self.thoughts.last_mut() {
            signature.push_str(more);
        }
    }

    /// Appends to the text of a refusal.
    pub(super) fn refusal(&mut self, more: &str) {
        self.words = self.words.saturating_add(more.len());
        self.refusal.push_str(more);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words == 0 && self.media == 0 && self.calls.is_empty()
    }

    /// Whether the answer exceeds a limit.
    pub(super) fn is_endless(&self) -> bool {
        self.words.saturating_add(self.calls.bytes) > MAX_WORDS || self.media > MAX_MEDIA
    }

    /// Makes thoughts, calls and usage `ready`, and returns why the answer ended; `None` if the provider
    /// gave no reason, because then the answer is incomplete.
    pub(super) fn finish(&mut self, model: &str) -> Option<StopReason> {
        let reason = stop_reason(self.reason.take()?);
        let (calls, signatures) = self.calls.finish();
        let mut thoughts = std::mem::take(&mut self.thoughts);
        // Providers reject thinking without its signature.
        thoughts.retain(
            |thought| !matches!(thought, Thought::Signed { signature, .. } if signature.is_empty()),
        );
        thoughts.extend(signatures);
        let reason = match reason {
            StopReason::Done | StopReason::Refused(_)
                if calls.is_empty() && !self.refusal.is_empty() =>
            {
                StopReason::Refused(std::mem::take(&mut self.refusal))
            }
            // Not every provider reports calls as the reason.
            StopReason::Done | StopReason::StopSequence if !calls.is_empty() => StopReason::ToolUse,
            StopReason::ToolUse if calls.is_empty() => StopReason::Done,
            reason => reason,
        };
        if !thoughts.is_empty() {
            let model = model.to_owned();
            self.ready.push_back(Chunk::Echo(Reasoning { model, thoughts }));
        }
        self.ready.extend(calls.into_iter().map(Chunk::ToolUse));
        self.ready.extend(self.usage.take().map(Chunk::Usage));
        Some(reason)
    }
}

/// Maps a provider's stop reason. One table for all formats: servers that implement another provider's
/// format often keep their own reasons.
fn stop_reason(word: String) -> StopReason {
    match word.as_str() {
        "stop" | "end_turn" | "STOP" | "COMPLETE" | "completed" => StopReason::Done,
        "tool_calls" | "tool_use" | "function_call" => StopReason::ToolUse,
        "stop_sequence" | "STOP_SEQUENCE" => StopReason::StopSequence,
        "length"
        | "max_tokens"
        | "MAX_TOKENS"
        | "incomplete"
        | "model_context_window_exceeded"
        | "model_length" => StopReason::Length,
        "content_filter"
        | "refusal"
        | "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "LANGUAGE"
        | "ERROR_TOXIC" => StopReason::Refused(word),
        _ => StopReason::Other(word),
    }
}
