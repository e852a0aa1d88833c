//! What `genai` reads but does not tell.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use genai::chat::{ChatFrameSink, FrameCtx, RawFrameRef};
use serde_json::{Value, json};

use super::deltas::Deltas;
use crate::message::Part;
use crate::settings::ApiKind;

/// What was seen on the wire.
#[derive(Default)]
pub(super) struct Seen {
    /// How many pieces there were, between empty lines or in lines: also of what is no message.
    pub(super) blocks: u64,
    /// How many messages there were.
    pub(super) messages: u64,
    /// How many bytes they had.
    pub(super) bytes: usize,
    /// Pictures and recordings that were not fetched yet.
    pub(super) parts: Vec<Part>,
    /// An error that the provider sent, as it would send it by itself.
    pub(super) failure: Option<Value>,
    /// The provider does not want to answer, and why.
    pub(super) refusal: Option<String>,
    /// The calls of Chat Completions.
    pub(super) calls: Deltas,
    /// Thinking came in the field in which such providers want it back.
    pub(super) thinks_aloud: bool,
}

/// Watches the messages of one answer.
#[derive(Clone)]
pub(super) struct Frames {
    kind: ApiKind,
    seen: Arc<Mutex<Seen>>,
}

impl Frames {
    pub(super) fn new(kind: ApiKind) -> Self {
        Self { kind, seen: Arc::default() }
    }

    pub(super) fn sink(&self) -> Arc<dyn ChatFrameSink> {
        Arc::new(self.clone())
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a message may hold something that is looked for. Most do not, and are not parsed twice.
    fn is_of_interest(&self, text: &str) -> bool {
        match self.kind {
            ApiKind::Anthropic => false,
            ApiKind::OpenAi => {
                text.contains("\"reasoning_content\"") || text.contains("\"tool_calls\"")
            }
            ApiKind::OpenAiResponses => text.contains("\"response.failed\""),
            ApiKind::Gemini => {
                text.contains("\"promptFeedback\"") || text.contains("\"inlineData\"")
            }
            ApiKind::Ollama => text.contains("\"error\""),
        }
    }
}

impl ChatFrameSink for Frames {
    fn on_frame(&self, _: &FrameCtx, frame: RawFrameRef<'_>) {
        let mut seen = self.seen();
        seen.blocks += 1;
        if frame.data.is_empty() {
            return;
        }
        seen.messages += 1;
        seen.bytes = seen.bytes.saturating_add(frame.data.len());
        if !self.is_of_interest(frame.data) {
            return;
        }
        let Some(message) = frame.json() else { return };
        match self.kind {
            ApiKind::Anthropic => {}
            ApiKind::OpenAi => {
                let thought = message.pointer("/choices/0/delta/reasoning_content");
                let thought = thought.and_then(Value::as_str);
                seen.thinks_aloud |= thought.is_some_and(|thought| !thought.is_empty());
                let fragments = message.pointer("/choices/0/delta/tool_calls");
                if let Some(fragments) = fragments.and_then(Value::as_array) {
                    seen.calls.take(fragments);
                }
            }
            ApiKind::OpenAiResponses => {
                if message["type"] == "response.failed" {
                    seen.failure = Some(json!({ "error": message["response"]["error"] }));
                }
            }
            ApiKind::Gemini => {
                if let Some(reason) = message.pointer("/promptFeedback/blockReason") {
                    seen.refusal = Some(reason.as_str().unwrap_or_default().to_owned());
                }
                let parts = message.pointer("/candidates/0/content/parts");
                let parts = parts.and_then(Value::as_array).into_iter().flatten();
                seen.parts.extend(parts.filter_map(inline));
            }
            ApiKind::Ollama => {
                if message.get("error").is_some_and(|error| !error.is_null()) {
                    seen.failure = Some(message);
                }
            }
        }
    }
}

/// A picture or a recording of Gemini.
fn inline(part: &Value) -> Option<Part> {
    let inline = part.get("inlineData")?;
    let mime_type = inline.get("mimeType")?.as_str()?.to_owned();
    let data = inline.get("data")?.as_str()?.to_owned();
    match mime_type.split('/').next() {
        Some("image") => Some(Part::Image { mime_type, data }),
        Some("audio") => Some(Part::Audio { mime_type, data }),
        _ => None,
    }
}
