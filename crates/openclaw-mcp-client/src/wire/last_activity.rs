//! When a server last sent something (L8).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// The time of the last message from a server.
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
    /// Records that something was received at this time.
    pub(super) fn note(&self, now: Instant) {
        self.last.store(self.millis(now), Ordering::Relaxed);
    }

    /// Returns the time since the last message.
    pub(super) fn age(&self) -> Duration {
        let now = self.millis(Instant::now());
        Duration::from_millis(now.saturating_sub(self.last.load(Ordering::Relaxed)))
    }

    fn millis(&self, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.since);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}
