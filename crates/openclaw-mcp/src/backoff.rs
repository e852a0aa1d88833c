//! When to try again: a policy that is handed to whoever tries, so that it can be tested without
//! waiting.

use std::time::Duration;

/// Doubling delays up to a ceiling, a bound on tries in a row, and the run after which the count
/// begins anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    ceiling: Duration,
    /// None: without end.
    limit: Option<u32>,
    tries: u32,
}

/// A run of this length shows that a server is well again.
pub const HEALTHY_RUN: Duration = Duration::from_secs(60);

impl Backoff {
    /// For a local process (L3): 1, 2, 4, 8, 16, 30, 30, … seconds, `limit` times in a row.
    pub fn process(limit: u32) -> Self {
        Self { ceiling: Duration::from_secs(30), limit: Some(limit), tries: 0 }
    }

    /// For a remote service (L4): the same up to a minute, without end.
    pub fn remote() -> Self {
        Self { ceiling: Duration::from_secs(60), limit: None, tries: 0 }
    }

    /// How long to wait before the next try; none if it was tried often enough.
    pub fn next_delay(&mut self) -> Option<Duration> {
        if self.limit.is_some_and(|limit| self.tries >= limit) {
            return None;
        }
        let doubled = Duration::from_secs(1 << self.tries.min(16));
        self.tries += 1;
        Some(doubled.min(self.ceiling))
    }

    /// How often it was tried in a row.
    pub fn tries(&self) -> u32 {
        self.tries
    }

    /// A run has ended: if it was long enough, the count begins anew.
    pub fn ran_for(&mut self, run: Duration) {
        if run >= HEALTHY_RUN {
            self.tries = 0;
        }
    }

    /// Somebody asked for another try (`refresh`, a changed configuration).
    pub fn reset(&mut self) {
        self.tries = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(backoff: &mut Backoff, count: usize) -> Vec<Option<u64>> {
        (0..count).map(|_| backoff.next_delay().map(|delay| delay.as_secs())).collect()
    }

    #[test]
    fn a_process_is_restarted_with_growing_delays_and_then_given_up() {
        let mut backoff = Backoff::process(7);
        let delays = seconds(&mut backoff, 8);
        assert_eq!(
            delays,
            [1, 2, 4, 8, 16, 30, 30].map(Some).into_iter().chain([None]).collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_remote_service_is_tried_for_ever_once_a_minute_at_last() {
        let mut backoff = Backoff::remote();
        assert_eq!(seconds(&mut backoff, 8).last(), Some(&Some(60)));
        assert_eq!(seconds(&mut backoff, 100).last(), Some(&Some(60)));
    }

    #[test]
    fn a_healthy_minute_resets_the_count_and_a_shorter_run_does_not() {
        let mut backoff = Backoff::process(2);
        seconds(&mut backoff, 2);
        backoff.ran_for(Duration::from_secs(59));
        assert_eq!(backoff.next_delay(), None);
        backoff.ran_for(HEALTHY_RUN);
        assert_eq!(backoff.next_delay(), Some(Duration::from_secs(1)));
    }

    #[test]
    fn without_restarts_there_is_no_second_try() {
        assert_eq!(Backoff::process(0).next_delay(), None);
    }
}
