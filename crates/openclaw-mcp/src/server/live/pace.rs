//! Rate-limits the refresh of a server's lists after `list_changed` notifications.

use std::time::Duration;

use openclaw_backoff::Jitter;
use tokio::time::Instant;

/// A server may send many notifications in a row: the lists are read once it is quiet.
const SHORTEST: Duration = Duration::from_millis(200);
/// How many times the lists may be read in quick succession.
const BURST: u32 = 20;
/// How long it takes until they may be read once more, for a server that keeps sending notifications.
const EVERY: Duration = Duration::from_secs(15);

/// A token bucket: reads are quick until it is empty.
#[derive(Debug)]
pub(super) struct Pace {
    tokens: u32,
    /// Up to when tokens were added.
    filled: Instant,
    jitter: Jitter,
}

impl Pace {
    pub(super) fn new(jitter: Jitter, now: Instant) -> Self {
        Self { tokens: BURST, filled: now, jitter }
    }

    /// Returns how long to wait before reading the lists, after a notification.
    pub(super) fn wait(&mut self, now: Instant) -> Duration {
        while self.tokens < BURST && self.filled + EVERY <= now {
            self.tokens += 1;
            self.filled += EVERY;
        }
        if self.tokens == BURST {
            self.filled = now;
        }
        let wait = match self.tokens.checked_sub(1) {
            Some(left) => {
                self.tokens = left;
                SHORTEST
            }
            None => {
                self.filled += EVERY;
                self.filled.saturating_duration_since(now).max(SHORTEST)
            }
        };
        self.jitter.around(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_keeps_sending_notifications_is_read_less_often() {
        let start = Instant::now();
        let mut now = start;
        let mut pace = Pace::new(Jitter::none(), now);
        for _ in 0..BURST {
            let wait = pace.wait(now);
            assert_eq!(wait, SHORTEST);
            now += wait;
        }
        now += pace.wait(now);
        assert_eq!(now, start + EVERY, "the first token that was added since");
        assert_eq!(pace.wait(now), EVERY);
    }

    #[test]
    fn tokens_are_added_while_it_is_quiet_but_not_without_end() {
        let now = Instant::now();
        let mut pace = Pace::new(Jitter::none(), now);
        for _ in 0..BURST {
            pace.wait(now);
        }
        let later = now + EVERY * 2 + EVERY / 3;
        assert_eq!([pace.wait(later), pace.wait(later)], [SHORTEST; 2]);
        assert_eq!(pace.wait(later), EVERY - EVERY / 3);
        let much_later = now + EVERY * BURST * 10;
        for _ in 0..BURST {
            assert_eq!(pace.wait(much_later), SHORTEST);
        }
        assert_eq!(pace.wait(much_later), EVERY);
    }
}
