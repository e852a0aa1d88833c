//! What is recorded about spans, and with what.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use openclaw_secrets::Redactor;

use crate::context::SpanContext;
use crate::ids::{Ids, SpanId};
use crate::sampler::TraceSampler;

/// The kind of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Work inside this program.
    Internal,
    /// A request that this program answers.
    Server,
    /// A request to another program.
    Client,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum AttributeValue {
    /// A text.
    Text(Cow<'static, str>),
    /// A list of texts.
    Texts(Vec<Cow<'static, str>>),
    /// A whole number.
    Int(i64),
    /// Another number.
    Double(f64),
    /// Yes or no.
    Bool(bool),
}

impl From<&'static str> for AttributeValue {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<u64> for AttributeValue {
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<f64> for AttributeValue {
    fn from(number: f64) -> Self {
        Self::Double(number)
    }
}

impl From<bool> for AttributeValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

/// What is known about a span at its end.
#[derive(Debug, Clone)]
pub struct SpanRecord {
    /// Its ids, and what it passes on.
    pub context: SpanContext,
    /// The span that it is a part of.
    pub parent: Option<SpanId>,
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its kind.
    pub kind: SpanKind,
    /// When it started.
    pub started: SystemTime,
    /// How long it took.
    pub duration: Duration,
    /// What is recorded about it.
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// Why it failed, if it did: an empty text if there is nothing to say.
    pub error: Option<String>,
}

/// Takes spans that have ended. Called where the work is done, so it must not wait.
pub trait Sink: Send + Sync + fmt::Debug {
    /// Takes a span.
    fn end(&self, span: SpanRecord);
}

/// What spans are recorded with.
#[derive(Debug)]
pub(crate) struct SpanRecorder {
    pub(crate) ids: Ids,
    pub(crate) sampler: TraceSampler,
    /// Set if the contents of calls and conversations are recorded: removes their secrets.
    pub(crate) content: Option<Redactor>,
    pub(crate) sink: Arc<dyn Sink>,
}

impl SpanRecorder {
    pub(crate) fn content(&self) -> Option<&Redactor> {
        self.content.as_ref()
    }

    pub(crate) fn end(&self, span: SpanRecord) {
        self.sink.end(span);
    }
}
