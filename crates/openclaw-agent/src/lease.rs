//! The lease of a session: one turn at a time, across all processes.

use std::time::Duration;

use openclaw_backoff::{Exponential, Jitter};
use openclaw_sessions::{Lease, LeaseError, SessionStore};
use tokio::time::{Instant, sleep};

use crate::error::TurnError;
use crate::event::LoopEvent;
use crate::turn::Turn;

/// A session whose owner is gone is free after this time.
const LEASE: Duration = Duration::from_secs(30);
/// First delay before retrying; it doubles with each retry up to `LONGEST_PAUSE`.
const PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Maximum wait of a turn without a timeout of its own.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// Leases a session for a turn, waiting while another run holds it. Returns `None` if the turn was
/// cancelled or timed out meanwhile. The lease of a killed owner is free immediately if the store
/// can detect that, otherwise once it expires.
pub(crate) async fn take(
    store: &dyn SessionStore,
    turn: &Turn,
) -> Result<Option<Lease>, TurnError> {
    let deadline = Instant::now() + PATIENCE;
    let mut backoff = Exponential::new(PAUSE, LONGEST_PAUSE, Jitter::random());
    loop {
        let error = match store.lease(&turn.session, &turn.run, LEASE).await {
            Ok(lease) => return Ok(Some(lease)),
            Err(error) => error,
        };
        if !matches!(error, LeaseError::Busy { .. }) || Instant::now() >= deadline {
            return Err(TurnError::Busy(error));
        }
        if backoff.tries() == 0 {
            let words = "waiting for another run of this session to finish".to_owned();
            turn.observer.see(LoopEvent::Notice(words));
        }
        tokio::select! {
            biased;
            () = turn.cancel.cancelled() => return Ok(None),
            () = sleep(backoff.next_delay()) => {}
        }
    }
}
