//! Clocks, CPU time, CPU pinning, and the output of ratios.

use std::time::Instant;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
pub(crate) use openclaw_testkit::bench::{keep_best, micros, repeats, unpin};
use openclaw_testkit::bench::{load, verdict};

pub(crate) const ROUNDS: usize = 9;
pub(crate) const IN_FLIGHT: usize = 64;

/// Pins both ends to one core: with two cores, wake-up latency would dominate.
pub(crate) fn pin() {
    let is_pinned = openclaw_testkit::bench::pin();
    println!("pinned to one core: {is_pinned}; load of the machine: {}", load());
}

/// Returns the CPU time of this process so far, in µs.
pub(crate) fn cpu_used() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64
}

/// Returns the median time of sequential calls, in µs.
pub(crate) async fn median<F: Future<Output = usize>>(calls: usize, call: impl Fn() -> F) -> f64 {
    let calls = repeats(calls);
    let mut times = Vec::with_capacity(calls);
    for _ in 0..calls {
        let start = Instant::now();
        call().await;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    micros(times[calls / 2])
}

/// Returns the CPU time of this process per call, in µs, with many in flight.
pub(crate) async fn cpu<F: Future<Output = usize>>(calls: usize, call: impl Fn() -> F) -> f64 {
    let calls = repeats(calls);
    let before = cpu_used();
    in_flight(calls, call).await;
    (cpu_used() - before) / (calls + IN_FLIGHT) as f64
}

/// Makes calls, many at a time.
pub(crate) async fn in_flight<F: Future<Output = usize>>(calls: usize, call: impl Fn() -> F) {
    let mut flight: FuturesUnordered<_> = (0..IN_FLIGHT).map(|_| call()).collect();
    for _ in 0..calls {
        flight.next().await;
        flight.push(call());
    }
    while flight.next().await.is_some() {}
}

/// The upper bound of a measurement, if it has one.
#[derive(Clone, Copy)]
pub(crate) struct Budget(pub(crate) Option<f64>);

impl Budget {
    pub(crate) const NONE: Self = Self(None);

    pub(crate) const fn at_most(bound: f64) -> Self {
        Self(Some(bound))
    }

    /// Describes the budget and whether it is met.
    pub(crate) fn verdict(self, value: f64) -> String {
        self.0.map_or_else(|| "no budget".to_owned(), |bound| verdict(value, bound))
    }
}

/// Prints a line of a table: our value, the other one, their ratio, and the verdict.
pub(crate) fn line(what: &str, unit: &str, ours: f64, other: f64, budget: Budget) {
    let ratio = ours / other;
    let verdict = budget.verdict(ratio);
    println!("{what:<44} {ours:>11.1} {other:>11.1} {unit:<3} {ratio:>6.2} ×   {verdict}");
}

/// Prints the header of a table.
pub(crate) fn heading(other: &str) {
    println!("{:<44} {:>11} {other:>11}", "", "ours");
}
