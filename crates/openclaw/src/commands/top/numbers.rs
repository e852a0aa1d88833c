//! Rates and percentiles of the last seconds, from two samples.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use openclaw_protocol::metrics::{CallNumbers, SampleResult};

/// How far back rates and percentiles reach.
const REACH_MS: u64 = 10_000;

/// The samples of the last seconds.
pub(super) struct Window {
    samples: VecDeque<SampleResult>,
}

/// A server or a tool.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct UsageRow {
    pub(super) name: String,
    /// The state of a server; the server, or else the source, of a tool.
    pub(super) about: String,
    pub(super) calls_per_second: f64,
    pub(super) p50: Option<Duration>,
    pub(super) p95: Option<Duration>,
    /// Since the start of the gateway.
    pub(super) errors: u64,
    pub(super) in_flight: u64,
    /// Restarts of a server, calls of a tool, since the start of the gateway.
    pub(super) total: u64,
}

impl Window {
    pub(super) fn new(first: SampleResult) -> Self {
        Self { samples: [first].into() }
    }

    /// Adds a sample. The oldest one that is kept is the last one beyond the reach.
    pub(super) fn add(&mut self, sample: SampleResult) {
        let is_other_gateway = sample.uptime_ms < self.newest().uptime_ms;
        if is_other_gateway {
            self.samples.clear();
        }
        let since = sample.ts.saturating_sub(REACH_MS);
        while self.samples.get(1).is_some_and(|second| second.ts <= since) {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// The last sample.
    pub(super) fn newest(&self) -> &SampleResult {
        // There is always one.
        &self.samples[self.samples.len() - 1]
    }

    fn oldest(&self) -> Option<&SampleResult> {
        self.samples.front().filter(|_| self.samples.len() > 1)
    }

    /// The time that rates and percentiles are about; since the start if there is one sample only.
    pub(super) fn reach(&self) -> Option<Duration> {
        let oldest = self.oldest()?;
        Some(Duration::from_millis(self.newest().ts.saturating_sub(oldest.ts)))
    }

    fn row(
        &self,
        name: &str,
        about: &str,
        now: &CallNumbers,
        before: Option<&CallNumbers>,
    ) -> UsageRow {
        let reach = self.reach().unwrap_or(Duration::from_millis(self.newest().uptime_ms));
        let none = CallNumbers::default();
        let before = before.unwrap_or(&none);
        let calls = now.calls.saturating_sub(before.calls);
        let recent = since(&now.durations, &before.durations);
        UsageRow {
            name: name.to_owned(),
            about: about.to_owned(),
            calls_per_second: calls as f64 / reach.as_secs_f64().max(0.001),
            p50: percentile(&recent, 50),
            p95: percentile(&recent, 95),
            errors: now.errors,
            in_flight: now.in_flight,
            total: now.calls,
        }
    }

    /// The servers, by name.
    pub(super) fn servers(&self) -> Vec<UsageRow> {
        let oldest = self.oldest();
        let row = |server: &openclaw_protocol::metrics::ServerSample| {
            let before = oldest.and_then(|it| it.servers.iter().find(|it| it.name == server.name));
            let before = before.map(|it| &it.calls);
            let row = self.row(&server.name, &server.state, &server.calls, before);
            UsageRow { total: server.restarts, ..row }
        };
        self.newest().servers.iter().map(row).collect()
    }

    /// The tools, the busiest first.
    pub(super) fn tools(&self) -> Vec<UsageRow> {
        let oldest = self.oldest();
        let row = |tool: &openclaw_protocol::metrics::ToolSample| {
            let is_same = |it: &&openclaw_protocol::metrics::ToolSample| {
                (&it.source, &it.server, &it.tool) == (&tool.source, &tool.server, &tool.tool)
            };
            let before = oldest.and_then(|it| it.tools.iter().find(is_same)).map(|it| &it.calls);
            let about = if tool.server.is_empty() { &tool.source } else { &tool.server };
            self.row(&tool.tool, about, &tool.calls, before)
        };
        let mut rows: Vec<UsageRow> = self.newest().tools.iter().map(row).collect();
        rows.sort_by(|a, b| {
            let by_rate = b.calls_per_second.total_cmp(&a.calls_per_second);
            let by_load = b.in_flight.cmp(&a.in_flight);
            by_load.then(by_rate).then(b.total.cmp(&a.total)).then(a.name.cmp(&b.name))
        });
        rows
    }
}

/// Returns the durations that were recorded between two samples.
fn since(now: &[(u64, u64)], before: &[(u64, u64)]) -> BTreeMap<u64, u64> {
    let before: BTreeMap<u64, u64> = before.iter().copied().collect();
    let counts = now.iter().map(|(micros, count)| {
        (*micros, count.saturating_sub(before.get(micros).copied().unwrap_or(0)))
    });
    counts.filter(|(_, count)| *count > 0).collect()
}

fn percentile(durations: &BTreeMap<u64, u64>, percent: u64) -> Option<Duration> {
    let count: u64 = durations.values().sum();
    let wanted = count.saturating_mul(percent).div_ceil(100).max(1);
    let mut seen = 0;
    let found = durations.iter().find(|(_, count)| {
        seen += **count;
        seen >= wanted
    });
    found.map(|(micros, _)| Duration::from_micros(*micros))
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::metrics::{ServerSample, ToolSample};

    use super::*;

    fn sample(seconds: u64, calls: u64, durations: &[(u64, u64)]) -> SampleResult {
        let calls = CallNumbers { calls, durations: durations.to_vec(), ..CallNumbers::default() };
        let server = ServerSample {
            name: "x".to_owned(),
            state: "ready".to_owned(),
            restarts: 2,
            calls: calls.clone(),
            ..ServerSample::default()
        };
        let tool = |name: &str, calls| ToolSample {
            source: "native".to_owned(),
            tool: name.to_owned(),
            calls,
            ..ToolSample::default()
        };
        SampleResult {
            ts: seconds * 1_000,
            uptime_ms: seconds * 1_000,
            servers: vec![server],
            tools: vec![tool("idle", CallNumbers::default()), tool("busy", calls)],
            ..SampleResult::default()
        }
    }

    #[test]
    fn the_first_sample_is_about_the_time_since_the_start() {
        let window = Window::new(sample(10, 20, &[(1_000, 20)]));
        let row = &window.servers()[0];
        assert_eq!((row.calls_per_second, row.total, window.reach()), (2.0, 2, None));
        assert_eq!(row.p95, Some(Duration::from_millis(1)));
    }

    #[test]
    fn later_ones_are_about_the_last_seconds() {
        let mut window = Window::new(sample(100, 1_000, &[(1_000, 1_000)]));
        for second in 101..=120 {
            let new = second - 100;
            window.add(sample(second, 1_000 + new, &[(1_000, 1_000), (5_000, new)]));
        }
        let row = &window.servers()[0];
        assert_eq!((row.calls_per_second, row.p50), (1.0, Some(Duration::from_millis(5))));
        assert_eq!(window.reach(), Some(Duration::from_secs(10)));
        assert_eq!(window.tools()[0].name, "busy");
    }

    #[test]
    fn a_gateway_that_was_restarted_begins_anew() {
        let mut window = Window::new(sample(100, 1_000, &[]));
        window.add(sample(5, 10, &[]));
        assert_eq!((window.reach(), window.servers()[0].calls_per_second), (None, 2.0));
    }
}
