//! One line of the audit log.

use std::time::{Duration, SystemTime};

use openclaw_secrets::Redactor;
use openclaw_tools::{Failure, ToolOutcome};
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::clock::Rfc3339;

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
