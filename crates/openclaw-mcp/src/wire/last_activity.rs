//! When a server last sent something (L8).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time of the last message from a server. An update costs one clock read.
#[derive(Debug)]
pub(super) struct LastActivity {
    since: Instant,
    /// Milliseconds since `since`.
    last: AtomicU64,
}

impl Default for LastActivity {
    fn default() -> Self {
        Self { since: Instant::now(), last: AtomicU64::new(0) }
    }
}

impl LastActivity {
    /// Records that something was received now.
    pub(super) fn note(&self) {
        self.last.store(self.now(), Ordering::Relaxed);
    }

    /// Returns the time since the last message.
    pub(super) fn age(&self) -> Duration {
        Duration::from_millis(self.now().saturating_sub(self.last.load(Ordering::Relaxed)))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
