//! What benchmarks share: the number of rounds, pinning, the load of the machine, and the verdict about a budget.

use std::time::{Duration, Instant};

/// Pins this process and its children to one core: across cores, the time to wake the other one would be
/// measured. Returns whether it could be done.
pub fn pin() -> bool {
    // On some virtual machines the clock of a core stops for milliseconds.
    [1, 0].into_iter().any(|one| use_only(|core| core == one) && is_fine())
}

/// Allows all cores again.
pub fn unpin() {
    use_only(|_| true);
}

/// Returns whether the clock has microsecond resolution.
fn is_fine() -> bool {
    let start = Instant::now();
    (0..1_000).any(|_| start.elapsed() > Duration::ZERO)
}

#[cfg(target_os = "linux")]
fn use_only(is_wanted: impl Fn(usize) -> bool) -> bool {
    use nix::sched::{CpuSet, sched_setaffinity};
    let mut cores = CpuSet::new();
    for core in (0..CpuSet::count()).filter(|core| is_wanted(*core)) {
        let _ = cores.set(core);
    }
    sched_setaffinity(nix::unistd::Pid::from_raw(0), &cores).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn use_only(_: impl Fn(usize) -> bool) -> bool {
    false
}

/// Returns the load average of the machine.
pub fn load() -> String {
    std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim().to_owned()
}

/// Returns a duration in µs.
pub fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// Keeps the best value of each column.
pub fn keep_best<const N: usize>(best: &mut [f64; N], round: [f64; N]) {
    for (best, now) in best.iter_mut().zip(round) {
        *best = best.min(now);
    }
}

/// Returns the number of rounds, or of repetitions in a round: `usual`, or 1 if the run shall only show that
/// the benchmark works (`cargo xtask bench --smoke`).
pub fn repeats(usual: usize) -> usize {
    if is_smoke() { 1 } else { usual }
}

fn is_smoke() -> bool {
    std::env::var_os("OPENCLAW_BENCH_SMOKE").is_some()
}

/// Formats an upper bound, and whether it is met.
pub fn verdict(value: f64, budget: f64) -> String {
    judged(value <= budget, &format!("budget {budget}"))
}

/// Formats a lower bound, and whether it is met.
pub fn verdict_at_least(value: f64, budget: f64) -> String {
    judged(value >= budget, &format!("budget at least {budget}"))
}

fn judged(is_met: bool, budget: &str) -> String {
    let outcome = match is_met {
        _ if is_smoke() => "not judged",
        true => "met",
        false => "MISSED",
    };
    format!("{budget}: {outcome}")
}
