//! Clocks, cores, and how a figure is told.

use std::time::{Duration, Instant};

pub(crate) const ROUNDS: usize = 9;

/// One core for all sides: between two, what is measured is how long it takes to wake the other.
pub(crate) fn pin() {
    println!("pinned to one core: {}; load of the machine: {}", is_pinned(), load());
}

/// The load of the machine, as the system tells it.
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

/// The median time in µs, one after the other.
pub(crate) async fn median(times: usize, mut once: impl AsyncFnMut()) -> f64 {
    let mut took = Vec::with_capacity(times);
    for _ in 0..times {
        let start = Instant::now();
        once().await;
        took.push(start.elapsed());
    }
    micros(percentile(&mut took, 50))
}

/// The time within which so many in a hundred were done.
pub(crate) fn percentile(took: &mut [Duration], percent: usize) -> Duration {
    took.sort_unstable();
    took[(took.len() * percent / 100).min(took.len() - 1)]
}

pub(crate) fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// The best of each column so far.
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
