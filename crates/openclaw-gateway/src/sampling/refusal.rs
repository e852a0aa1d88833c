//! Why a server gets no completion.

use std::time::Duration;

use openclaw_tools::Failure;
use openclaw_tools::audit::AuditOutcome;

/// Why a server gets no completion, in words for the server: nothing of the configuration, the model or
/// its provider is in them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// The rule says so.
    #[error("sampling is not allowed for this server")]
    NotAllowed,
    /// The rule is to ask, and the server does not work for a conversation now.
    #[error("sampling needs a user's approval, and no conversation waits for this server")]
    Unasked,
    /// The rule is to ask, and nobody can be asked, or nobody answered.
    #[error("sampling needs a user's approval, and no user answered")]
    Nobody,
    /// Somebody said no.
    #[error("the user rejected the sampling request")]
    Rejected,
    /// Too many of them wait for somebody's word.
    #[error("too many sampling requests wait for a user's approval")]
    TooManyWait,
    /// Too many in a minute.
    #[error("rate limited: {limit} sampling requests a minute are allowed; retry in {} s", whole_seconds(*.after))]
    RateLimited {
        /// How many there may be.
        limit: u32,
        /// When there may be another.
        after: Duration,
    },
    /// The request makes no sense, or is too large.
    #[error("the sampling request is not accepted: {0}")]
    Invalid(String),
    /// No model of the agent has answered.
    #[error("the model did not answer")]
    NoAnswer,
    /// The model would not answer.
    #[error("{0}")]
    Declined(&'static str),
    /// The model took too long.
    #[error("the model did not answer within {} s", .0.as_secs())]
    TimedOut(Duration),
}

impl Refusal {
    /// How it is logged.
    pub(super) fn outcome(&self) -> AuditOutcome {
        AuditOutcome::Failed(match self {
            Self::NotAllowed
            | Self::Unasked
            | Self::Nobody
            | Self::Rejected
            | Self::TooManyWait => Failure::Denied,
            Self::RateLimited { .. } => Failure::RateLimited,
            Self::Invalid(_) => Failure::InvalidArguments,
            Self::NoAnswer => Failure::Unavailable,
            Self::Declined(_) => return AuditOutcome::Error,
            Self::TimedOut(_) => Failure::TimedOut,
        })
    }
}

/// Seconds for people: never too few.
fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}
