//! Timing, pinning, and printing results.

use std::time::{Duration, Instant};

pub(crate) use openclaw_testkit::bench::{keep_best, load, micros, repeats, verdict};

pub(crate) const ROUNDS: usize = 9;

/// Pins to one core.
pub(crate) fn pin() {
    let is_pinned = openclaw_testkit::bench::pin();
    println!("pinned to one core: {is_pinned}; load of the machine: {}", load());
}

/// The median time of sequential runs, in µs.
pub(crate) async fn median(times: usize, mut once: impl AsyncFnMut()) -> f64 {
    let times = repeats(times);
    let mut took = Vec::with_capacity(times);
    for _ in 0..times {
        let start = Instant::now();
        once().await;
        took.push(start.elapsed());
    }
    micros(percentile(&mut took, 50))
}

/// The given percentile.
pub(crate) fn percentile(took: &mut [Duration], percent: usize) -> Duration {
    took.sort_unstable();
    took[(took.len() * percent / 100).min(took.len() - 1)]
}
