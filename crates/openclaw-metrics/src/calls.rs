//! The series of one tool.

use std::time::Duration;

use crate::counter::{Counter, Counters, Gauge};
use crate::labels::{CallOutcome, Refusal};
use crate::latency::Latency;

/// The calls of one tool, or of all tools of a server beyond the bound.
#[derive(Debug)]
pub struct CallSeries {
    pub(crate) source: &'static str,
    pub(crate) server: Box<str>,
    pub(crate) tool: Box<str>,
    pub(crate) outcomes: Counters<CallOutcome>,
    pub(crate) refusals: Counters<Refusal>,
    pub(crate) duration: Latency,
    pub(crate) in_flight: Gauge,
    pub(crate) findings: Counter,
}

impl CallSeries {
    pub(crate) fn new(source: &'static str, server: &str, tool: Box<str>) -> Self {
        Self {
            source,
            server: server.into(),
            tool,
            outcomes: Counters::default(),
            refusals: Counters::default(),
            duration: Latency::default(),
            in_flight: Gauge::default(),
            findings: Counter::default(),
        }
    }

    /// Counts a call that is being executed, until [`Self::left`].
    pub fn entered(&self) {
        self.in_flight.add(1);
    }

    /// Counts a call that is no longer being executed.
    pub fn left(&self) {
        self.in_flight.add(-1);
    }

    /// Counts a call that was executed, with the suspicious findings in its result.
    pub fn executed(&self, outcome: CallOutcome, duration: Duration, findings: u64) {
        self.outcomes.of(outcome).increment();
        self.duration.record(duration);
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
}
