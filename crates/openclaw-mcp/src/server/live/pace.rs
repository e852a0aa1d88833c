//! Rate-limits the refresh of a server's lists after `list_changed` notifications.

use std::time::Duration;

use openclaw_backoff::Jitter;
use tokio::time::Instant;

/// A server may send many notifications in a row: the lists are read once it is quiet.
const SHORTEST: Duration = Duration::from_millis(200);
/// The longest interval between two reads, for a server that keeps sending notifications.
const LONGEST: Duration = Duration::from_secs(30);
/// The interval is reset after this long without a change.
const QUIET: Duration = Duration::from_secs(60);

/// The interval between two reads: it doubles while changes keep coming.
#[derive(Debug)]
pub(super) struct Pace {
    between: Duration,
    jitter: Jitter,
    /// When the lists were last read.
    read: Option<Instant>,
}

impl Pace {
    pub(super) fn new(jitter: Jitter) -> Self {
        Self { between: SHORTEST, jitter, read: None }
    }

    /// Returns how long to wait before reading the lists, after a notification.
    pub(super) fn wait(&mut self, now: Instant) -> Duration {
        let since = self.read.map(|read| now.saturating_duration_since(read));
        let wait = match since.filter(|since| *since < QUIET) {
            Some(since) => {
                self.between = self.between.saturating_mul(2).min(LONGEST);
                self.between.saturating_sub(since).max(SHORTEST)
            }
            None => {
                self.between = SHORTEST;
                SHORTEST
            }
        };
        self.jitter.around(wait)
    }

    /// Records that the lists have been read.
    pub(super) fn read(&mut self, now: Instant) {
        self.read = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_grows_while_notifications_keep_coming() {
        let mut now = Instant::now();
        let mut pace = Pace::new(Jitter::none());
        let waits: Vec<u128> = (0..10)
            .map(|_| {
                let wait = pace.wait(now);
                now += wait;
                pace.read(now);
                wait.as_millis()
            })
            .collect();
        assert_eq!(waits, [200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]);
        assert_eq!(pace.wait(now + QUIET), SHORTEST, "reset after a quiet period");
        pace.read(now + QUIET);
        assert_eq!(pace.wait(now + QUIET), SHORTEST * 2);
    }

    #[test]
    fn the_time_since_the_last_read_is_subtracted() {
        let now = Instant::now();
        let mut pace = Pace::new(Jitter::none());
        for _ in 0..6 {
            pace.wait(now);
            pace.read(now);
        }
        assert_eq!(pace.wait(now + Duration::from_secs(12)), Duration::from_millis(800));
        assert_eq!(pace.wait(now + Duration::from_secs(59)), SHORTEST);
    }
}
