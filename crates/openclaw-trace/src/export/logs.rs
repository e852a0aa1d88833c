//! Lines of the log, as a collector gets them.

use std::borrow::Cow;
use std::time::SystemTime;

use openclaw_secrets::Redactor;

use crate::ids::{SpanId, TraceId};
use crate::record::AttributeValue;
use crate::span::{MAX_ATTRIBUTES, MAX_CONTENT, MAX_TEXT, bounded};

/// A line of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogRecord {
    /// When it was logged.
    pub time: SystemTime,
    /// Its level.
    pub level: tracing::Level,
    /// The module that has logged it.
    pub target: Cow<'static, str>,
    /// The message.
    pub message: String,
    /// Its fields.
    pub fields: Vec<(&'static str, AttributeValue)>,
    /// The span that it belongs to.
    pub span: Option<(TraceId, SpanId)>,
}

impl LogRecord {
    /// Removes secrets, then truncates: half a secret would not be found later.
    pub(super) fn without_secrets(mut self, redactor: &Redactor) -> Self {
        let cleaned = |text: &str, max| bounded(redactor.redact(text).into_owned().into(), max);
        self.message = cleaned(&self.message, MAX_CONTENT).into_owned();
        self.fields.truncate(MAX_ATTRIBUTES);
        for (_, value) in &mut self.fields {
            if let AttributeValue::Text(text) = value {
                *text = cleaned(text, MAX_TEXT);
            }
        }
        self
    }

    /// The number and the name of its level in OTLP.
    pub(super) fn severity(&self) -> (u64, &'static str) {
        match self.level {
            tracing::Level::TRACE => (1, "TRACE"),
            tracing::Level::DEBUG => (5, "DEBUG"),
            tracing::Level::INFO => (9, "INFO"),
            tracing::Level::WARN => (13, "WARN"),
            tracing::Level::ERROR => (17, "ERROR"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_removed_before_a_line_is_cut() {
        let redactor = Redactor::new();
        redactor.add(&"hunter2-hunter2".into());
        let text = format!("{}hunter2-hunter2", "x".repeat(MAX_CONTENT - 5));
        let field = format!("{}hunter2-hunter2", "x".repeat(MAX_TEXT - 5));
        let line = LogRecord {
            time: SystemTime::now(),
            level: tracing::Level::WARN,
            target: "openclaw".into(),
            message: text,
            fields: vec![("error", field.into()); MAX_ATTRIBUTES + 1],
            span: None,
        };
        let line = line.without_secrets(&redactor);
        assert!(!format!("{line:?}").contains("hunt"), "{line:?}");
        assert_eq!((line.message.len(), line.fields.len()), (MAX_CONTENT, MAX_ATTRIBUTES));
    }
}
