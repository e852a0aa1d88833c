//! A call on its way to the logging thread: all texts in one allocation.

use std::time::{Duration, Instant};

use openclaw_trace::{SpanId, TraceId};

use super::entry::{AuditOutcome, CallRecord};
use crate::outcome::RefusedBy;

/// A call to be logged.
#[derive(Debug)]
pub(super) struct Packed {
    ended: Instant,
    /// All texts, concatenated.
    texts: String,
    /// End offset of each text.
    ends: [u32; TEXTS],
    has_agent: bool,
    has_session: bool,
    outcome: AuditOutcome,
    refused: Option<RefusedBy>,
    duration: Duration,
    result_chars: usize,
    trace: Option<(TraceId, SpanId)>,
}

/// Who, agent, session, source, server, tool, raw tool, arguments.
const TEXTS: usize = 8;
/// Maximum length of a text, in bytes; the log truncates to less anyway.
const MAX_TEXT: usize = 4 * 1024;

impl Packed {
    pub(super) fn of(call: &CallRecord<'_>) -> Self {
        let all = [
            call.who,
            call.agent.unwrap_or_default(),
            call.session.unwrap_or_default(),
            call.source,
            call.server,
            call.tool,
            call.raw_tool,
            call.arguments,
        ];
        let mut texts =
            String::with_capacity(all.iter().map(|text| text.len().min(MAX_TEXT)).sum());
        let mut ends = [0; TEXTS];
        for (text, end) in all.into_iter().zip(&mut ends) {
            texts.push_str(text.get(..text.floor_char_boundary(MAX_TEXT)).unwrap_or(text));
            // At most eight times the maximum.
            *end = u32::try_from(texts.len()).unwrap_or(u32::MAX);
        }
        Self {
            ended: call.ended,
            texts,
            ends,
            has_agent: call.agent.is_some(),
            has_session: call.session.is_some(),
            outcome: call.outcome,
            refused: call.refused,
            duration: call.duration,
            result_chars: call.result_chars,
            trace: call.trace,
        }
    }

    pub(super) fn record(&self) -> CallRecord<'_> {
        let mut start = 0;
        let [who, agent, session, source, server, tool, raw_tool, arguments] =
            self.ends.map(|end| {
                let text = self.texts.get(start..end as usize).unwrap_or_default();
                start = end as usize;
                text
            });
        CallRecord {
            ended: self.ended,
            who,
            agent: self.has_agent.then_some(agent),
            session: self.has_session.then_some(session),
            source,
            server,
            tool,
            raw_tool,
            arguments,
            outcome: self.outcome,
            refused: self.refused,
            duration: self.duration,
            result_chars: self.result_chars,
            trace: self.trace,
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
        let packed = Packed::of(&call);
        assert_eq!(format!("{:?}", packed.record()), format!("{call:?}"));
    }
}
