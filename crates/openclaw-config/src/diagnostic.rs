//! Findings about a configuration, with their positions.

use std::cmp::Reverse;

use crate::name::NameError;
use crate::source::{Location, SourceSpan, Sources};

/// The severity of a [`Diagnostic`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The configuration cannot be used.
    Error,
    /// The configuration can be used, but a setting will not work as written.
    Warning,
    /// For information only.
    Note,
}

/// A finding about a configuration: message, position and advice.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Diagnostic {
    pub(crate) severity: Severity,
    pub(crate) message: String,
    pub(crate) path: Option<String>,
    pub(crate) primary: Option<(SourceSpan, String)>,
    pub(crate) secondary: Vec<(SourceSpan, String)>,
    pub(crate) help: Option<String>,
    /// Whether a warning is about something that cannot be used at all.
    pub(crate) is_unusable: bool,
}

impl Diagnostic {
    fn new(severity: Severity, message: impl Into<String>) -> Self {
        let (path, primary, secondary, help) = (None, None, Vec::new(), None);
        let message = message.into();
        Self { severity, message, path, primary, secondary, help, is_unusable: false }
    }

    pub(crate) fn error(message: impl Into<String>) -> Self {
        Self::new(Severity::Error, message)
    }

    pub(crate) fn warning(message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, message)
    }

    pub(crate) fn note(message: impl Into<String>) -> Self {
        Self::new(Severity::Note, message)
    }

    pub(crate) fn at(mut self, span: SourceSpan, label: impl Into<String>) -> Self {
        self.primary = Some((span, label.into()));
        self
    }

    pub(crate) fn also(mut self, span: SourceSpan, label: impl Into<String>) -> Self {
        self.secondary.push((span, label.into()));
        self
    }

    pub(crate) fn path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Marks a warning: what it is about cannot be used at all, while the rest of the configuration
    /// can.
    pub(crate) fn unusable(mut self) -> Self {
        self.is_unusable = true;
        self
    }

    /// Suggests a valid name, if there is one.
    pub(crate) fn suggest(self, problem: &NameError) -> Self {
        match problem.suggestion() {
            Some(better) => self.help(format!("use `{better}`")),
            None => self,
        }
    }

    /// The severity.
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// The problem, in one sentence.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// How to fix it.
    pub fn advice(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// The path of the key it is about: `agents.list[0].mcp.servers.x.url`.
    pub fn key_path(&self) -> Option<&str> {
        self.path.as_deref()
    }
}

/// All findings about a configuration, with the source texts they refer to.
#[derive(Debug, Clone, Default)]
pub struct Report {
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) sources: Sources,
}

impl Report {
    /// Returns the findings: notes, warnings, then errors (the most severe end up nearest to the
    /// prompt), each in file order.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Whether there are errors, so that the configuration cannot be used.
    pub fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    /// Returns the findings of a validation: warnings about what cannot be used at all are errors.
    pub fn for_validation(&self) -> Self {
        let mut report = self.clone();
        for found in report.diagnostics.iter_mut().filter(|found| found.is_unusable) {
            found.severity = Severity::Error;
        }
        report.settle();
        report
    }

    /// Returns the findings about the key at this path and the keys below it.
    pub fn about(&self, path: &str) -> Self {
        let is_about = |found: &&Diagnostic| {
            let rest = found.path.as_ref().and_then(|it| it.strip_prefix(path));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let diagnostics = self.diagnostics.iter().filter(is_about).cloned().collect();
        Self { diagnostics, sources: self.sources.clone() }
    }

    /// Counts the findings of this severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.diagnostics.iter().filter(|found| found.severity == severity).count()
    }

    /// Returns the position of a finding, if it has one.
    pub fn location(&self, diagnostic: &Diagnostic) -> Option<Location> {
        diagnostic.primary.as_ref().map(|(span, _)| self.sources.locate(*span))
    }

    /// Sorts and deduplicates: a server that several agents inherit is reported once.
    pub(crate) fn settle(&mut self) {
        let mut seen = std::collections::HashSet::new();
        self.diagnostics.retain(|found| seen.insert(found.clone()));
        self.diagnostics
            .sort_by_key(|found| (Reverse(found.severity), found.primary.as_ref().map(|it| it.0)));
    }

    /// Returns the findings as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        let findings = self.diagnostics.iter().map(|found| {
            serde_json::json!({
                "severity": found.severity,
                "message": found.message,
                "location": self.location(found),
                "path": found.path,
                "label": found.primary.as_ref().map(|(_, label)| label),
                "help": found.help,
                "related": found.secondary.iter().map(|(span, label)| serde_json::json!({
                    "location": self.sources.locate(*span),
                    "label": label,
                })).collect::<Vec<_>>(),
            })
        });
        findings.collect()
    }
}
