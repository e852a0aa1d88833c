//! An answer, piece by piece.

use std::collections::VecDeque;

use futures_util::StreamExt as _;
use futures_util::stream::{self, Stream};
use genai::chat::{ChatStream, ChatStreamEvent, ContentPart, StreamEnd};

use super::calls::Calls;
use super::failure::Explain;
use super::frames::Frames;
use crate::error::ModelError;
use crate::message::{Part, Reasoning, Thought, ToolUse};
use crate::model::{Chunk, StopReason, Usage};
use crate::settings::ApiKind;

/// Words of an answer, thoughts and arguments among them, in bytes. A model that says more will not stop.
const MAX_WORDS: usize = 4 << 20;
/// Its pictures and recordings, in base64.
const MAX_MEDIA: usize = 16 << 20;
/// All that is sent for it: a few letters come in a message of some hundred bytes.
const MAX_BYTES: usize = 128 << 20;

/// An answer under way.
pub(super) struct Incoming {
    kind: ApiKind,
    stream: ChatStream,
    frames: Frames,
    calls: Option<Calls>,
    explain: Explain,
    ready: VecDeque<Result<Chunk, ModelError>>,
    /// How much was said, in bytes.
    words: usize,
    /// How much of pictures and recordings there was, in bytes.
    media: usize,
    is_over: bool,
}

impl Incoming {
    pub(super) fn new(
        kind: ApiKind,
        stream: ChatStream,
        frames: Frames,
        calls: Calls,
        explain: Explain,
    ) -> Self {
        let (calls, ready) = (Some(calls), VecDeque::new());
        Self { kind, stream, frames, calls, explain, ready, words: 0, media: 0, is_over: false }
    }

    pub(super) fn chunks(self) -> impl Stream<Item = Result<Chunk, ModelError>> + Send {
        stream::unfold(self, |mut this| async move {
            loop {
                if let Some(chunk) = this.ready.pop_front() {
                    return Some((chunk, this));
                }
                if this.is_over {
                    return None;
                }
                let event = this.stream.next().await;
                this.take(event);
            }
        })
    }

    fn take(&mut self, event: Option<genai::Result<ChatStreamEvent>>) {
        self.take_parts();
        match event {
            Some(Ok(event)) => self.read(event),
            Some(Err(error)) => {
                let refusal = self.frames.seen().refusal.take();
                if let Some(reason) = refusal {
                    return self.end(StopReason::Refused(self.explain.short(&reason)));
                }
                let sent = self.frames.seen().failure.take();
                let told = sent.map(|sent| self.explain.sent(&sent));
                self.fail(told.unwrap_or_else(|| self.explain.error(&error)));
            }
            None => self.broke_off(),
        }
        let is_endless = self.words > MAX_WORDS
            || self.media > MAX_MEDIA
            || self.frames.seen().bytes > MAX_BYTES;
        if is_endless && !self.is_over {
            self.cut_off();
        }
    }

    fn take_parts(&mut self) {
        let parts = std::mem::take(&mut self.frames.seen().parts);
        for part in parts {
            if let Part::Image { data, .. } | Part::Audio { data, .. } = &part {
                self.media = self.media.saturating_add(data.len());
            }
            if self.media <= MAX_MEDIA {
                self.ready.push_back(Ok(Chunk::Part(part)));
            }
        }
    }

    /// The answer has no end, so it gets one here. What came of it stays.
    fn cut_off(&mut self) {
        if self.words == 0 && self.media == 0 {
            self.fail(ModelError::invalid("the model's answer has no end: it was given up"));
        } else {
            self.end(StopReason::Length);
        }
    }

    fn read(&mut self, event: ChatStreamEvent) {
        let chunk = match event {
            ChatStreamEvent::Chunk(chunk) => Chunk::Text(chunk.content),
            ChatStreamEvent::ReasoningChunk(chunk) => Chunk::Reasoning(chunk.content),
            ChatStreamEvent::ToolCallChunk(chunk) => {
                if let Some(calls) = &mut self.calls {
                    calls.mention(chunk.tool_call);
                }
                return;
            }
            ChatStreamEvent::End(end) => return self.finish(end),
            ChatStreamEvent::Start
            | ChatStreamEvent::ThoughtSignatureChunk(_)
            | ChatStreamEvent::Heartbeat => return,
        };
        if let Chunk::Text(text) | Chunk::Reasoning(text) = &chunk {
            if text.is_empty() {
                return;
            }
            self.words = self.words.saturating_add(text.len());
        }
        self.ready.push_back(Ok(chunk));
    }

