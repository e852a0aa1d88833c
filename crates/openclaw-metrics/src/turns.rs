//! The series of one agent.

use std::time::Duration;

use crate::counter::Counters;
use crate::labels::TurnOutcome;
use crate::latency::Latency;

/// The turns of one agent.
#[derive(Debug)]
pub struct TurnSeries {
    pub(crate) agent: Box<str>,
    pub(crate) outcomes: Counters<TurnOutcome>,
    pub(crate) duration: Latency,
}

impl TurnSeries {
    pub(crate) fn new(agent: Box<str>) -> Self {
        Self { agent, outcomes: Counters::default(), duration: Latency::default() }
    }

    /// Counts a turn.
    pub fn ended(&self, outcome: TurnOutcome, duration: Duration) {
        self.outcomes.of(outcome).increment();
        self.duration.record(duration);
    }
}
