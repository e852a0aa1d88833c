//! The same numbers for a live view: by server, and by tool.

use std::ops::AddAssign;

use crate::calls::CallSeries;
use crate::labels::{CallOutcome, Label as _, ServerState};
use crate::latency::HistogramSnapshot;
use crate::registry::{MCP, Metrics};

/// All servers and tools at one point in time.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    /// The MCP servers, sorted by name.
    pub servers: Vec<ServerSample>,
    /// The tools that were called, sorted by source, server and name.
    pub tools: Vec<ToolSample>,
}

/// An MCP server.
#[derive(Debug, Clone)]
pub struct ServerSample {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: &'static str,
    /// How often it was restarted.
    pub restarts: u64,
    /// Bytes of messages from it.
    pub received: u64,
    /// Bytes of messages to it.
    pub sent: u64,
    /// Calls of all its tools.
    pub calls: CallSample,
}

/// A tool.
#[derive(Debug, Clone)]
pub struct ToolSample {
    /// Kind of source: `mcp`, `native`, `client`, `openclaw`.
    pub source: &'static str,
    /// MCP server; empty for other sources.
    pub server: String,
    /// Its name.
    pub tool: String,
    /// Its calls.
    pub calls: CallSample,
}

/// Calls of one or more tools.
#[derive(Debug, Clone, Default)]
pub struct CallSample {
    /// All calls.
    pub calls: u64,
    /// Those without a result.
    pub errors: u64,
    /// Those that are being executed.
    pub in_flight: u64,
    /// Durations of those that were executed.
    pub durations: HistogramSnapshot,
}

impl Metrics {
    /// Reads the numbers for a live view; `None` if nothing is counted.
    pub fn sample(&self) -> Option<Sample> {
        let registry = self.shown()?;
        let tools: Vec<ToolSample> =
            registry.all_calls().iter().map(|series| ToolSample::of(series)).collect();
        let servers = registry.all_servers();
        let servers = servers.iter().map(|series| {
            let in_state = |state: &&ServerState| series.states.of(**state).get() > 0;
            let mut calls = CallSample::default();
            let is_its_tool =
                |tool: &&ToolSample| tool.source == MCP && *tool.server == *series.name;
            tools.iter().filter(is_its_tool).for_each(|tool| calls += &tool.calls);
            ServerSample {
                name: series.name.to_string(),
                state: ServerState::ALL.iter().find(in_state).map_or("closed", |it| it.name()),
                restarts: series.restarts.get(),
                received: series.received.get(),
                sent: series.sent.get(),
                calls,
            }
        });
        Some(Sample { servers: servers.collect(), tools })
    }
}

impl ToolSample {
    fn of(series: &CallSeries) -> Self {
        let (mut calls, mut errors) = (0, 0);
        for (outcome, count) in series.outcomes() {
            calls += count;
            errors += if outcome == CallOutcome::Ok { 0 } else { count };
        }
        Self {
            source: series.source,
            server: series.server.to_string(),
            tool: series.tool.to_string(),
            calls: CallSample {
                calls,
                errors,
                in_flight: series.in_flight(),
                durations: series.durations(),
            },
        }
    }
}

impl AddAssign<&Self> for CallSample {
    fn add_assign(&mut self, other: &Self) {
        self.calls += other.calls;
        self.errors += other.errors;
        self.in_flight += other.in_flight;
        self.durations += &other.durations;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use openclaw_secrets::Redactor;

    use super::*;

    #[test]
    fn a_server_has_the_calls_of_all_its_tools() {
        let metrics = Metrics::on(Redactor::new());
        let _server = metrics.server("x").unwrap();
        for (source, server, tool) in [("mcp", "x", "a"), ("mcp", "x", "b"), ("native", "", "c")] {
            let series = metrics.calls(source, server, tool).unwrap();
            series.entered();
            series.executed(CallOutcome::Ok, Duration::from_millis(10), 0);
            series.ended(CallOutcome::TimedOut, None);
            series.entered();
        }
        let Sample { servers, tools } = metrics.sample().unwrap();
        let CallSample { calls, errors, in_flight, durations } = &servers[0].calls;
        assert_eq!((*calls, *errors, *in_flight, durations.count()), (4, 2, 2, 2));
        assert_eq!((tools.len(), tools[2].calls.calls), (3, 2));
    }
}
