//! The results of checks, with advice for each problem.

use anstyle::Style;
use openclaw_content::wrap_words;
use openclaw_mcp::server::status::{ServerState, ServerStatus};
use serde_json::{Value, json};

use super::mcp::show_servers;
use crate::output::{Output, printable};
use openclaw_terminal::style::{BAD, FAINT, GOOD, STRONG, WARNING};

/// Returns the mark of a server in this state, and its style.
pub(crate) fn state_mark(state: ServerState) -> (&'static str, Style) {
    match state {
        ServerState::Ready => ("✓", GOOD),
        ServerState::Connecting => ("·", FAINT),
        state if state.is_at_rest() => ("·", FAINT),
        ServerState::Restarting => ("↻", WARNING),
        _ => ("✗", BAD),
    }
}

/// The result of one check.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) verdict: Verdict,
    pub(crate) what: String,
    /// What to do about a problem.
    pub(crate) advice: Option<String>,
    /// The last lines that the server wrote to stderr.
    pub(crate) last_lines: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Good,
    Bad,
    /// Information, not a problem.
    Note,
}

impl Check {
    fn new(verdict: Verdict, what: impl Into<String>) -> Self {
        Self { verdict, what: what.into(), advice: None, last_lines: Vec::new() }
    }

    pub(crate) fn good(what: impl Into<String>) -> Self {
        Self::new(Verdict::Good, what)
    }

    pub(crate) fn note(what: impl Into<String>) -> Self {
        Self::new(Verdict::Note, what)
    }

    pub(crate) fn bad(what: impl Into<String>, advice: Option<String>) -> Self {
        Self { advice, ..Self::new(Verdict::Bad, what) }
    }

    pub(crate) fn show(&self, output: &mut Output) {
        let (mark, style) = match self.verdict {
            Verdict::Good => ("✓", GOOD),
            Verdict::Bad => ("✗", BAD),
            Verdict::Note => ("·", FAINT),
        };
        let room = usize::from(output.width()).saturating_sub(6).max(20);
        for (at, line) in wrap_words(&printable(&self.what), room).iter().enumerate() {
            let mark = if at == 0 { mark } else { " " };
            output.line(format_args!("  {style}{mark}{style:#} {line}"));
        }
        for line in &self.last_lines {
            output.line(format_args!("    {FAINT}| {}{FAINT:#}", printable(line)));
        }
        if let Some(advice) = &self.advice {
            let lines = wrap_words(&printable(advice), room.saturating_sub(2));
            for (at, line) in lines.iter().enumerate() {
                let mark = if at == 0 { "→" } else { " " };
                output.line(format_args!("    {mark} {line}"));
            }
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "verdict": match self.verdict {
                Verdict::Good => "good",
                Verdict::Bad => "bad",
                Verdict::Note => "note",
            },
            "what": self.what,
            "advice": self.advice,
            "lastLines": self.last_lines,
        })
    }
}

/// Whether no check found a problem.
pub(crate) fn is_well(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.verdict != Verdict::Bad)
}

/// The checks of one subject: a server, or a part of the program.
#[derive(Debug)]
pub(crate) struct SubjectChecks {
    pub(crate) about: String,
    pub(crate) checks: Vec<Check>,
    /// Shown as a table instead of the checks, except in JSON.
    servers: Vec<ServerStatus>,
}

impl SubjectChecks {
    pub(crate) fn new(about: impl Into<String>, checks: Vec<Check>) -> Self {
        Self { about: about.into(), checks, servers: Vec::new() }
    }

    /// Shows these servers as a table instead of the checks.
    pub(crate) fn with_servers(self, servers: Vec<ServerStatus>) -> Self {
        Self { servers, ..self }
    }

    pub(crate) fn is_well(&self) -> bool {
        is_well(&self.checks)
    }

    /// Whether nothing was checked: the server is disabled.
    pub(crate) fn was_left_alone(&self) -> bool {
        self.checks.iter().all(|check| check.verdict == Verdict::Note)
    }

    pub(crate) fn show(&self, output: &mut Output) {
        if !self.servers.is_empty() {
            return show_servers(&self.servers, output);
        }
        output.line(format_args!("{STRONG}{}{STRONG:#}", self.about));
        self.checks.iter().for_each(|check| check.show(output));
    }

    pub(crate) fn to_json(&self) -> Value {
        let checks: Vec<Value> = self.checks.iter().map(Check::to_json).collect();
        json!({ "name": self.about, "ok": self.is_well(), "checks": checks })
    }

    /// Returns the problems, each with advice.
    pub(crate) fn problems(&self) -> Vec<Value> {
        let bad = self.checks.iter().filter(|check| check.verdict == Verdict::Bad);
        bad.map(|check| json!({ "about": self.about, "what": check.what, "advice": check.advice }))
            .collect()
    }
}
