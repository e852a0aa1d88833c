//! The W3C trace context: which span is the parent, in this process or another one.

use std::fmt;
use std::sync::Arc;

use crate::ids::{SpanId, TraceId, is_hex, push_hex};

/// The name of the header, and of the member of `_meta`, with the ids.
pub const TRACEPARENT: &str = "traceparent";
/// The name for what tracing systems pass to each other.
pub const TRACESTATE: &str = "tracestate";
/// The name for what applications pass to each other.
pub const BAGGAGE: &str = "baggage";

/// Maximum length of `tracestate`, as in the specification.
const MAX_STATE: usize = 512;
/// Maximum length and number of members of `baggage`, as in the specification.
const MAX_BAGGAGE: usize = 8 * 1024;
const MAX_BAGGAGE_MEMBERS: usize = 64;
/// Maximum number of members of `tracestate`.
const MAX_STATE_MEMBERS: usize = 32;
/// Maximum length of a `traceparent` of a later version.
const MAX_PARENT: usize = 256;
/// The flag of a trace that is recorded.
const SAMPLED: u8 = 1;

/// A span as its children see it. Cloning allocates nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct SpanContext {
    trace: TraceId,
    span: SpanId,
    flags: u8,
    carried: Option<Arc<Carried>>,
}

/// What is passed on unchanged.
#[derive(Debug, Default, PartialEq, Eq)]
struct Carried {
    state: Option<Box<str>>,
    baggage: Option<Box<str>>,
}

impl SpanContext {
    pub(crate) fn root(trace: TraceId, span: SpanId, is_sampled: bool) -> Self {
        Self { trace, span, flags: if is_sampled { SAMPLED } else { 0 }, carried: None }
    }

    pub(crate) fn child(&self, span: SpanId, is_sampled: bool) -> Self {
        let flags = if is_sampled { self.flags | SAMPLED } else { self.flags & !SAMPLED };
        Self { span, flags, ..self.clone() }
    }

    /// Parses a `traceparent`; `None` if it is invalid, and then there is no context.
    pub fn parse(parent: &str) -> Option<Self> {
        let parent = parent.trim_matches([' ', '\t']);
        if parent.len() > MAX_PARENT {
            return None;
        }
        let mut parts = parent.split('-');
        let version = parts.next().filter(|it| it.len() == 2 && is_hex(it) && *it != "ff")?;
        let trace = TraceId::parse(parts.next()?)?;
        let span = SpanId::parse(parts.next()?)?;
        let flags = parts.next().filter(|it| it.len() == 2 && is_hex(it))?;
        // Later versions may have more parts.
        if version == "00" && parts.next().is_some() {
            return None;
        }
        let flags = u8::from_str_radix(flags, 16).ok()?;
        Some(Self { trace, span, flags, carried: None })
    }

    /// Adds what came with the `traceparent`. Values that are invalid or too long are dropped: the
    /// ids are worth more than they are.
    #[must_use]
    pub fn carrying(mut self, state: Option<&str>, baggage: Option<&str>) -> Self {
        let state = state.filter(|it| is_list(it, MAX_STATE, MAX_STATE_MEMBERS));
        let baggage = baggage.filter(|it| is_list(it, MAX_BAGGAGE, MAX_BAGGAGE_MEMBERS));
        if state.is_some() || baggage.is_some() {
            let (state, baggage) = (state.map(Into::into), baggage.map(Into::into));
            self.carried = Some(Arc::new(Carried { state, baggage }));
        }
        self
    }

    /// The ids alone, for a program that does not take the rest.
    #[must_use]
    pub fn ids(&self) -> Self {
        Self { carried: None, ..*self }
    }

