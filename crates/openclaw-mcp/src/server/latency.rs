//! Call statistics (L9): durations and errors, in fixed space and without locks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Each doubling of the time is split into this many buckets, for an error of at most 3 %.
const STEPS: usize = 16;
/// From 1 µs to more than an hour; longer durations are clamped.
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
    /// Records a duration.
    pub fn record(&self, duration: Duration) {
        if let Some(bucket) = self.buckets.get(bucket_of(duration)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The number of recorded durations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).sum()
    }

    /// The median.
    pub fn p50(&self) -> Option<Duration> {
        self.share(50)
    }

    /// The 95th percentile.
    pub fn p95(&self) -> Option<Duration> {
        self.share(95)
    }

    /// Returns a percentile; `None` if nothing was recorded.
    fn share(&self, percent: u64) -> Option<Duration> {
        // Read once: the sum must match the buckets that are walked below.
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

/// Below 16 µs a bucket is one microsecond; above, the four bits after the leading one select it.
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

/// The statistics of the calls of a server or a tool.
#[derive(Debug, Default)]
pub struct CallStats {
    calls: AtomicU64,
    errors: AtomicU64,
    latency: Latency,
}

impl CallStats {
    /// Records a call that was sent, and whether it failed.
    pub fn record(&self, duration: Duration, is_error: bool) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.errors.fetch_add(u64::from(is_error), Ordering::Relaxed);
        self.latency.record(duration);
    }

    /// The number of calls.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// The number of calls that failed.
    pub fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// The durations of the calls.
    pub fn latency(&self) -> &Latency {
        &self.latency
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn without_calls_there_is_no_percentile() {
        assert_eq!(Latency::default().p50(), None);
    }

    #[test]
    fn percentiles_match_the_recorded_durations() {
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
    fn a_duration_beyond_the_range_is_clamped() {
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