    fn finish(&mut self, mut end: StreamEnd) {
        use genai::chat::StopReason as Reason;
        if self.frames.seen().failure.is_some() {
            return self.broke_off();
        }
        // Ollama's older versions give no reason; that there are numbers says that it is the end.
        let is_end = self.kind == ApiKind::Ollama && end.captured_usage.is_some();
        let reason = match end.captured_stop_reason.take() {
            Some(reason) => reason,
            None if is_end => Reason::Completed(String::new()),
            None => return self.broke_off(),
        };
        let mut thoughts = Vec::new();
        let thinking = end.captured_reasoning_content.take();
        if let Some(text) = thinking.filter(|_| self.frames.seen().thinks_aloud) {
            thoughts.push(Thought::Plain { text });
        }
        let content = end.captured_content.take().map(|content| content.into_parts());
        let (mut captured, mut signature) = (self.frames.seen().calls.finish(), None);
        for part in content.unwrap_or_default() {
            match part {
                ContentPart::ToolCall(call) => captured.push(call),
                ContentPart::ThoughtSignature(text) => signature = Some(text),
                ContentPart::ReasoningContent(text) => {
                    let signature = signature.take();
                    thoughts.extend(signature.map(|signature| Thought::Signed { text, signature }));
                }
                ContentPart::Custom(custom) => {
                    thoughts.push(Thought::Opaque { data: custom.data });
                }
                _ => {}
            }
        }
        let finished = self.calls.take().map(|calls| calls.finish(captured));
        let (calls, signatures) = finished.unwrap_or_default();
        thoughts.extend(signatures);
        let of_call = |call: &ToolUse| call.id.len() + call.name.len() + call.arguments.len();
        let of_calls: usize = calls.iter().map(of_call).sum();
        if of_calls > MAX_WORDS {
            self.words = self.words.saturating_add(of_calls);
            return self.cut_off();
        }
        let reason = match reason {
            Reason::MaxTokens(_) => StopReason::Length,
            Reason::ContentFilter(reason) => StopReason::Refused(self.explain.short(&reason)),
            Reason::Other(reason) => StopReason::Other(self.explain.short(&reason)),
            Reason::StopSequence(_) if calls.is_empty() => StopReason::StopSequence,
            // Not every provider says that there are calls.
            _ if calls.is_empty() => StopReason::Done,
            _ => StopReason::ToolUse,
        };
        if !thoughts.is_empty() {
            let model = self.explain.model.clone();
            self.ready.push_back(Ok(Chunk::Echo(Reasoning { model, thoughts })));
        }
        self.ready.extend(calls.into_iter().map(|call| Ok(Chunk::ToolUse(call))));
        if let Some(usage) = end.captured_usage {
            self.ready.push_back(Ok(Chunk::Usage(numbers(&usage))));
        }
        self.end(reason);
    }

    fn end(&mut self, reason: StopReason) {
        self.ready.push_back(Ok(Chunk::End(reason)));
        self.is_over = true;
    }

    fn fail(&mut self, error: ModelError) {
        self.ready.push_back(Err(error));
        self.is_over = true;
    }

    /// The stream ended, but the answer did not.
    fn broke_off(&mut self) {
        let (sent, is_something_else) = {
            let mut seen = self.frames.seen();
            (seen.failure.take(), seen.messages == 0 && seen.blocks > 0)
        };
        self.fail(match sent {
            Some(sent) => self.explain.sent(&sent),
            None if is_something_else => ModelError::invalid(format!(
                "what answers for the model provider `{}` does not speak its API: check `baseUrl` and \
                 `api`",
                self.explain.provider
            )),
            None => ModelError::Interrupted,
        });
    }
}

fn numbers(usage: &genai::chat::Usage) -> Usage {
    let number = |count: Option<i32>| u64::try_from(count.unwrap_or(0)).unwrap_or(0);
    let cached = usage.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
    Usage {
        input_tokens: number(usage.prompt_tokens),
        output_tokens: number(usage.completion_tokens),
        cached_tokens: number(cached),
    }
}
