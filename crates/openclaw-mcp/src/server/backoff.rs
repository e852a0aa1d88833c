//! When to retry. The policy is passed in, so that it can be tested without waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use openclaw_backoff::{Exponential, Jitter};

/// The first delay.
const FIRST: Duration = Duration::from_secs(1);

/// Doubling delays up to a maximum, with an optional limit on attempts in a row. A long enough run
/// resets the count.
#[derive(Debug, Clone)]
pub struct Backoff {
    delays: Exponential,
    /// `None`: retries without end.
    limit: Option<RestartLimit>,
}

/// How often in a row a process is restarted. It can be changed while the process runs; clones
/// share it.
#[derive(Debug, Clone, Default)]
pub struct RestartLimit(Arc<AtomicU32>);

impl RestartLimit {
    /// Creates a limit.
    pub fn new(limit: u32) -> Self {
        Self(Arc::new(AtomicU32::new(limit)))
    }

    /// Changes the limit.
    pub fn set(&self, limit: u32) {
        self.0.store(limit, Ordering::Relaxed);
    }

    fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A server that ran for this long counts as healthy again.
pub const HEALTHY_RUN: Duration = Duration::from_secs(60);

impl Backoff {
    /// For a local process (L3): 1, 2, 4, 8, 16, 30, 30, … seconds, `limit` times in a row.
    pub fn process(limit: RestartLimit, jitter: Jitter) -> Self {
        let delays = Exponential::new(FIRST, Duration::from_secs(30), jitter);
        Self { delays, limit: Some(limit) }
    }

    /// For a remote server (L4): doubling delays up to 60 seconds, without end.
    pub fn remote(jitter: Jitter) -> Self {
        Self { delays: Exponential::new(FIRST, Duration::from_secs(60), jitter), limit: None }
    }

    /// Returns the delay before the next attempt; `None` if the limit is reached.
    pub fn next_delay(&mut self) -> Option<Duration> {
        if self.limit.as_ref().is_some_and(|limit| self.delays.tries() >= limit.get()) {
            return None;
        }
        Some(self.delays.next_delay())
    }

    /// The number of attempts in a row.
    pub fn tries(&self) -> u32 {
        self.delays.tries()
    }

    /// Records how long a connection lasted: a healthy run resets the count.
    pub fn ran_for(&mut self, run: Duration) {
        if run >= HEALTHY_RUN {
            self.delays.reset();
        }
    }

    /// Resets the count, after a `refresh` or a changed configuration.
    pub fn reset(&mut self) {
        self.delays.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(limit: u32) -> Backoff {
        Backoff::process(RestartLimit::new(limit), Jitter::none())
    }

    fn seconds(backoff: &mut Backoff, count: usize) -> Vec<Option<u64>> {
        (0..count).map(|_| backoff.next_delay().map(|delay| delay.as_secs())).collect()
    }

    #[test]
    fn a_process_is_restarted_with_growing_delays_and_then_given_up() {
        let mut backoff = process(7);
        let delays = seconds(&mut backoff, 8);
        assert_eq!(
            delays,
            [1, 2, 4, 8, 16, 30, 30].map(Some).into_iter().chain([None]).collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_remote_server_is_retried_without_end_up_to_once_a_minute() {
        let mut backoff = Backoff::remote(Jitter::none());
        assert_eq!(seconds(&mut backoff, 8).last(), Some(&Some(60)));
        assert_eq!(seconds(&mut backoff, 100).last(), Some(&Some(60)));
    }

    #[test]
    fn a_healthy_minute_resets_the_count_and_a_shorter_run_does_not() {
        let mut backoff = process(2);
        seconds(&mut backoff, 2);
        backoff.ran_for(Duration::from_secs(59));
        assert_eq!(backoff.next_delay(), None);
        backoff.ran_for(HEALTHY_RUN);
        assert_eq!(backoff.next_delay(), Some(Duration::from_secs(1)));
    }

    #[test]
    fn without_restarts_there_is_no_retry() {
        assert_eq!(process(0).next_delay(), None);
    }

    #[test]
    fn a_raised_limit_applies_immediately() {
        let limit = RestartLimit::new(1);
        let mut backoff = Backoff::process(limit.clone(), Jitter::none());
        assert_eq!(seconds(&mut backoff, 2), [Some(1), None]);
        limit.set(3);
        assert_eq!(seconds(&mut backoff, 3), [Some(2), Some(4), None]);
    }

    #[test]
    fn two_servers_that_failed_together_are_not_retried_together() {
        let delays = |seed| {
            let mut backoff = Backoff::remote(Jitter::seeded(seed));
            (0..6).filter_map(|_| backoff.next_delay()).collect::<Vec<_>>()
        };
        let a = delays(1);
        let b = delays(2);
        assert!(a.iter().zip(&b).all(|(a, b)| a != b), "{a:?} {b:?}");
        for (delay, nominal) in a.iter().zip([1, 2, 4, 8, 16, 32]) {
            let nominal = Duration::from_secs(nominal);
            assert!(*delay >= nominal * 4 / 5 && *delay <= nominal * 6 / 5, "{delay:?}");
        }
    }
}
