//! One line of the audit log.

use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use openclaw_secrets::Redactor;
use openclaw_trace::{SpanId, TraceId};
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::clock::LogClock;
use crate::decimal::Decimal;
use crate::outcome::{RefusedBy, ToolFailure, ToolOutcome};

/// Maximum length of logged arguments, in bytes; longer ones are truncated.
const MAX_ARGUMENTS: usize = 16 * 1024;
/// Maximum length of logged names, in bytes.
const MAX_NAME: usize = 256;
/// Initial capacity; most lines fit.
const ROOM: usize = 384;

/// Logged outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditOutcome {
    /// A result.
    Ok,
    /// An error reported by the tool.
    Error,
    /// The caller dropped the call.
    Cancelled,
    /// A failure without a result from the tool.
    Failed(ToolFailure),
}

impl AuditOutcome {
    /// Returns how this outcome is logged.
    pub fn of(outcome: &ToolOutcome) -> Self {
        match (outcome.details.failure, outcome.is_error) {
            (Some(failure), _) => Self::Failed(failure),
            (None, true) => Self::Error,
            (None, false) => Self::Ok,
        }
    }

    /// Returns the stable name used in the log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
            Self::Failed(failure) => failure.name(),
        }
    }
}

/// A call as it is logged.
#[derive(Debug, Clone, Copy)]
pub struct CallRecord<'a> {
    /// When it ended. The logging thread converts it to wall-clock time.
    pub ended: Instant,
    /// The caller: a user, a client.
    pub who: &'a str,
    /// The agent.
    pub agent: Option<&'a str>,
    /// The session.
    pub session: Option<&'a str>,
    /// Kind of source: `mcp`, `native`, `client`, `openclaw`; empty if the tool is unknown.
    pub source: &'a str,
    /// MCP server.
    pub server: &'a str,
    /// Model-facing name of the tool.
    pub tool: &'a str,
    /// Name of the tool on its server.
    pub raw_tool: &'a str,
    /// Arguments, as given.
    pub arguments: &'a str,
    /// Outcome.
    pub outcome: AuditOutcome,
    /// Check that refused the call, if any.
    pub refused: Option<RefusedBy>,
    /// Duration.
    pub duration: Duration,
    /// Number of characters of text in the result.
    pub result_chars: usize,
    /// The trace of the call and its span in it, if there is one.
    pub trace: Option<(TraceId, SpanId)>,
}

/// Arguments in a form that may be logged.
#[derive(Serialize)]
#[serde(untagged)]
enum LoggedArguments {
    Whole(Box<RawValue>),
    /// Too long, or no longer valid JSON after redaction.
    Text(String),
}

impl CallRecord<'_> {
    /// Appends the line, including its newline. `labels` are those of [`Self::write_labels`]. With a
    /// redactor, the arguments are included. Built without serde: calls are frequent.
    pub(super) fn write_line(
        &self,
        line: &mut String,
        clock: &mut LogClock,
        labels: &str,
        redactor: Option<&Redactor>,
    ) {
        let arguments = self.arguments;
        line.reserve(ROOM);
        line.push_str("{\"time\":\"");
        clock.push_time(self.ended, line);
        line.push('"');
        line.push_str(labels);
        member(line, "outcome", Some(self.outcome.name()));
        member(line, "refusedBy", self.refused.map(RefusedBy::name));
        line.push_str(",\"durationMs\":");
        milliseconds(line, self.duration);
        line.push_str(",\"argumentsSha256\":\"");
        HEXLOWER.encode_append(&Sha256::digest(arguments), line);
        line.push('"');
        if let Some(redactor) = redactor {
            line.push_str(",\"arguments\":");
            let arguments = LoggedArguments::without_secrets(arguments, redactor);
            // Plain data cannot fail to serialize.
            line.push_str(&serde_json::to_string(&arguments).unwrap_or_default());
        }
        line.push_str(",\"resultChars\":");
        line.push_str(Decimal::default().of(self.result_chars as u64));
        if let Some((trace, span)) = self.trace {
            line.push_str(",\"traceId\":\"");
            HEXLOWER.encode_append(&trace.bytes(), line);
            line.push_str("\",\"spanId\":\"");
            HEXLOWER.encode_append(&span.bytes(), line);
            line.push('"');
        }
        line.push_str("}\n");
    }

    /// Appends the members that are the same for many calls.
    pub(super) fn write_labels(&self, line: &mut String) {
        member(line, "who", Some(self.who));
        member(line, "agent", self.agent);
        member(line, "session", self.session);
        member(line, "source", Some(self.source).filter(|source| !source.is_empty()));
        member(line, "server", Some(self.server));
        member(line, "tool", Some(self.tool));
        member(line, "rawTool", Some(self.raw_tool));
    }
}

/// Appends a string member, if it is present.
fn member(line: &mut String, name: &str, text: Option<&str>) {
    let Some(text) = text.map(|text| cut(text, MAX_NAME)) else { return };
    for part in [",\"", name, "\":"] {
        line.push_str(part);
    }
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    if text.bytes().all(is_plain) {
        for part in ["\"", text, "\""] {
            line.push_str(part);
        }
    } else {
        line.push_str(&serde_json::to_string(text).unwrap_or_default());
    }
}

/// Writes milliseconds with three decimals.
fn milliseconds(line: &mut String, duration: Duration) {
    let nanos = duration.as_nanos().saturating_add(500);
    let micros = u64::try_from(nanos / 1_000).unwrap_or(u64::MAX);
    line.push_str(Decimal::default().of(micros / 1_000));
    line.push('.');
    // Adding a thousand keeps leading zeros.
    let mut digits = Decimal::default();
    let parts = digits.of(1_000 + micros % 1_000).get(1..).unwrap_or_default();
    line.push_str(match parts.trim_end_matches('0') {
        "" => "0",
        parts => parts,
    });
}

impl LoggedArguments {
    fn without_secrets(arguments: &str, redactor: &Redactor) -> Self {
        // Redact before truncating: half a secret would not be found.
        let clean = redactor.redact(arguments);
        if clean.len() > MAX_ARGUMENTS {
            return Self::Text(format!("{}…", cut(&clean, MAX_ARGUMENTS)));
        }
        // A line break between tokens would split the log line.
        let on_one_line = clean.replace(['\n', '\r'], " ");
        match RawValue::from_string(on_one_line) {
            Ok(json) => Self::Whole(json),
            Err(_) => Self::Text(clean.into_owned()),
        }
    }
}

fn cut(text: &str, max_bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(max_bytes)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_milliseconds_to_the_microsecond() {
        for (nanos, expected) in [
            (0, "0.0"),
            (499, "0.0"),
            (500, "0.001"),
            (20_000, "0.02"),
            (1_500_000, "1.5"),
            (12_000_000, "12.0"),
            (3_600_000_123_000, "3600000.123"),
        ] {
            let mut line = String::new();
            milliseconds(&mut line, Duration::from_nanos(nanos));
            assert_eq!(line, expected);
        }
    }
}
