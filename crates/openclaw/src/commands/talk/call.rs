//! A tool call, formatted in a few lines: its name, arguments and result.

use std::fmt::Write as _;

use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::agent_event::{ToolProgress, ToolResult, ToolStart, ToolUpdate};
use openclaw_protocol::mcp::ProgressEvent;
use serde::Serialize;
use serde_json::Value;

/// The maximum lengths of a name, of one argument, of all arguments, and of a result in one line.
const NAME_CHARS: usize = 80;
const ARGUMENT_CHARS: usize = 40;
const ARGUMENTS_CHARS: usize = 120;
const RESULT_CHARS: usize = 100;
/// The maximum number of lines of a result, and the length of each.
const RESULT_LINES: usize = 3;
const LINE_CHARS: usize = 160;
/// The length of each line of a failed call: the end of a message often says what to do.
const FAILED_CHARS: usize = 600;

/// A tool call: the data of its start, of its end, or both.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShownCall {
    #[serde(rename = "toolCallId")]
    pub(crate) id: String,
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) args: Option<Value>,
    pub(crate) is_error: bool,
    /// The text of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration_ms: Option<f64>,
    /// The progress while it is running.
    #[serde(skip)]
    pub(crate) progress: Option<ShownProgress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<String>,
    /// The check that refused the call: `nobody-to-ask`, `changed`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused_by: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) findings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kept_in: Option<String>,
    /// The pictures and audio of a result that is not in the history.
    #[serde(skip)]
    pub(crate) media: Vec<Value>,
}

/// The progress of a call.
#[derive(Debug, Clone)]
pub(crate) struct ShownProgress {
    done: f64,
    /// The percentage, if the total is known.
    percent: Option<f64>,
    message: Option<String>,
}

impl From<ProgressEvent> for ShownProgress {
    fn from(event: ProgressEvent) -> Self {
        let ProgressEvent { token: _, done, percent, message } = event;
        Self { done, percent, message }
    }
}

impl From<ToolProgress> for ShownProgress {
    fn from(progress: ToolProgress) -> Self {
        let ToolProgress { done, percent, message } = progress;
        Self { done, percent, message }
    }
}

impl From<ToolStart> for ShownCall {
    fn from(start: ToolStart) -> Self {
        let ToolStart { tool_call_id: id, name, label, args } = start;
        Self { id, name, label, args, ..Self::default() }
    }
}

impl From<ToolUpdate> for ShownCall {
    fn from(update: ToolUpdate) -> Self {
        let progress = update.progress.map(ShownProgress::from);
        Self { id: update.tool_call_id, name: update.name, progress, ..Self::default() }
    }
}

impl From<ToolResult> for ShownCall {
    fn from(result: ToolResult) -> Self {
        Self {
            id: result.tool_call_id,
            name: result.name,
            is_error: result.is_error,
            text: Some(result.text),
            duration_ms: result.duration_ms,
            failure: result.failure,
            refused_by: result.refused_by,
            findings: result.findings,
            kept_in: result.kept_in,
            ..Self::default()
        }
    }
}

impl ShownProgress {
    /// Formats the progress: `40%  reading the second page`.
    pub(crate) fn words(&self) -> String {
        let mut words = match self.percent {
            Some(percent) => format!("{percent:.0}%"),
            None => self.done.to_string(),
        };
        if let Some(message) = &self.message {
            words.push_str("  ");
            words.push_str(&clean_line(Untrusted::new(message), LINE_CHARS));
        }
        words
    }
}

impl ShownCall {
    /// Combines the data of the end with that of the start.
    pub(super) fn ended(self, started: &Self) -> Self {
        Self {
            label: self.label.or_else(|| started.label.clone()),
            args: self.args.or_else(|| started.args.clone()),
            ..self
        }
    }

    /// Formats the call: `add(a=2, b=3)`.
    pub(crate) fn asked(&self) -> String {
        let args = self.args.as_ref().map(glimpse).unwrap_or_default();
        format!("{}({args})", clean_line(Untrusted::new(&self.name), NAME_CHARS))
    }

