//! Writes `ExportTraceServiceRequest` and `ExportLogsServiceRequest` (OTLP 1) in protobuf.
//!
//! Only the fields that we use, by their numbers in `opentelemetry/proto/trace/v1/trace.proto` and
//! `…/logs/v1/logs.proto`. Tests decode them with the types of the OpenTelemetry project.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use openclaw_secrets::Redactor;

use super::logs::LogRecord;
use super::queue::Record;
use crate::record::{AttributeValue, SpanKind, SpanRecord};

/// The version of the attributes' names: the last one that has those of generative AI and MCP, which
/// have a repository of their own since, without a release.
const SCHEMA: &str = "https://opentelemetry.io/schemas/1.41.0";

/// Wire types of protobuf.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;
const FIXED32: u64 = 5;

impl Record for SpanRecord {
    const NAME: &'static str = "spans";

    fn request(spans: &[Self], resource: &[(String, String)], redactor: &Redactor) -> Vec<u8> {
        request(resource, redactor, |out| {
            out.scope("openclaw", SCHEMA, spans, |out, span| out.span(span));
        })
    }
}

impl Record for LogRecord {
    const NAME: &'static str = "log lines";

    fn request(lines: &[Self], resource: &[(String, String)], redactor: &Redactor) -> Vec<u8> {
        request(resource, redactor, |out| {
            for lines in lines.chunk_by(|a, b| a.target == b.target) {
                let target = lines.first().map_or("", |line| &*line.target);
                out.scope(target, "", lines, |out, line| out.line(line));
            }
        })
    }
}

/// Writes a request. The messages around spans and those around log lines have the same fields.
fn request(
    resource: &[(String, String)],
    redactor: &Redactor,
    scopes: impl FnOnce(&mut Message<'_>),
) -> Vec<u8> {
    let mut out = Message { bytes: Vec::new(), redactor };
    out.message(1, |data| {
        data.message(1, |out| {
            for (key, value) in resource {
                out.message(1, |out| {
                    out.text(1, key);
                    out.message(2, |out| out.text(1, value));
                });
            }
        });
        scopes(data);
    });
    out.bytes
}

/// A message in protobuf.
struct Message<'a> {
    bytes: Vec<u8>,
    redactor: &'a Redactor,
}

impl Message<'_> {
    /// Writes the records of one part of the program.
    fn scope<R>(
        &mut self,
        name: &str,
        schema: &str,
        records: &[R],
        write: impl Fn(&mut Message<'_>, &R),
    ) {
        self.message(2, |out| {
            out.message(1, |scope| {
                scope.text(1, name);
                scope.text(2, env!("CARGO_PKG_VERSION"));
            });
            for record in records {
                out.message(2, |out| write(out, record));
            }
            out.text(3, schema);
        });
    }

    fn line(&mut self, line: &LogRecord) {
        let (number, name) = line.severity();
        let time = nanoseconds(line.time);
        self.fixed64(1, time);
        self.number(2, number);
        self.text(3, name);
        self.message(5, |out| out.always_text(1, &line.message));
        for (key, value) in &line.fields {
            self.attribute(6, key, value);
        }
        if let Some((trace, span)) = &line.span {
            self.raw(9, &trace.bytes());
            self.raw(10, &span.bytes());
        }
        self.fixed64(11, time);
    }

    fn attribute(&mut self, field: u64, key: &str, value: &AttributeValue) {
        self.message(field, |out| {
            out.text(1, key);
            out.message(2, |out| out.value(value));
        });
    }

    fn span(&mut self, span: &SpanRecord) {
        let SpanRecord { context, parent, name, kind, started, duration, attributes, error } = span;
        self.raw(1, &context.trace_id().bytes());
        self.raw(2, &context.span_id().bytes());
        self.text(3, context.state().unwrap_or_default());
        if let Some(parent) = parent {
            self.raw(4, &parent.bytes());
        }
        self.text(5, name);
        self.number(
            6,
            match kind {
                SpanKind::Internal => 1,
                SpanKind::Server => 2,
                SpanKind::Client => 3,
            },
        );
        let started = nanoseconds(*started);
        let ended = started.saturating_add(clamped(*duration));
        self.fixed64(7, started);
        self.fixed64(8, ended);
        for (key, value) in attributes {
            self.attribute(9, key, value);
        }
        if let Some(error) = error {
            self.message(15, |out| {
                out.text(2, error);
                out.number(3, 2);
            });
        }
        self.key(16, FIXED32);
        self.bytes.extend_from_slice(&u32::from(context.flags()).to_le_bytes());
    }

    fn value(&mut self, value: &AttributeValue) {
        match value {
            AttributeValue::Text(text) => self.always_text(1, text),
            AttributeValue::Bool(value) => self.number(2, u64::from(*value)),
            // Negative numbers are written as their two's complement.
            AttributeValue::Int(number) => self.number(3, number.cast_unsigned()),
            AttributeValue::Double(number) => self.fixed64(4, number.to_bits()),
            AttributeValue::Texts(texts) => self.message(5, |out| {
                for text in texts {
                    out.message(1, |out| out.always_text(1, text));
                }
            }),
        }
    }

    fn key(&mut self, field: u64, wire_type: u64) {
        self.varint(field << 3 | wire_type);
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn number(&mut self, field: u64, number: u64) {
        self.key(field, VARINT);
        self.varint(number);
    }

    fn fixed64(&mut self, field: u64, number: u64) {
        self.key(field, FIXED64);
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    fn raw(&mut self, field: u64, bytes: &[u8]) {
        self.key(field, BYTES);
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes a text without secrets. An empty one is the default, and left out.
    fn text(&mut self, field: u64, text: &str) {
        if !text.is_empty() {
            self.always_text(field, text);
        }
    }

    fn always_text(&mut self, field: u64, text: &str) {
        let redactor = self.redactor;
        self.raw(field, redactor.redact(text).as_bytes());
    }

    fn message(&mut self, field: u64, write: impl FnOnce(&mut Message<'_>)) {
        let mut inner = Message { bytes: Vec::new(), redactor: self.redactor };
        write(&mut inner);
        self.raw(field, &inner.bytes);
    }
}

fn nanoseconds(time: SystemTime) -> u64 {
    clamped(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn clamped(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
