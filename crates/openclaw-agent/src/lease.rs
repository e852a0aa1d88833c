//! The right to speak in a session, for one turn at a time in all processes.

use std::time::Duration;

use openclaw_sessions::{Lease, LeaseError, SessionStore};
use tokio::time::{Instant, sleep};

use crate::agent::TurnError;
use crate::event::Event;
use crate::turn::Turn;

/// A session whose owner is gone is free again after that time.
const LEASE: Duration = Duration::from_secs(30);
/// So often it is looked whether it is free.
const PAUSE: Duration = Duration::from_millis(250);
/// Nobody waits longer.
const PATIENCE: Duration = Duration::from_secs(40);

/// Takes a session for a turn; none if the turn was cancelled before. Whose owner was killed becomes free by
/// itself (at once, if the store can tell), and is waited for; an owner that lives renews its lease, and then it is no use to wait.
pub(crate) async fn take(
    store: &dyn SessionStore,
    turn: &Turn,
) -> Result<Option<Lease>, TurnError> {
    let deadline = Instant::now() + PATIENCE;
    let mut shortest: Option<Duration> = None;
    loop {
        let error = match store.lease(&turn.session, &turn.run, LEASE).await {
            Ok(lease) => return Ok(Some(lease)),
            Err(error) => error,
        };
        let LeaseError::Busy { remaining, .. } = &error else {
            return Err(TurnError::Busy(error));
        };
        let is_renewed = shortest.is_some_and(|before| *remaining > before);
        if is_renewed || Instant::now() >= deadline {
            return Err(TurnError::Busy(error));
        }
        if shortest.is_none() {
            let words = "another run uses this session; waiting for its end".to_owned();
            turn.observer.see(Event::Notice(words));
        }
        shortest = Some(*remaining);
        tokio::select! {
            biased;
            () = turn.cancel.cancelled() => return Ok(None),
            () = sleep(PAUSE) => {}
        }
    }
}
