//! Passes the lines of the log on to a collector (`OTEL_LOGS_EXPORTER=otlp`), with the spans that
//! they belong to.

use std::borrow::Cow;
use std::fmt;
use std::time::SystemTime;

use openclaw_trace::export::{LogExporter, LogRecord};
use openclaw_trace::{AttributeValue, SpanId, TraceId};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// Hands log lines to an exporter.
pub(crate) struct LogExport(pub(crate) LogExporter);

/// The ids of a span of the log that stands for a recorded span.
struct Ids(TraceId, SpanId);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LogExport {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let text = |key: &str| match fields.others.iter().find(|(known, _)| *known == key) {
            Some((_, AttributeValue::Text(text))) => Some(&**text),
            _ => None,
        };
        let trace = text("trace_id").and_then(TraceId::parse);
        let span = text("span_id").and_then(SpanId::parse);
        if let (Some(trace), Some(span), Some(known)) = (trace, span, context.span(id)) {
            known.extensions_mut().insert(Ids(trace, span));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut scope = context.event_scope(event).into_iter().flatten();
        let span = scope.find_map(|span| {
            let extensions = span.extensions();
            extensions.get().map(|Ids(trace, span)| (*trace, *span))
        });
        self.0.add(LogRecord {
            time: SystemTime::now(),
            level: *event.metadata().level(),
            target: Cow::Borrowed(event.metadata().target()),
            message: fields.message,
            fields: fields.others,
            span,
        });
    }
}

/// The message of a line, and its other fields.
#[derive(Default)]
struct Fields {
    message: String,
    others: Vec<(&'static str, AttributeValue)>,
}

impl Fields {
    fn add(&mut self, field: &Field, value: impl Into<AttributeValue>) {
        self.others.push((field.name(), value.into()));
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        match field.name() {
            "message" => self.message = text,
            _ => self.add(field, text),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            _ => self.add(field, value.to_owned()),
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, AttributeValue::Int(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value);
    }
}