    /// Returns the text of the result.
    pub(crate) fn result(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Formats the duration: `1.2 ms`, `340 ms`, `2.5 s`; `None` if it never ran.
    pub(crate) fn took(&self) -> Option<String> {
        let milliseconds = self.duration_ms.filter(|took| *took > 0.0)?;
        Some(match milliseconds {
            long if long >= 1_000.0 => format!("{:.1} s", long / 1_000.0),
            some if some >= 10.0 => format!("{some:.0} ms"),
            short => format!("{short:.1} ms"),
        })
    }

    /// Returns the kinds of suspicious content in the result.
    pub(crate) fn suspicions(&self) -> Vec<String> {
        let names = self.findings.iter();
        names.map(|name| clean_line(Untrusted::new(name), NAME_CHARS)).collect()
    }
}

/// Formats arguments in one short line: `a=2, b="two"`.
fn glimpse(args: &Value) -> String {
    // Some models write them as a string, which may not be valid JSON.
    let parsed = args.as_str().and_then(|text| serde_json::from_str(text).ok());
    let args = parsed.as_ref().unwrap_or(args);
    let line = |text: &str, room| clean_line(Untrusted::new(text), room);
    let Value::Object(fields) = args else {
        return if args.is_null() {
            String::new()
        } else {
            line(&args.to_string(), ARGUMENTS_CHARS)
        };
    };
    let mut shown = String::new();
    for (at, (name, value)) in fields.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let (name, value) = (line(name, ARGUMENT_CHARS), line(&value.to_string(), ARGUMENT_CHARS));
        let _ = write!(shown, "{comma}{name}={value}");
        if shown.chars().count() > ARGUMENTS_CHARS {
            return line(&shown, ARGUMENTS_CHARS);
        }
    }
    shown
}

/// A truncated result: one line beside the call, or a few below it, and the omitted lines.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ResultLines {
    pub(crate) beside: Option<String>,
    pub(crate) below: Vec<String>,
    pub(crate) left_out: usize,
}

/// Truncates a result to a few lines; those of a failed call are longer.
pub(crate) fn cut_result(text: &str, is_error: bool) -> ResultLines {
    let most = if is_error { FAILED_CHARS } else { LINE_CHARS };
    let lines: Vec<&str> = text.trim().lines().collect();
    let line = |text: &str, room| clean_line(Untrusted::new(text), room);
    match lines.as_slice() {
        [] => ResultLines { beside: None, below: Vec::new(), left_out: 0 },
        [only] if only.chars().count() <= RESULT_CHARS => {
            ResultLines { beside: Some(line(only, RESULT_CHARS)), below: Vec::new(), left_out: 0 }
        }
        lines => ResultLines {
            beside: None,
            below: lines.iter().take(RESULT_LINES).map(|text| line(text, most)).collect(),
            left_out: lines.len().saturating_sub(RESULT_LINES),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_shown_in_one_line_without_control_characters() {
        assert_eq!(glimpse(&json!({ "a": 2, "b": "two" })), r#"a=2, b="two""#);
        assert_eq!(glimpse(&json!(r#"{"a":2}"#)), "a=2");
        assert_eq!(glimpse(&json!("{ not json")), r#""{ not json""#);
        assert_eq!(glimpse(&Value::Null), "");
        assert!(!glimpse(&json!({ "\u{1b}[2J": "\u{202e}" })).contains(['\u{1b}', '\u{202e}']));
        let long =
            glimpse(&json!({ "a": "x".repeat(90), "b": "y".repeat(90), "c": "z".repeat(90) }));
        assert!(long.chars().count() <= ARGUMENTS_CHARS + 4, "{long}");
    }

    #[test]
    fn a_long_result_is_truncated_and_omitted_lines_are_counted() {
        let short = cut_result("5\n", false);
        assert_eq!(short.beside.as_deref(), Some("5"));
        let long = cut_result("1\n2\n3\n4\n5", false);
        assert_eq!((long.below.len(), long.left_out), (3, 2));
        assert_eq!(
            cut_result("  \n", false),
            ResultLines { beside: None, below: Vec::new(), left_out: 0 }
        );
    }

    #[test]
    fn the_message_of_a_failed_call_is_not_truncated() {
        let denied = format!("The call was denied. {}Use --approve.", "Really. ".repeat(30));
        assert_eq!(cut_result(&denied, true).below, [denied.as_str()]);
        assert!(cut_result(&denied, false).below[0].ends_with('…'));
    }

    #[test]
    fn durations_are_rounded_for_display() {
        let took = |ms| ShownCall { duration_ms: Some(ms), ..ShownCall::default() }.took();
        assert_eq!(took(1.23).as_deref(), Some("1.2 ms"));
        assert_eq!(took(340.4).as_deref(), Some("340 ms"));
        assert_eq!(took(2_540.0).as_deref(), Some("2.5 s"));
        assert_eq!(took(0.0), None);
    }
}
