//! Spans: a piece of work from its start to its end.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;

use crate::context::SpanContext;
use crate::ids::SpanId;
use crate::record::{AttributeValue, SpanKind, SpanRecord, SpanRecorder};

/// Maximum length of an attribute, in bytes. Names and messages come from other programs.
pub(crate) const MAX_TEXT: usize = 1024;
/// Maximum length of recorded content, in bytes.
pub(crate) const MAX_CONTENT: usize = 4 * 1024;
/// Maximum length of a recorded message, in bytes: its text is limited before it becomes JSON.
const MAX_MESSAGE: usize = 8 * MAX_CONTENT;
/// Maximum number of attributes.
pub(crate) const MAX_ATTRIBUTES: usize = 32;

/// A span. It ends when it is dropped. Most methods do nothing unless it is recorded.
#[derive(Debug, Default)]
pub struct Span {
    context: Option<SpanContext>,
    recording: Option<Box<Recording>>,
}

#[derive(Debug)]
struct Recording {
    recorder: Arc<SpanRecorder>,
    started: Instant,
    record: Mutex<SpanRecord>,
}

impl Span {
    /// A span that is not recorded, and passes nothing on.
    pub const NONE: Self = Self { context: None, recording: None };

    /// A span that is not recorded, and passes this context on.
    pub(crate) fn passing(context: Option<SpanContext>) -> Self {
        Self { context, recording: None }
    }

    pub(crate) fn recording(
        recorder: Arc<SpanRecorder>,
        context: SpanContext,
        parent: Option<SpanId>,
        name: Cow<'static, str>,
        kind: SpanKind,
    ) -> Self {
        let record = SpanRecord {
            context: context.clone(),
            parent,
            name,
            kind,
            started: SystemTime::now(),
            duration: Duration::ZERO,
            attributes: Vec::with_capacity(8),
            error: None,
        };
        let (started, record) = (Instant::now(), Mutex::new(record));
        let recording = Box::new(Recording { recorder, started, record });
        Self { context: Some(context), recording: Some(recording) }
    }

    /// The context for its children, here or in another program.
    pub fn context(&self) -> Option<&SpanContext> {
        self.context.as_ref()
    }

    /// Whether attributes are recorded: what is costly to find out is worth it only then.
    pub fn is_recorded(&self) -> bool {
        self.recording.is_some()
    }

    /// Names the span.
    pub fn rename(&self, name: impl Into<Cow<'static, str>>, kind: SpanKind) {
        if let Some(mut record) = self.record() {
            (record.name, record.kind) = (bounded(name.into(), MAX_TEXT), kind);
        }
    }

    /// Sets an attribute. Long texts are truncated.
    pub fn set(&self, key: &'static str, value: impl Into<AttributeValue>) {
        if let Some(record) = self.record() {
            put(record, key, bounded_value(value.into()));
        }
    }

    /// Sets an attribute to a text that is copied only if the span is recorded.
    pub fn set_text(&self, key: &'static str, text: &str) {
        if self.is_recorded() && !text.is_empty() {
            self.set(key, cut(text, MAX_TEXT).to_owned());
        }
    }

    /// Sets an attribute to what a call or a conversation contains, if that is switched on. Secrets
    /// are removed from it first, then it is truncated.
    pub fn set_content(&self, key: &'static str, content: impl FnOnce() -> String) {
        let Some(recording) = &self.recording else { return };
        let Some(redactor) = recording.recorder.content() else { return };
        let content = redactor.redact(&content()).into_owned();
        if let Some(record) = self.record() {
            put(record, key, AttributeValue::Text(bounded(content.into(), MAX_CONTENT)));
        }
    }

    /// Sets an attribute to a message of a conversation, as [`set_content`](Self::set_content) does,
    /// in the JSON of the semantic conventions. `more` has further parts of the message.
    pub fn set_message(
        &self,
        key: &'static str,
        role: &'static str,
        text: &str,
        more: impl FnOnce() -> Vec<serde_json::Value>,
    ) {
        let Some(recording) = &self.recording else { return };
        let Some(redactor) = recording.recorder.content() else { return };
        let text = redactor.redact(text);
        let mut parts = Vec::new();
        if !text.is_empty() {
            parts.push(json!({ "type": "text", "content": cut(&text, MAX_CONTENT) }));
        }
        parts.extend(more().into_iter().take(MAX_ATTRIBUTES));
        let message = json!([{ "role": role, "parts": parts }]).to_string();
        if let Some(record) = self.record() {
            let message = Cow::Owned(redactor.redact(&message).into_owned());
            put(record, key, AttributeValue::Text(bounded(message, MAX_MESSAGE)));
        }
    }

    /// Marks the span as failed, with a kind of error from a small set, and a message if there is
    /// one that quotes no other program. The first kind counts: it was set closest to the cause.
    pub fn fail(&self, kind: impl Into<Cow<'static, str>>, message: &str) {
        let Some(mut record) = self.record() else { return };
        if record.error.is_none() {
            record.error = Some(cut(message, MAX_TEXT).to_owned());
            put(record, "error.type", AttributeValue::Text(bounded(kind.into(), MAX_TEXT)));
        }
    }

    fn record(&self) -> Option<MutexGuard<'_, SpanRecord>> {
        let recording = self.recording.as_ref()?;
        Some(recording.record.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        let Some(recording) = self.recording.take() else { return };
        let Recording { recorder, started, record } = *recording;
        let mut record = record.into_inner().unwrap_or_else(PoisonError::into_inner);
        record.duration = started.elapsed();
        recorder.end(record);
    }
}

/// Sets an attribute; the last value counts.
fn put(mut record: MutexGuard<'_, SpanRecord>, key: &'static str, value: AttributeValue) {
    let attributes = &mut record.attributes;
    if let Some((_, known)) = attributes.iter_mut().find(|(known, _)| *known == key) {
        *known = value;
    } else if attributes.len() < MAX_ATTRIBUTES {
        attributes.push((key, value));
    }
}

fn bounded_value(value: AttributeValue) -> AttributeValue {
    match value {
        AttributeValue::Text(text) => AttributeValue::Text(bounded(text, MAX_TEXT)),
        AttributeValue::Texts(texts) => {
            let texts = texts.into_iter().take(MAX_ATTRIBUTES);
            AttributeValue::Texts(texts.map(|text| bounded(text, MAX_TEXT)).collect())
        }
        other => other,
    }
}

pub(crate) fn bounded(text: Cow<'static, str>, max: usize) -> Cow<'static, str> {
    if text.len() <= max { text } else { Cow::Owned(cut(&text, max).to_owned()) }
}

fn cut(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or(text)
}
