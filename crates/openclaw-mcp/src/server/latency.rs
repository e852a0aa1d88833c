//! How long calls take, and how many fail (L9): fixed in size, without locks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Each doubling of the time is split into this many buckets: a reading is at most 3 % off.
const STEPS: usize = 16;
/// Times from 1 µs to more than an hour; longer ones count as that.
const DOUBLINGS: usize = 32;
const BUCKETS: usize = STEPS * DOUBLINGS;

/// A histogram of durations.
#[derive(Debug)]
pub struct Latency {
    buckets: Box<[AtomicU64]>,
}

impl Default for Latency {
    fn default() -> Self {
        Self { buckets: std::iter::repeat_with(AtomicU64::default).take(BUCKETS).collect() }
    }
}

impl Latency {
    /// Counts a duration.
    pub fn record(&self, duration: Duration) {
        if let Some(bucket) = self.buckets.get(bucket_of(duration)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).sum()
    }

    /// Half of the calls took no longer than this.
    pub fn p50(&self) -> Option<Duration> {
        self.share(50)
    }

    /// 95 of 100 calls took no longer than this.
    pub fn p95(&self) -> Option<Duration> {
        self.share(95)
    }

    /// The duration that so many in a hundred do not exceed; none if nothing was counted.
    fn share(&self, percent: u64) -> Option<Duration> {
        // Read once: the sum must be that of the buckets which are then walked.
        let counts: Vec<u64> =
            self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect();
        let count: u64 = counts.iter().sum();
        let wanted = count.saturating_mul(percent).div_ceil(100).max(1);
        let mut seen = 0;
        let bucket = counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        })?;
        Some(middle_of(bucket))
    }
}

/// Below 16 µs a bucket is one microsecond; above, the four bits after the leading one choose.
fn bucket_of(duration: Duration) -> usize {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    if micros < STEPS as u64 {
        return micros as usize;
    }
    let exponent = micros.ilog2() as usize;
    let step = (micros >> (exponent - 4)) as usize & (STEPS - 1);
    ((exponent - 3) * STEPS + step).min(BUCKETS - 1)
}

fn middle_of(bucket: usize) -> Duration {
    if bucket < STEPS {
        return Duration::from_micros(bucket as u64);
    }
    let shift = bucket / STEPS - 1;
    let low = ((STEPS + bucket % STEPS) as u64) << shift;
    Duration::from_micros(low + (1_u64 << shift) / 2)
}

/// What is counted of the calls of a server, or of a tool.
#[derive(Debug, Default)]
pub struct CallStats {
    calls: AtomicU64,
    errors: AtomicU64,
    latency: Latency,
}

impl CallStats {
    /// Counts a call that was sent, and how it ended.
    pub fn record(&self, duration: Duration, is_error: bool) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.errors.fetch_add(u64::from(is_error), Ordering::Relaxed);
        self.latency.record(duration);
    }

    /// How many calls there were.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// How many of them failed.
    pub fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// How long they took.
    pub fn latency(&self) -> &Latency {
        &self.latency
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_is_said_about_no_calls() {
        assert_eq!(Latency::default().p50(), None);
    }

    #[test]
    fn shares_are_read_off_what_was_recorded() {
        let stats = CallStats::default();
        for millis in 1..=100 {
            stats.record(Duration::from_millis(millis), millis % 10 == 0);
        }
        assert_eq!((stats.calls(), stats.errors(), stats.latency().count()), (100, 10, 100));
        for (read, expected) in [(stats.latency().p50(), 50.0), (stats.latency().p95(), 95.0)] {
            let read = read.unwrap().as_secs_f64() * 1_000.0;
            assert!((read - expected).abs() / expected < 0.05, "{read} for {expected}");
        }
    }

    #[test]
    fn a_call_of_a_day_is_counted_too() {
        let latency = Latency::default();
        latency.record(Duration::MAX);
        assert_eq!(latency.count(), 1);
        assert!(latency.p95().unwrap() > Duration::from_secs(60 * 60));
    }

    proptest! {
        #[test]
        fn a_reading_is_close_to_what_was_recorded(micros in 1_u64..3_600_000_000) {
            let latency = Latency::default();
            latency.record(Duration::from_micros(micros));
            let read = latency.p50().unwrap().as_micros() as f64;
            prop_assert!((read - micros as f64).abs() <= micros as f64 * 0.033, "{} for {}", read, micros);
        }
    }
}
