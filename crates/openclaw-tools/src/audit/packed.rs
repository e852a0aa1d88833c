//! A call on its way to the logging thread: its texts stand in a buffer that is shared by many.

use std::time::{Duration, Instant};

use openclaw_trace::{SpanId, TraceId};

use super::entry::{AuditOutcome, CallRecord};
use crate::outcome::RefusedBy;

/// A call to be logged, without its texts.
#[derive(Debug)]
pub(super) struct Packed {
    ended: Instant,
    labels: Labels,
    /// The length of all texts.
    length: u32,
    outcome: AuditOutcome,
    refused: Option<RefusedBy>,
    duration: Duration,
    result_chars: usize,
    trace: Option<(TraceId, SpanId)>,
}

/// Where the texts end that are the same for many calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Labels {
    ends: [u32; LABELS],
    has_agent: bool,
    has_session: bool,
}

/// Who, agent, session, source, server, tool, raw tool.
const LABELS: usize = 7;
/// Maximum length of a text, in bytes; the log truncates to less anyway.
const MAX_TEXT: usize = 4 * 1024;

impl Packed {
    /// Packs a call, and appends its texts to `texts`.
    pub(super) fn new(call: &CallRecord<'_>, texts: &mut String) -> Self {
        let labels = [
            call.who,
            call.agent.unwrap_or_default(),
            call.session.unwrap_or_default(),
            call.source,
            call.server,
            call.tool,
            call.raw_tool,
        ];
        let start = texts.len();
        // At most eight times the maximum.
        let length = |texts: &str| u32::try_from(texts.len() - start).unwrap_or(u32::MAX);
        let ends = labels.map(|text| {
            texts.push_str(cut(text));
            length(texts)
        });
        texts.push_str(cut(call.arguments));
        let (has_agent, has_session) = (call.agent.is_some(), call.session.is_some());
        Self {
            ended: call.ended,
            labels: Labels { ends, has_agent, has_session },
            length: length(texts),
            outcome: call.outcome,
            refused: call.refused,
            duration: call.duration,
            result_chars: call.result_chars,
            trace: call.trace,
        }
    }

    /// The length of its texts, in bytes.
    pub(super) fn len(&self) -> usize {
        self.length as usize
    }
}

fn cut(text: &str) -> &str {
    match text.len() > MAX_TEXT {
        true => text.get(..text.floor_char_boundary(MAX_TEXT)).unwrap_or(text),
        false => text,
    }
}

/// A call to be logged, with its texts.
pub(super) struct PackedCall<'a> {
    packed: &'a Packed,
    texts: &'a str,
}

impl<'a> PackedCall<'a> {
    pub(super) fn new(packed: &'a Packed, texts: &'a str) -> Self {
        Self { packed, texts }
    }

    /// Returns the texts that are the same for many calls, concatenated, and where each ends.
    pub(super) fn labels(&self) -> (&'a str, Labels) {
        let Packed { labels, .. } = self.packed;
        let [.., end] = labels.ends;
        (self.texts.get(..end as usize).unwrap_or_default(), *labels)
    }

    /// Unpacks it.
    pub(super) fn record(&self) -> CallRecord<'a> {
        let Packed { labels, .. } = self.packed;
        let mut start = 0;
        let [who, agent, session, source, server, tool, raw_tool] = labels.ends.map(|end| {
            let text = self.texts.get(start..end as usize).unwrap_or_default();
            start = end as usize;
            text
        });
        CallRecord {
            ended: self.packed.ended,
            who,
            agent: labels.has_agent.then_some(agent),
            session: labels.has_session.then_some(session),
            source,
            server,
            tool,
            raw_tool,
            arguments: self.texts.get(start..).unwrap_or_default(),
            outcome: self.packed.outcome,
            refused: self.packed.refused,
            duration: self.packed.duration,
            result_chars: self.packed.result_chars,
            trace: self.packed.trace,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unpacked_is_what_was_packed() {
        let call = CallRecord {
            ended: Instant::now(),
            who: "wé",
            agent: None,
            session: Some(""),
            source: "mcp",
            server: "",
            tool: "t",
            raw_tool: "ü",
            arguments: "{\"a\":1}",
            outcome: AuditOutcome::Cancelled,
            refused: Some(RefusedBy::Limit),
            duration: Duration::from_nanos(7),
            result_chars: 9,
            trace: TraceId::parse(&"1".repeat(32)).zip(SpanId::parse(&"2".repeat(16))),
        };
        let mut texts = "before".to_owned();
        let packed = Packed::new(&call, &mut texts);
        let packed = PackedCall::new(&packed, &texts["before".len()..]);
        assert_eq!(format!("{:?}", packed.record()), format!("{call:?}"));
        assert_eq!(packed.labels().0, "wémcptü");
    }
}
