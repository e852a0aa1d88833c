//! When something was last heard of a server (L8).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// When something was last heard. To take note costs a look at the clock.
#[derive(Debug)]
pub(super) struct LastHeard {
    since: Instant,
    /// Milliseconds since then.
    last: AtomicU64,
}

impl Default for LastHeard {
    fn default() -> Self {
        Self { since: Instant::now(), last: AtomicU64::new(0) }
    }
}

impl LastHeard {
    /// Something was heard just now.
    pub(super) fn note(&self) {
        self.last.store(self.now(), Ordering::Relaxed);
    }

    /// How long ago it was.
    pub(super) fn age(&self) -> Duration {
        Duration::from_millis(self.now().saturating_sub(self.last.load(Ordering::Relaxed)))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
