//! Timing, pinning, and printing results.

use std::time::{Duration, Instant};

pub(crate) const ROUNDS: usize = 9;

/// Pins to one core: across cores, the time to wake the other one would be measured.
pub(crate) fn pin() {
    println!("pinned to one core: {}; load of the machine: {}", is_pinned(), load());
}

/// The load average of the machine.
pub(crate) fn load() -> String {
    std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim().to_owned()
}

#[cfg(target_os = "linux")]
fn is_pinned() -> bool {
    use nix::sched::{CpuSet, sched_setaffinity};
    let mut cores = CpuSet::new();
    cores.set(1).is_ok() && sched_setaffinity(nix::unistd::Pid::from_raw(0), &cores).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn is_pinned() -> bool {
    false
}

/// The median time of sequential runs, in µs.
pub(crate) async fn median(times: usize, mut once: impl AsyncFnMut()) -> f64 {
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

pub(crate) fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// Keeps the best value of each column.
pub(crate) fn keep_best<const N: usize>(best: &mut [f64; N], round: [f64; N]) {
    for (best, now) in best.iter_mut().zip(round) {
        *best = best.min(now);
    }
}

/// A budget, and whether it is met.
pub(crate) fn verdict(value: f64, budget: f64) -> String {
    let met = if value <= budget { "met" } else { "MISSED" };
    format!("budget {budget}: {met}")
}
