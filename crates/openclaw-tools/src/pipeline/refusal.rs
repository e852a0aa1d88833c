//! A call that is refused before it is executed.

use std::fmt::Display;

use crate::approval::{ApprovalReason, ChangeTooLarge};
use crate::arguments::InvalidArguments;
use crate::audit::AuditOutcome;
use crate::outcome::{RefusedBy, ToolFailure, ToolOutcome};

/// A call that is refused before it is executed.
#[derive(Debug)]
pub struct Refusal {
    pub(super) outcome: Box<ToolOutcome>,
    /// Logged outcome.
    pub(super) ended: AuditOutcome,
    /// Model-facing name of the tool, if it was requested by another one.
    pub(super) name: Option<String>,
}

impl Refusal {
    /// Creates a refusal with a trusted message.
    pub fn new(failure: ToolFailure, words: impl Into<String>) -> Self {
        let mut outcome = ToolOutcome::failure(words);
        outcome.details.failure = Some(failure);
        Self { outcome: Box::new(outcome), ended: AuditOutcome::Failed(failure), name: None }
    }

    /// Creates a refusal for a call that its caller cancelled before it was made.
    pub fn cancelled(words: impl Into<String>) -> Self {
        let outcome = Box::new(ToolOutcome::failure(words));
        Self { outcome, ended: AuditOutcome::Cancelled, name: None }
    }

    /// Sets the check that refused the call.
    #[must_use]
    pub fn by(mut self, check: RefusedBy) -> Self {
        self.outcome.details.refused = Some(check);
        self
    }

    /// Sets the intended server and the name of the tool there.
    #[must_use]
    pub fn at(mut self, server: &str, tool: &str) -> Self {
        let details = &mut self.outcome.details;
        details.server = (!server.is_empty()).then(|| server.into());
        details.tool = (!tool.is_empty()).then(|| tool.into());
        self
    }

    /// Sets the model-facing name of the tool, if it was requested by another one.
    #[must_use]
    pub fn called(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    pub(super) fn policy(by: &str) -> Self {
        let words = format!("The call is denied by the configuration (`{by}`).");
        Self::new(ToolFailure::Denied, words).by(RefusedBy::Policy)
    }

    pub(super) fn read_only() -> Self {
        let words = "The call is denied: this session is read-only, and the tool may change \
                     something. The user can choose another mode.";
        Self::new(ToolFailure::Denied, words).by(RefusedBy::Policy)
    }

    pub(super) fn unusable(flaw: &dyn Display) -> Self {
        let words = format!("The tool is unusable: {flaw}.");
        Self::new(ToolFailure::Protocol, words).by(RefusedBy::Unusable)
    }

    pub(super) fn changed() -> Self {
        let words = "The call is denied: the tool's description or schema has changed since it was \
                     first seen or approved. The user must review and approve it again.";
        Self::new(ToolFailure::Denied, words).by(RefusedBy::Changed)
    }

    pub(super) fn change_too_large(change: &ChangeTooLarge) -> Self {
        let words = format!("The call is denied: {change}. The user has to {}.", change.review);
        Self::new(ToolFailure::Denied, words).by(RefusedBy::Changed)
    }

    pub(super) fn declined() -> Self {
        let words = "The user denied this call.";
        Self::new(ToolFailure::Denied, words).by(RefusedBy::Declined)
    }

    pub(super) fn declined_with(words: &str) -> Self {
        let words = format!("The user denied this call and says: {words}");
        Self::new(ToolFailure::Denied, words).by(RefusedBy::Declined)
    }

    pub(super) fn nobody() -> Self {
        let words = "The call needs the user's approval, and no user answered. The tool was not \
                     called.";
        Self::new(ToolFailure::Denied, words).by(RefusedBy::NobodyToAsk)
    }

    pub(super) fn not_asked() -> Self {
        let words = "The call needs the user's approval, and no user answered: the user's client \
                     could not ask, or the question was dismissed. The tool was not called.";
        Self::new(ToolFailure::Denied, words).by(RefusedBy::NobodyToAsk)
    }

    pub(super) fn not_entitled(words: String, why: ApprovalReason) -> Self {
        let check = match why {
            ApprovalReason::Changed => RefusedBy::Changed,
            _ => RefusedBy::NobodyToAsk,
        };
        Self::new(ToolFailure::Denied, words).by(check)
    }

    pub(super) fn unreviewed() -> Self {
        let words = "The tool's description or schema has changed since it was first seen or \
                     approved, and no user was there to review it. The tool was not called.";
        Self::new(ToolFailure::Denied, words).by(RefusedBy::Changed)
    }

    pub(super) fn misfit(violations: &dyn Display) -> Self {
        let words = format!("Invalid arguments; the tool was not called.\n{violations}");
        Self::new(ToolFailure::InvalidArguments, words).by(RefusedBy::Schema)
    }

    pub(super) fn limit(words: String) -> Self {
        Self::new(ToolFailure::RateLimited, words).by(RefusedBy::Limit)
    }
}

impl From<InvalidArguments> for Refusal {
    fn from(error: InvalidArguments) -> Self {
        let words = format!("{error} The tool was not called.");
        Self::new(ToolFailure::InvalidArguments, words).by(RefusedBy::Schema)
    }
}
