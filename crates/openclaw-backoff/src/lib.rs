//! Delays between retries: [`Exponential`] backoff, and the [`Jitter`] that keeps many clients from
//! retrying in step.
//!
//! Nothing here sleeps, and randomness is passed in: tests use [`Jitter::none`] or [`Jitter::seeded`]
//! and run in virtual time.
//!
//! ```
//! # use std::time::Duration;
//! # use openclaw_backoff::{Exponential, Jitter};
//! let (first, ceiling) = (Duration::from_secs(1), Duration::from_secs(5));
//! let mut backoff = Exponential::new(first, ceiling, Jitter::none());
//! let delays: Vec<u64> = (0..4).map(|_| backoff.next_delay().as_secs()).collect();
//! assert_eq!(delays, [1, 2, 4, 5]);
//! ```

use std::time::Duration;

/// A delay is changed by at most a fifth, up or down.
const SPREAD: u32 = 5;
/// The number of steps within the spread.
const STEPS: u32 = 1 << 16;

/// A source of randomness for delays. A clone continues the same sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jitter {
    /// `None` leaves every delay unchanged.
    state: Option<u64>,
}

impl Jitter {
    /// A random sequence. If the system returns no randomness, there is no jitter.
    pub fn random() -> Self {
        let mut seed = [0; 8];
        let state = getrandom::fill(&mut seed).ok().map(|()| u64::from_le_bytes(seed));
        Self { state }
    }

    /// A deterministic sequence, for tests.
    pub fn seeded(seed: u64) -> Self {
        Self { state: Some(seed) }
    }

    /// No jitter, for tests.
    pub fn none() -> Self {
        Self { state: None }
    }

    /// Returns a delay between 0.8 and 1.2 times this one.
    pub fn around(&mut self, delay: Duration) -> Duration {
        let Some(step) = self.step() else { return delay };
        let fifth = delay / SPREAD;
        (delay - fifth).saturating_add(fifth.saturating_mul(2) / STEPS * step)
    }

    /// Returns a delay between 1 and 1.2 times this one, for a peer's `Retry-After`, which is a
    /// minimum.
    pub fn after(&mut self, delay: Duration) -> Duration {
        let Some(step) = self.step() else { return delay };
        delay.saturating_add(delay / SPREAD / STEPS * step)
    }

    /// Returns a random step within the spread (SplitMix64).
    fn step(&mut self) -> Option<u32> {
        let state = self.state.as_mut()?;
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        u32::try_from(mixed >> 48).ok()
    }
}

/// Delays that double from the first one up to a ceiling, each with jitter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exponential {
    first: Duration,
    ceiling: Duration,
    tries: u32,
    jitter: Jitter,
}

impl Exponential {
    /// Creates delays from `first` to `ceiling`.
    pub fn new(first: Duration, ceiling: Duration, jitter: Jitter) -> Self {
        Self { first, ceiling, tries: 0, jitter }
    }

    /// Returns the delay before the next attempt.
    pub fn next_delay(&mut self) -> Duration {
        let doubled = self.first.saturating_mul(1 << self.tries.min(30));
        self.tries = self.tries.saturating_add(1);
        self.jitter.around(doubled.min(self.ceiling))
    }

    /// Returns the number of delays since the last reset.
    pub fn tries(&self) -> u32 {
        self.tries
    }

    /// Starts again with the first delay.
    pub fn reset(&mut self) {
        self.tries = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn jitter_stays_within_a_fifth_and_uses_all_of_it() {
        let mut jitter = Jitter::seeded(7);
        let delays: Vec<Duration> = (0..1_000).map(|_| jitter.around(SECOND)).collect();
        let within = Duration::from_millis(800)..=Duration::from_millis(1_200);
        assert!(delays.iter().all(|delay| within.contains(delay)));
        assert!(delays.iter().any(|delay| *delay < Duration::from_millis(820)));
        assert!(delays.iter().any(|delay| *delay > Duration::from_millis(1_180)));
    }

    #[test]
    fn a_requested_delay_is_never_shortened() {
        let mut jitter = Jitter::seeded(7);
        let within = SECOND..=Duration::from_millis(1_200);
        assert!((0..1_000).all(|_| within.contains(&jitter.after(SECOND))));
    }

    #[test]
    fn a_seed_gives_the_same_sequence_and_another_seed_another() {
        let sequence =
            |mut jitter: Jitter| (0..8).map(|_| jitter.around(SECOND)).collect::<Vec<_>>();
        assert_eq!(sequence(Jitter::seeded(1)), sequence(Jitter::seeded(1)));
        assert_ne!(sequence(Jitter::seeded(1)), sequence(Jitter::seeded(2)));
        assert_ne!(sequence(Jitter::random()), sequence(Jitter::random()));
    }

    #[test]
    fn the_longest_delays_do_not_overflow() {
        let mut jitter = Jitter::seeded(7);
        for delay in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
            jitter.around(delay);
            assert!(jitter.after(delay) >= delay);
        }
        let mut backoff = Exponential::new(Duration::MAX, Duration::MAX, jitter);
        for _ in 0..100 {
            let _ = backoff.next_delay();
        }
        assert_eq!(backoff.tries(), 100);
    }
}
