//! Outcomes and refusals as labels of metrics (N4).

use openclaw_metrics::labels;

use crate::audit::AuditOutcome;
use crate::outcome::{RefusedBy, ToolFailure};

impl From<AuditOutcome> for labels::CallOutcome {
    fn from(outcome: AuditOutcome) -> Self {
        match outcome {
            AuditOutcome::Ok => Self::Ok,
            AuditOutcome::Error => Self::Error,
            AuditOutcome::Cancelled => Self::Cancelled,
            AuditOutcome::Failed(ToolFailure::Unavailable) => Self::Unavailable,
            AuditOutcome::Failed(ToolFailure::NeedsLogin) => Self::NeedsLogin,
            AuditOutcome::Failed(ToolFailure::TimedOut) => Self::TimedOut,
            AuditOutcome::Failed(ToolFailure::Protocol) => Self::ProtocolError,
            AuditOutcome::Failed(ToolFailure::InvalidResponse) => Self::InvalidResponse,
            AuditOutcome::Failed(ToolFailure::Denied) => Self::Denied,
            AuditOutcome::Failed(ToolFailure::RateLimited) => Self::RateLimited,
            AuditOutcome::Failed(ToolFailure::InvalidArguments) => Self::InvalidArguments,
        }
    }
}

impl From<RefusedBy> for labels::Refusal {
    fn from(check: RefusedBy) -> Self {
        match check {
            RefusedBy::UnknownTool => Self::UnknownTool,
            RefusedBy::Policy => Self::Policy,
            RefusedBy::Unusable => Self::Unusable,
            RefusedBy::Changed => Self::Changed,
            RefusedBy::Declined => Self::Declined,
            RefusedBy::NobodyToAsk => Self::NobodyToAsk,
            RefusedBy::Schema => Self::Schema,
            RefusedBy::Limit => Self::Limit,
            RefusedBy::Repeated => Self::Repeated,
            RefusedBy::UnaskedInput => Self::UnaskedInput,
        }
    }
}

#[cfg(test)]
mod tests {
    use openclaw_metrics::labels::{CallOutcome, Label as _, Refusal};

    use super::*;

    #[test]
    fn labels_have_the_names_of_the_audit_log() {
        let failures = [
            ToolFailure::Unavailable,
            ToolFailure::NeedsLogin,
            ToolFailure::TimedOut,
            ToolFailure::Protocol,
            ToolFailure::InvalidResponse,
            ToolFailure::Denied,
            ToolFailure::RateLimited,
            ToolFailure::InvalidArguments,
        ];
        let failures = failures.map(AuditOutcome::Failed).into_iter();
        for outcome in
            failures.chain([AuditOutcome::Ok, AuditOutcome::Error, AuditOutcome::Cancelled])
        {
            assert_eq!(CallOutcome::from(outcome).name(), outcome.name());
        }
        for check in [
            RefusedBy::UnknownTool,
            RefusedBy::Policy,
            RefusedBy::Unusable,
            RefusedBy::Changed,
            RefusedBy::Declined,
            RefusedBy::NobodyToAsk,
            RefusedBy::Schema,
            RefusedBy::Limit,
            RefusedBy::Repeated,
            RefusedBy::UnaskedInput,
        ] {
            assert_eq!(Refusal::from(check).name(), check.name());
        }
    }
}
