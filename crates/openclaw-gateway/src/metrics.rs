//! The numbers of the gateway: for `/metrics`, and for `metrics.sample` (N4).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwapOption;
use openclaw_config::MetricsConfig;
use openclaw_mcp::fleet::Fleet;
use openclaw_metrics::prometheus::Format;
use openclaw_metrics::{CallSample, Gauges};
use openclaw_protocol::ErrorShape;
use openclaw_protocol::metrics::{CallNumbers, SampleResult, ServerSample, ToolSample};
use openclaw_secrets::Resolver;

use crate::approvals::PendingApprovals;
use crate::callers::Callers;
use crate::clock::now_ms;
use crate::runs::Runs;
use crate::setup::{ServeError, unresolved};
use crate::socket::MetricsAccess;

/// Who may read `/metrics` of a gateway that listens.
#[derive(Debug)]
pub(crate) struct ServedMetrics {
    bind: IpAddr,
    access: ArcSwapOption<MetricsAccess>,
}

impl ServedMetrics {
    /// Reads the settings of a gateway that listens on this address.
    ///
    /// # Errors
    /// If the token cannot be resolved, or is too short.
    pub(crate) async fn new(
        bind: IpAddr,
        config: &MetricsConfig,
        resolver: &Resolver,
    ) -> Result<Self, ServeError> {
        let token = match &config.token {
            Some(template) => {
                let token = resolver.resolve_credential(template).await;
                Some(token.map_err(unresolved("metrics.token"))?)
            }
            None => None,
        };
        let access = config.is_served_on(bind).then_some(MetricsAccess { token });
        access.iter().try_for_each(|access| access.check(bind))?;
        Ok(Self { bind, access: ArcSwapOption::from_pointee(access) })
    }

    /// Returns who may read `/metrics`; `None` if it is not served.
    pub(crate) fn access(&self) -> Option<Arc<MetricsAccess>> {
        self.access.load_full()
    }

    /// Reads other settings, for [`replace`](Self::replace).
    ///
    /// # Errors
    /// If the token cannot be resolved, or is too short.
    pub(crate) async fn newer(
        &self,
        config: &MetricsConfig,
        resolver: &Resolver,
    ) -> Result<Self, ServeError> {
        Self::new(self.bind, config, resolver).await
    }

    pub(crate) fn replace(&self, newer: &Self) {
        self.access.store(newer.access());
    }
}

/// What is counted, and the state of the gateway at this moment.
#[derive(Debug)]
pub(crate) struct LiveMetrics {
    pub(crate) version: String,
    pub(crate) started: Instant,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) runs: Arc<Runs>,
    pub(crate) callers: Arc<Callers>,
    pub(crate) approvals: Arc<PendingApprovals>,
}

impl LiveMetrics {
    /// Returns the exposition; `None` if nothing is counted.
    pub(crate) fn exposition(&self, format: Format) -> Option<String> {
        self.fleet.metrics().render(format, &self.gauges())
    }

    fn gauges(&self) -> Gauges {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started = now.saturating_sub(self.started.elapsed());
        let (sessions, waiting_turns) = self.runs.queue();
        let (event_queue, event_lag) = self.callers.behind();
        let (audit_queue, audit_lost) = self.fleet.audit().backlog();
        Gauges {
            version: self.version.clone(),
            // More digits would change with every scrape.
            started: (started.as_secs_f64() * 10.0).round() / 10.0,
            clients: self.callers.count(),
            sessions,
            waiting_turns,
            approvals_pending: self.approvals.count(),
            audit_queue,
            audit_lost,
            event_queue,
            event_lag,
        }
    }

    /// Returns a sample for a live view.
    ///
    /// # Errors
    /// If nothing is counted.
    pub(crate) fn sample(&self) -> Result<SampleResult, ErrorShape> {
        let sample = self.fleet.metrics().sample();
        let sample = sample.ok_or_else(|| {
            ErrorShape::unavailable("metrics are off (`metrics.enabled` in the configuration)")
        })?;
        let gauges = self.gauges();
        let servers = sample.servers.iter().map(|server| ServerSample {
            name: server.name.clone(),
            state: server.state.to_owned(),
            restarts: server.restarts,
            received_bytes: server.received,
            sent_bytes: server.sent,
            calls: numbers(&server.calls),
        });
        let tools = sample.tools.iter().map(|tool| ToolSample {
            source: tool.source.to_owned(),
            server: tool.server.clone(),
            tool: tool.tool.clone(),
            calls: numbers(&tool.calls),
        });
        Ok(SampleResult {
            ts: now_ms(),
            uptime_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            clients: gauges.clients as u64,
            sessions: gauges.sessions as u64,
            waiting_turns: gauges.waiting_turns as u64,
            approvals_pending: gauges.approvals_pending as u64,
            servers: servers.collect(),
            tools: tools.collect(),
        })
    }
}

fn numbers(read: &CallSample) -> CallNumbers {
    // To the microsecond.
    let milliseconds = |duration: Duration| (duration.as_secs_f64() * 1e6).round() / 1e3;
    let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    CallNumbers {
        calls: read.calls,
        errors: read.errors,
        in_flight: read.in_flight,
        p50_ms: read.durations.percentile(50).map(milliseconds),
        p95_ms: read.durations.percentile(95).map(milliseconds),
        durations: read.durations.occurred().map(|(it, count)| (micros(it), count)).collect(),
    }
}
