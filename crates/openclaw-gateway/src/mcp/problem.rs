//! An error with a hint for users, and a kind for programs.

use openclaw_protocol::{ErrorCode, ErrorShape, detail};
use serde::{Deserialize, Serialize};

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The kind of problem.
    pub kind: ProblemKind,
    /// The message. May quote a server, so it is for users, not for a model.
    pub message: String,
    /// What the user can do about it.
    pub hint: Option<String>,
    /// The last lines the server wrote to stderr.
    pub last_lines: Vec<String>,
}

/// The kind of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemKind {
    /// The server does not exist.
    UnknownServer,
    /// The tool or prompt does not exist.
    UnknownTool,
    /// The server is not available.
    Unavailable,
    /// The tool's description or schema has changed since it was first seen or approved.
    Changed,
    /// The tool is listed but cannot be called.
    Unusable,
    /// The user must log in at the server.
    NeedsLogin,
    /// The request timed out.
    TimedOut,
    /// The caller is not permitted to do this.
    Forbidden,
    /// The request is invalid.
    Invalid,
}

const CODES: [(ProblemKind, &str); 8] = [
    (ProblemKind::UnknownServer, detail::UNKNOWN_SERVER),
    (ProblemKind::UnknownTool, detail::UNKNOWN_TOOL),
    (ProblemKind::Unavailable, detail::SERVER_UNAVAILABLE),
    (ProblemKind::Changed, detail::TOOL_CHANGED),
    (ProblemKind::Unusable, detail::TOOL_UNUSABLE),
    (ProblemKind::NeedsLogin, detail::NEEDS_LOGIN),
    (ProblemKind::TimedOut, detail::TIMED_OUT),
    (ProblemKind::Forbidden, detail::MISSING_SCOPE),
];

/// The `details` of a protocol error.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Details {
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    last_lines: Vec<String>,
}

impl Problem {
    /// Creates a problem without a hint.
    pub fn new(kind: ProblemKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, last_lines: Vec::new() }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The message, the last lines of stderr and the hint as text.
    pub fn text(&self) -> String {
        let mut text = self.message.clone();
        self.last_lines.iter().for_each(|line| text.push_str(&format!("\n  | {line}")));
        self.hint.iter().for_each(|hint| text.push_str(&format!("\n→ {hint}")));
        text
    }
}

impl From<Problem> for ErrorShape {
    fn from(problem: Problem) -> Self {
        let Problem { kind, message, hint, last_lines } = problem;
        let code = match kind {
            ProblemKind::Unavailable | ProblemKind::TimedOut | ProblemKind::NeedsLogin => {
                ErrorCode::Unavailable
            }
            ProblemKind::Changed | ProblemKind::Forbidden => ErrorCode::Forbidden,
            ProblemKind::UnknownServer
            | ProblemKind::UnknownTool
            | ProblemKind::Unusable
            | ProblemKind::Invalid => ErrorCode::InvalidRequest,
        };
        let detail = CODES.iter().find(|(known, _)| *known == kind);
        let detail = detail.map(|(_, code)| (*code).to_owned());
        let may_work_later = matches!(kind, ProblemKind::Unavailable | ProblemKind::TimedOut);
        let details = Details { code: detail, hint, last_lines };
        let retryable = may_work_later.then_some(true);
        Self { retryable, ..Self::new(code, message).with_details(&details) }
    }
}

impl From<&ErrorShape> for Problem {
    fn from(error: &ErrorShape) -> Self {
        let raw = error.details.as_deref();
        let details = raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
        let Details { code, hint, last_lines } = details.unwrap_or_default();
        let by_detail = CODES.iter().find(|(_, known)| Some(*known) == code.as_deref());
        let kind = match (by_detail, &error.code) {
            (Some((kind, _)), _) => *kind,
            (None, ErrorCode::Forbidden) => ProblemKind::Forbidden,
            (None, ErrorCode::Unavailable) => ProblemKind::Unavailable,
            (None, _) => ProblemKind::Invalid,
        };
        Self { kind, message: error.message.clone(), hint, last_lines }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_survives_a_round_trip_through_the_protocol() {
        let kinds = CODES.map(|(kind, _)| kind).into_iter().chain([ProblemKind::Invalid]);
        for kind in kinds {
            let mut problem = Problem::new(kind, "`x` is not there").hint("add it");
            problem.last_lines = vec!["bye".to_owned()];
            let error = ErrorShape::from(problem.clone());
            assert_eq!(Problem::from(&error), problem);
        }
    }
}