    /// Reads the context that a function finds by the names of its parts, such as those of headers.
    pub fn find<'a>(value: impl Fn(&'static str) -> Option<&'a str>) -> Option<Self> {
        let context = Self::parse(value(TRACEPARENT)?)?;
        Some(context.carrying(value(TRACESTATE), value(BAGGAGE)))
    }

    /// The id of the trace.
    pub fn trace_id(&self) -> TraceId {
        self.trace
    }

    /// The id of the span.
    pub fn span_id(&self) -> SpanId {
        self.span
    }

    /// Whether the trace is recorded.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// What tracing systems pass to each other.
    pub fn state(&self) -> Option<&str> {
        self.carried.as_ref()?.state.as_deref()
    }

    /// What applications pass to each other.
    pub fn baggage(&self) -> Option<&str> {
        self.carried.as_ref()?.baggage.as_deref()
    }

    /// The flags, of which the lowest bit is known.
    #[cfg(feature = "export")]
    pub(crate) fn flags(&self) -> u8 {
        self.flags
    }

    /// The value of `traceparent`.
    pub fn traceparent(&self) -> Traceparent {
        Traceparent { trace: self.trace, span: self.span, flags: self.flags }
    }

    /// Appends the context as members of a JSON object, without braces. Allocates nothing besides
    /// the room in `out`.
    pub fn write_members(&self, out: &mut Vec<u8>) {
        use std::io::Write as _;

        out.extend_from_slice(b"\"traceparent\":\"00-");
        push_hex(out, &self.trace.bytes());
        out.push(b'-');
        push_hex(out, &self.span.bytes());
        out.push(b'-');
        push_hex(out, &[self.flags]);
        out.push(b'"');
        for (name, value) in [(TRACESTATE, self.state()), (BAGGAGE, self.baggage())] {
            let Some(value) = value else { continue };
            // Writing to a vector cannot fail.
            let _ = write!(out, ",\"{name}\":\"");
            for byte in value.bytes() {
                if matches!(byte, b'"' | b'\\') {
                    out.push(b'\\');
                }
                out.push(byte);
            }
            out.push(b'"');
        }
    }

    /// The members of [`write_members`](Self::write_members) as pairs.
    pub fn members(&self) -> impl Iterator<Item = (&'static str, String)> {
        let parent = (TRACEPARENT, self.traceparent().to_string());
        let state = self.state().map(|it| (TRACESTATE, it.to_owned()));
        let baggage = self.baggage().map(|it| (BAGGAGE, it.to_owned()));
        [Some(parent), state, baggage].into_iter().flatten()
    }

    /// A span of the log, whose lines then name the trace. None if the trace is not recorded: the
    /// ids would lead nowhere.
    pub fn log_span(&self) -> tracing::Span {
        if !self.is_sampled() {
            return tracing::Span::none();
        }
        // The highest level, so that no filter removes it.
        tracing::error_span!("trace", trace_id = %self.trace, span_id = %self.span)
    }
}

/// Without the values that other programs have sent.
impl fmt::Debug for SpanContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SpanContext({})", self.traceparent())
    }
}

/// The text of a `traceparent`.
#[derive(Debug, Clone, Copy)]
pub struct Traceparent {
    trace: TraceId,
    span: SpanId,
    flags: u8,
}

impl fmt::Display for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace, self.span, self.flags)
    }
}

/// Whether a value is a list of `key=value` in printable ASCII, within its bounds.
fn is_list(value: &str, max_len: usize, max_members: usize) -> bool {
    let is_plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    (1..=max_len).contains(&value.len())
        && is_plain
        && value.split(',').count() <= max_members
        && value.split(',').all(|member| member.trim().is_empty() || member.contains('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_valid_context_is_continued_as_it_is() {
        let context = SpanContext::parse(PARENT).unwrap();
        assert!(context.is_sampled());
        assert_eq!(context.traceparent().to_string(), PARENT);
        let later = "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-what-comes";
        assert!(!SpanContext::parse(later).unwrap().is_sampled());
    }

    #[test]
    fn an_invalid_context_is_none() {
        for parent in [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-+1",
        ] {
            assert_eq!(SpanContext::parse(parent), None, "{parent}");
        }
        let long = format!("01{}-{}", PARENT.trim_start_matches("00"), "x".repeat(MAX_PARENT));
        assert_eq!(SpanContext::parse(&long), None);
    }

    #[test]
    fn what_other_programs_pass_on_is_bounded() {
        let context = || SpanContext::parse(PARENT).unwrap();
        let kept = context().carrying(Some("rojo=1,congo=2"), Some("userId=alice"));
        assert_eq!((kept.state(), kept.baggage()), (Some("rojo=1,congo=2"), Some("userId=alice")));
        let long = format!("a={}", "x".repeat(MAX_STATE));
        let many = ["a=1"; MAX_BAGGAGE_MEMBERS + 1].join(",");
        let dropped = context().carrying(Some(&long), Some(&many));
        assert_eq!((dropped.state(), dropped.baggage()), (None, None));
        let dropped = context().carrying(Some("a=1\r\nb=2"), Some("no pair"));
        assert_eq!((dropped.state(), dropped.baggage()), (None, None));
    }

    #[test]
    fn members_are_json() {
        let context = SpanContext::parse(PARENT).unwrap().carrying(Some(r#"a="\"#), Some("b=c"));
        let mut out = Vec::new();
        context.write_members(&mut out);
        let expected = format!(r#""traceparent":"{PARENT}","tracestate":"a=\"\\","baggage":"b=c""#);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        assert_eq!(context.members().count(), 3);
    }
}
