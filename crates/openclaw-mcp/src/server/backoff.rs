//! When to try again: a policy that is handed to whoever tries, so that it can be tested without
//! waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use openclaw_backoff::{Exponential, Jitter};

/// The first delay.
const FIRST: Duration = Duration::from_secs(1);

/// Doubling delays up to a ceiling, a bound on tries in a row, and the run after which the count
/// begins anew.
#[derive(Debug, Clone)]
pub struct Backoff {
    delays: Exponential,
    /// None: without end.
    limit: Option<RestartLimit>,
}

/// How often in a row a process is started again. It can be changed while the process runs; a clone is
/// the same limit.
#[derive(Debug, Clone, Default)]
pub struct RestartLimit(Arc<AtomicU32>);

impl RestartLimit {
    /// So often.
    pub fn new(limit: u32) -> Self {
        Self(Arc::new(AtomicU32::new(limit)))
    }

    /// Changes it.
    pub fn set(&self, limit: u32) {
        self.0.store(limit, Ordering::Relaxed);
    }

    fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A run of this length shows that a server is well again.
pub const HEALTHY_RUN: Duration = Duration::from_secs(60);

impl Backoff {
    /// For a local process (L3): 1, 2, 4, 8, 16, 30, 30, … seconds, `limit` times in a row.
    pub fn process(limit: RestartLimit, jitter: Jitter) -> Self {
        let delays = Exponential::new(FIRST, Duration::from_secs(30), jitter);
        Self { delays, limit: Some(limit) }
    }

    /// For a remote service (L4): the same up to a minute, without end.
    pub fn remote(jitter: Jitter) -> Self {
        Self { delays: Exponential::new(FIRST, Duration::from_secs(60), jitter), limit: None }
    }

    /// How long to wait before the next try; none if it was tried often enough.
    pub fn next_delay(&mut self) -> Option<Duration> {
        if self.limit.as_ref().is_some_and(|limit| self.delays.tries() >= limit.get()) {
            return None;
        }
        Some(self.delays.next_delay())
    }

    /// How often it was tried in a row.
    pub fn tries(&self) -> u32 {
        self.delays.tries()
    }

    /// A run has ended: if it was long enough, the count begins anew.
    pub fn ran_for(&mut self, run: Duration) {
        if run >= HEALTHY_RUN {
            self.delays.reset();
        }
    }

    /// Somebody asked for another try (`refresh`, a changed configuration).
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
    fn a_remote_service_is_tried_for_ever_once_a_minute_at_last() {
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
    fn without_restarts_there_is_no_second_try() {
        assert_eq!(process(0).next_delay(), None);
    }

    #[test]
    fn a_limit_that_is_raised_counts_at_once() {
        let limit = RestartLimit::new(1);
        let mut backoff = Backoff::process(limit.clone(), Jitter::none());
        assert_eq!(seconds(&mut backoff, 2), [Some(1), None]);
        limit.set(3);
        assert_eq!(seconds(&mut backoff, 3), [Some(2), Some(4), None]);
    }

    #[test]
    fn two_servers_that_failed_together_are_not_tried_together() {
        let delays = |seed| {
            let mut backoff = Backoff::remote(Jitter::seeded(seed));
            (0..6).filter_map(|_| backoff.next_delay()).collect::<Vec<_>>()
        };
        let (a, b) = (delays(1), delays(2));
        assert!(a.iter().zip(&b).all(|(a, b)| a != b), "{a:?} {b:?}");
        for (delay, nominal) in a.iter().zip([1, 2, 4, 8, 16, 32]) {
            let nominal = Duration::from_secs(nominal);
            assert!(*delay >= nominal * 4 / 5 && *delay <= nominal * 6 / 5, "{delay:?}");
        }
    }
}
