//! Durations (L9): a histogram in fixed space and without locks.

use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Each doubling of the time is split into this many buckets, for an error of at most 3 %.
const STEPS: usize = 16;
/// From 1 µs to more than an hour; longer durations are clamped.
const DOUBLINGS: usize = 32;
const BUCKETS: usize = STEPS * DOUBLINGS;
/// The bounds in the exposition are powers of two: from 2^7 µs (128 µs) to 2^26 µs (67 s).
const FIRST_BOUND: u32 = 7;
const LAST_BOUND: u32 = 26;

/// A histogram of durations.
#[derive(Debug)]
pub struct Latency {
    buckets: Box<[AtomicU64]>,
    sum_micros: AtomicU64,
}

/// The state of a histogram at one point in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistogramSnapshot {
    counts: Vec<u64>,
    sum_micros: u64,
}

impl Default for Latency {
    fn default() -> Self {
        let buckets = std::iter::repeat_with(AtomicU64::default).take(BUCKETS).collect();
        Self { buckets, sum_micros: AtomicU64::new(0) }
    }
}

impl Latency {
    /// Records a duration.
    pub fn record(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        if let Some(bucket) = self.buckets.get(bucket_of(micros)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Reads the histogram.
    pub fn snapshot(&self) -> HistogramSnapshot {
        HistogramSnapshot {
            counts: self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect(),
            sum_micros: self.sum_micros.load(Ordering::Relaxed),
        }
    }

    /// The number of recorded durations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).sum()
    }

    /// The median.
    pub fn p50(&self) -> Option<Duration> {
        self.snapshot().percentile(50)
    }

    /// The 95th percentile.
    pub fn p95(&self) -> Option<Duration> {
        self.snapshot().percentile(95)
    }
}

impl Default for HistogramSnapshot {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], sum_micros: 0 }
    }
}

impl AddAssign<&Self> for HistogramSnapshot {
    fn add_assign(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, count)| *sum += count);
        self.sum_micros = self.sum_micros.saturating_add(other.sum_micros);
    }
}

impl HistogramSnapshot {
    /// Returns a percentile; `None` if nothing was recorded.
    pub fn percentile(&self, percent: u64) -> Option<Duration> {
        let wanted = self.count().saturating_mul(percent).div_ceil(100).max(1);
        let mut seen = 0;
        let bucket = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        })?;
        Some(middle_of(bucket))
    }

    /// The number of recorded durations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of the recorded durations.
    pub fn sum(&self) -> Duration {
        Duration::from_micros(self.sum_micros)
    }

    /// Returns how many durations are within each bound of the exposition, in seconds.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let (mut seen, mut from) = (0, 0);
        (FIRST_BOUND..=LAST_BOUND).map(move |power| {
            let micros = 1_u64 << power;
            let end = bucket_of(micros);
            seen += self.counts[from..end].iter().sum::<u64>();
            from = end;
            (Duration::from_micros(micros).as_secs_f64(), seen)
        })
    }

    /// Returns the durations that occurred, each with how often it did.
    pub fn occurred(&self) -> impl Iterator<Item = (Duration, u64)> {
        let counts = self.counts.iter().copied().enumerate();
        counts.filter(|(_, count)| *count > 0).map(|(bucket, count)| (middle_of(bucket), count))
    }
}

/// Below 16 µs a bucket is one microsecond; above, the four bits after the leading one select it.
fn bucket_of(micros: u64) -> usize {
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

    #[test]
    fn the_exposition_counts_durations_within_each_bound() {
        let latency = Latency::default();
        for micros in [10, 127, 128, 300, 1_000_000, 200_000_000] {
            latency.record(Duration::from_micros(micros));
        }
        let read = latency.snapshot();
        let within = |bound: f64| read.cumulative().find(|(it, _)| *it == bound).unwrap().1;
        assert_eq!((within(0.000_128), within(0.000_256), within(0.000_512)), (2, 3, 4));
        assert_eq!((within(0.524_288), within(1.048_576), within(67.108_864)), (4, 5, 5));
        assert_eq!((read.count(), read.sum()), (6, Duration::from_micros(201_000_565)));
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
