//! Distributed traces: which span a piece of work belongs to, and what is recorded about it.
//!
//! [`SpanContext`] is the W3C trace context. It is passed down with a call and across processes,
//! also by a program that records nothing. [`Tracer`] starts [`Span`]s; with [`Tracer::off`] a span
//! only passes the context of its parent on. The feature `export` adds [`export`], which sends
//! spans to a collector (OTLP over HTTP).

mod context;
#[cfg(feature = "export")]
pub mod export;
mod ids;
mod record;
mod sampler;
mod span;
mod tracer;

pub use context::{BAGGAGE, SpanContext, TRACEPARENT, TRACESTATE, Traceparent};
pub use ids::{SpanId, TraceId};
pub use record::{AttributeValue, Sink, SpanKind, SpanRecord};
pub use sampler::TraceSampler;
pub use span::Span;
pub use tracer::Tracer;
