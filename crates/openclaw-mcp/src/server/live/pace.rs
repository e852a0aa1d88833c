//! How soon the lists of a server are read again that says they have changed.

use std::time::Duration;

use openclaw_backoff::Jitter;
use tokio::time::Instant;

/// A server may say many times in a row that a list has changed: it is asked once it is quiet.
const SHORTEST: Duration = Duration::from_millis(200);
/// The longest time between two readings, for a server that does not stop saying so.
const LONGEST: Duration = Duration::from_secs(30);
/// After so long without a change everything is forgiven.
const QUIET: Duration = Duration::from_secs(60);

/// The time between two readings: it doubles while changes keep coming.
#[derive(Debug)]
pub(super) struct Pace {
    between: Duration,
    jitter: Jitter,
    /// When the lists were read last.
    read: Option<Instant>,
}

impl Pace {
    pub(super) fn new(jitter: Jitter) -> Self {
        Self { between: SHORTEST, jitter, read: None }
    }

    /// A change is told: how long to wait until the lists are read.
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

    /// The lists have been read.
    pub(super) fn read(&mut self, now: Instant) {
        self.read = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_does_not_stop_is_asked_ever_more_rarely() {
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
        assert_eq!(pace.wait(now + QUIET), SHORTEST, "it was quiet for a while");
        pace.read(now + QUIET);
        assert_eq!(pace.wait(now + QUIET), SHORTEST * 2);
    }

    #[test]
    fn the_time_that_has_passed_counts() {
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
