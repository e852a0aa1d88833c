//! Why a turn failed.

use openclaw_models::ModelError;
use openclaw_sessions::{LeaseError, StoreError};

/// Why a turn failed. Messages up to the failure are stored.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    /// No model returned an answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The session cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another turn of this session is running.
    #[error(transparent)]
    Busy(LeaseError),
    /// Another run took the session over, because this process was suspended or its store failed
    /// for longer than the lease.
    #[error("another run took over this session; send the message again")]
    TakenOver,
    /// No model is configured.
    #[error("the agent has no model")]
    NoModel,
}
