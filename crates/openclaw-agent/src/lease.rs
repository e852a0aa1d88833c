//! The right to speak in a session, for one turn at a time in all processes.

use std::time::Duration;

use openclaw_backoff::{Exponential, Jitter};
use openclaw_sessions::{Lease, LeaseError, SessionStore};
use tokio::time::{Instant, sleep};

use crate::agent::TurnError;
use crate::event::Event;
use crate::turn::Turn;

/// A session whose owner is gone is free again after that time.
const LEASE: Duration = Duration::from_secs(30);
/// So soon it is looked again whether it is free; each time twice as late, up to the longest pause.
const PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// A turn without a time-out of its own waits no longer.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// Takes a session for a turn; none if the turn was cancelled before, or its time was over. Who has it is
/// waited for: what an owner held that was killed is free at once if the store can tell, and soon otherwise;
/// one that lives gives it back in the end.
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
            let words = "another run uses this session; waiting for its end".to_owned();
            turn.observer.see(Event::Notice(words));
        }
        tokio::select! {
            biased;
            () = turn.cancel.cancelled() => return Ok(None),
            () = sleep(backoff.next_delay()) => {}
        }
    }
}
