//! The series of one tool.
//!
//! A call that ends with a result costs three additions: when it is entered, and in the histogram of
//! durations. What can be derived from these is not counted again.

use std::sync::OnceLock;
use std::time::Duration;

use crate::counter::{Counter, Counters};
use crate::labels::{CallOutcome, Label as _, Refusal};
use crate::latency::{HistogramSnapshot, Latency};

/// The calls of one tool, or of all tools of a server beyond the bound.
#[derive(Debug, Default)]
pub struct CallSeries {
    pub(crate) source: &'static str,
    pub(crate) server: Box<str>,
    pub(crate) tool: Box<str>,
    pub(crate) refusals: Counters<Refusal>,
    pub(crate) findings: Counter,
    /// Calls that were executed, to their end or not.
    entered: Counter,
    /// Those that were not executed to their end.
    left: Counter,
    /// Durations of the calls with a result, which are counted here and nowhere else.
    successful: Latency,
    /// Durations of those that were executed to their end without one.
    failed: OnceLock<Latency>,
    /// All outcomes, except for results.
    outcomes: Counters<CallOutcome>,
}

impl CallSeries {
    pub(crate) fn new(source: &'static str, server: &str, tool: Box<str>) -> Self {
        Self { source, server: server.into(), tool, ..Self::default() }
    }

    /// Counts a call that is being executed, until [`Self::executed`] or [`Self::left`].
    pub fn entered(&self) {
        self.entered.increment();
    }

    /// Counts a call that is no longer being executed, although it has not ended.
    pub fn left(&self) {
        self.left.increment();
    }

    /// Counts a call that was [entered](Self::entered) and executed to its end, with the suspicious
    /// findings in its result.
    pub fn executed(&self, outcome: CallOutcome, duration: Duration, findings: u64) {
        if outcome == CallOutcome::Ok {
            self.successful.record(duration);
        } else {
            self.failed.get_or_init(Latency::default).record(duration);
            self.outcomes.of(outcome).increment();
        }
        if findings > 0 {
            self.findings.add(findings);
        }
    }

    /// Counts a call that was not executed to its end.
    pub fn ended(&self, outcome: CallOutcome, refusal: Option<Refusal>) {
        self.outcomes.of(outcome).increment();
        if let Some(refusal) = refusal {
            self.refusals.of(refusal).increment();
        }
    }

    /// Returns the number of calls that are being executed.
    pub(crate) fn in_flight(&self) -> u64 {
        // Those that end meanwhile are counted: less than none would be wrong.
        let failed = self.failed.get().map_or(0, Latency::count);
        let over = self.left.get() + self.successful.count() + failed;
        self.entered.get().saturating_sub(over)
    }

    /// Returns the durations of the calls that were executed to their end.
    pub(crate) fn durations(&self) -> HistogramSnapshot {
        let mut durations = self.successful.snapshot();
        if let Some(failed) = self.failed.get() {
            durations += &failed.snapshot();
        }
        durations
    }

    /// Returns the number of calls by outcome.
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = (CallOutcome, u64)> {
        let successful = self.successful.count();
        CallOutcome::ALL.iter().map(move |outcome| {
            let counted = self.outcomes.of(*outcome).get();
            (*outcome, counted + if *outcome == CallOutcome::Ok { successful } else { 0 })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_and_calls_in_flight_are_told_from_the_durations() {
        let series = CallSeries::new("mcp", "x", "echo".into());
        for outcome in [CallOutcome::Ok, CallOutcome::Ok, CallOutcome::Error] {
            series.entered();
            series.executed(outcome, Duration::from_millis(1), 0);
        }
        // One is executed again, one is cancelled, one runs.
        for _ in 0..2 {
            series.entered();
            series.left();
        }
        series.ended(CallOutcome::Cancelled, None);
        series.entered();
        assert_eq!(series.in_flight(), 1);
        let counted: Vec<_> = series.outcomes().filter(|(_, count)| *count > 0).collect();
        let expected = [(CallOutcome::Ok, 2), (CallOutcome::Error, 1), (CallOutcome::Cancelled, 1)];
        assert_eq!(counted, expected);
    }
}
