//! Why a sampling request is rejected.

use std::time::Duration;

use openclaw_tools::ToolFailure;
use openclaw_tools::audit::AuditOutcome;

/// Why a sampling request is rejected. The messages are sent to the server and reveal nothing about
/// the configuration, the model or its provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SamplingRefusal {
    /// The rule does not allow it.
    #[error("sampling is not allowed for this server")]
    NotAllowed,
    /// The rule is to ask, and no session is using the server.
    #[error("sampling needs a user's approval, and no session is using this server")]
    Unasked,
    /// The rule is to ask, and no approver is connected or none answered.
    #[error("sampling needs a user's approval, and no user answered")]
    Unanswered,
    /// The user rejected it.
    #[error("the user rejected the sampling request")]
    Rejected,
    /// Too many requests are waiting for approval.
    #[error("too many sampling requests are waiting for a user's approval")]
    TooManyWait,
    /// The rate limit is exceeded.
    #[error("rate limited: {limit} sampling requests a minute are allowed (`sampling.requestsPerMinute`); retry in {} s", whole_seconds(*.after))]
    RateLimited {
        /// Allowed requests per minute.
        limit: u32,
        /// Time until another request is allowed.
        after: Duration,
    },
    /// The request is invalid or too large.
    #[error("invalid sampling request: {0}")]
    Invalid(String),
    /// No model of the agent answered.
    #[error("the model did not answer")]
    NoAnswer,
    /// The model refused to answer.
    #[error("{0}")]
    Declined(&'static str),
    /// The model timed out.
    #[error("the model did not answer within {} s", .0.as_secs())]
    TimedOut(Duration),
}

impl SamplingRefusal {
    /// How it is recorded in the audit log.
    pub(super) fn outcome(&self) -> AuditOutcome {
        AuditOutcome::Failed(match self {
            Self::NotAllowed
            | Self::Unasked
            | Self::Unanswered
            | Self::Rejected
            | Self::TooManyWait => ToolFailure::Denied,
            Self::RateLimited { .. } => ToolFailure::RateLimited,
            Self::Invalid(_) => ToolFailure::InvalidArguments,
            Self::NoAnswer => ToolFailure::Unavailable,
            Self::Declined(_) => return AuditOutcome::Error,
            Self::TimedOut(_) => ToolFailure::TimedOut,
        })
    }
}

/// Seconds, rounded up.
fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}
