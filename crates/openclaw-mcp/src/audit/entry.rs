//! One line of the audit log.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use openclaw_secrets::Redactor;
use openclaw_tools::{Failure, ToolOutcome};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

/// Longer arguments are written down only in part.
const MAX_ARGUMENTS: usize = 16 * 1024;
/// Names from outside are cut here.
const MAX_NAME: usize = 256;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditOutcome {
    /// With a result.
    Ok,
    /// With an error of the tool's own.
    Error,
    /// Nobody waited for its end.
    Cancelled,
    /// Without a result of the tool's own.
    Failed(Failure),
}

impl AuditOutcome {
    /// How this outcome is logged.
    pub fn of(outcome: &ToolOutcome) -> Self {
        match (outcome.details.failure, outcome.is_error) {
            (Some(failure), _) => Self::Failed(failure),
            (None, true) => Self::Error,
            (None, false) => Self::Ok,
        }
    }

    /// The stable name, as in the log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
            Self::Failed(failure) => failure.name(),
        }
    }
}

/// A call, as it is logged.
#[derive(Debug, Clone, Copy)]
pub struct CallRecord<'a> {
    /// When it ended.
    pub at: SystemTime,
    /// Who is behind it: a user, a client.
    pub who: &'a str,
    /// The agent.
    pub agent: Option<&'a str>,
    /// The session.
    pub session: Option<&'a str>,
    /// The server.
    pub server: &'a str,
    /// The tool's name as the model knows it.
    pub tool: &'a str,
    /// The tool's name as its server knows it.
    pub raw_tool: &'a str,
    /// The arguments.
    pub arguments: &'a RawValue,
    /// How it ended.
    pub outcome: AuditOutcome,
    /// How long it took.
    pub duration: Duration,
    /// How many characters of text came back.
    pub result_chars: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    time: Rfc3339,
    who: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    server: &'a str,
    tool: &'a str,
    raw_tool: &'a str,
    outcome: &'static str,
    duration_ms: f64,
    arguments_sha256: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Arguments>,
    result_chars: usize,
}

/// Arguments as they may be written down.
#[derive(Serialize)]
#[serde(untagged)]
enum Arguments {
    Whole(Box<RawValue>),
    /// Too long, or no longer JSON without its secrets.
    Text(String),
}

impl CallRecord<'_> {
    /// The line, with its end. With a redactor the arguments are in it.
    pub(super) fn line(&self, redactor: Option<&Redactor>) -> String {
        let arguments = self.arguments.get();
        let line = Line {
            time: Rfc3339(self.at),
            who: cut(self.who, MAX_NAME),
            agent: self.agent.map(|name| cut(name, MAX_NAME)),
            session: self.session.map(|name| cut(name, MAX_NAME)),
            server: cut(self.server, MAX_NAME),
            tool: cut(self.tool, MAX_NAME),
            raw_tool: cut(self.raw_tool, MAX_NAME),
            outcome: self.outcome.name(),
            duration_ms: (self.duration.as_secs_f64() * 1e6).round() / 1e3,
            arguments_sha256: hex(&Sha256::digest(arguments)),
            arguments: redactor.map(|redactor| Arguments::without_secrets(arguments, redactor)),
            result_chars: self.result_chars,
        };
        // Plain data cannot fail to serialize.
        let mut line = serde_json::to_string(&line).unwrap_or_default();
        line.push('\n');
        line
    }
}

impl Arguments {
    fn without_secrets(arguments: &str, redactor: &Redactor) -> Self {
        // Before it is cut: half a secret would not be found.
        let clean = redactor.redact(arguments);
        if clean.len() > MAX_ARGUMENTS {
            return Self::Text(format!("{}…", cut(&clean, MAX_ARGUMENTS)));
        }
        // A line break between tokens would break the line in two.
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

fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}

/// A time as RFC 3339 has it, in UTC, to the millisecond.
pub(super) struct Rfc3339(pub(super) SystemTime);

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = self.0.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
        let (year, month, day) = date(days);
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        let millis = since.subsec_millis();
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
    }
}

impl Serialize for Rfc3339 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The date so many days after 1970-01-01. Years are counted from March, so that the leap day is the
/// last of its year; 400 of them have 146,097 days, and five months from March on have 153.
fn date(days: u64) -> (u64, u64, u64) {
    // From 0000-03-01 on.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_rfc_3339_has_them() {
        for (seconds, millis, expected) in [
            (0, 0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, 999, "2000-02-28T23:59:59.999Z"),
            (951_782_400, 0, "2000-02-29T00:00:00.000Z"),
            (951_868_800, 0, "2000-03-01T00:00:00.000Z"),
            (1_735_689_599, 5, "2024-12-31T23:59:59.005Z"),
            (4_107_542_400, 0, "2100-03-01T00:00:00.000Z"),
        ] {
            let at = UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(millis);
            assert_eq!(Rfc3339(at).to_string(), expected);
        }
    }

    #[test]
    fn days_follow_each_other() {
        let mut before = date(0);
        for day in 1..200_000 {
            let now = date(day);
            let is_next = now.2 == before.2 + 1 && now.1 == before.1 && now.0 == before.0;
            let is_new_month = now.2 == 1 && (28..=31).contains(&before.2);
            assert!(is_next || is_new_month, "{before:?} {now:?}");
            before = now;
        }
    }
}
