//! The exposition of all series.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::calls::CallSeries;
use crate::counter::{Counter, Counters};
use crate::families::{self as all, MetricFamily};
use crate::labels::Label;
use crate::models::NANO_USD;
use crate::prometheus::{ExpositionWriter, Format};
use crate::registry::{Metrics, Registry};
use crate::server::ServerSeries;

/// Numbers that the gateway reads when it is scraped.
#[derive(Debug, Clone, Default)]
pub struct Gauges {
    /// Version of the gateway.
    pub version: String,
    /// When it was started, in seconds since 1970.
    pub started: f64,
    /// Connected clients.
    pub clients: usize,
    /// Sessions with a turn that runs or waits.
    pub sessions: usize,
    /// Turns that wait for another one of their session.
    pub waiting_turns: usize,
    /// Requests for approval that wait for an answer.
    pub approvals_pending: usize,
    /// Lines that wait to be written to the audit log.
    pub audit_queue: u64,
    /// Lines that the audit log has lost.
    pub audit_lost: u64,
    /// Messages that the slowest client has not received yet.
    pub event_queue: usize,
    /// How long the oldest message to a client has waited to be sent.
    pub event_lag: Duration,
}

impl Metrics {
    /// Writes all series. Returns `None` if nothing is counted.
    pub fn render(&self, format: Format, gauges: &Gauges) -> Option<String> {
        let registry = self.shown()?;
        let mut text = ExpositionWriter::new(format);
        text.family(&all::BUILD);
        text.sample(&all::BUILD, &[&gauges.version], 1);
        text.single(&all::STARTED, gauges.started);
        calls(&mut text, registry);
        approvals(&mut text, registry, gauges);
        servers(&mut text, registry);
        turns(&mut text, registry);
        models(&mut text, registry);
        gateway(&mut text, registry, gauges);
        Some(text.finish())
    }
}

fn calls(text: &mut ExpositionWriter, registry: &Registry) {
    let calls = registry.all_calls();
    text.family(&all::CALLS);
    for series in &calls {
        let CallSeries { source, server, tool, .. } = &**series;
        for (outcome, count) in series.outcomes().filter(|(_, count)| *count > 0) {
            let labels = [*source, &**server, &**tool, outcome.name()];
            text.sample(&all::CALLS, &labels, count);
        }
    }
    text.family(&all::CALL_DURATION);
    for series in &calls {
        let CallSeries { source, server, tool, .. } = &**series;
        text.histogram(&all::CALL_DURATION, &[source, server, tool], &series.durations());
    }
    let mut by_server: BTreeMap<[&str; 2], Vec<&Arc<CallSeries>>> = BTreeMap::new();
    for series in &calls {
        by_server.entry([series.source, &series.server]).or_default().push(series);
    }
    text.family(&all::CALLS_IN_FLIGHT);
    for (labels, tools) in &by_server {
        let sum: u64 = tools.iter().map(|tool| tool.in_flight()).sum();
        text.sample(&all::CALLS_IN_FLIGHT, labels, sum);
    }
    text.family(&all::CALLS_REFUSED);
    for ([source, server], tools) in &by_server {
        for check in crate::labels::Refusal::ALL {
            let sum: u64 = tools.iter().map(|tool| tool.refusals.of(*check).get()).sum();
            if sum > 0 {
                text.sample(&all::CALLS_REFUSED, &[source, server, check.name()], sum);
            }
        }
    }
    text.family(&all::FINDINGS);
    for (labels, tools) in &by_server {
        let sum: u64 = tools.iter().map(|tool| tool.findings.get()).sum();
        text.sample(&all::FINDINGS, labels, sum);
    }
}

fn approvals(text: &mut ExpositionWriter, registry: &Registry, gauges: &Gauges) {
    text.single(&all::APPROVALS_REQUESTED, registry.approvals_requested.get());
    text.family(&all::APPROVALS_ANSWERED);
    for (answer, count) in registry.approvals_answered.iter() {
        text.sample(&all::APPROVALS_ANSWERED, &[answer.name()], count.get());
    }
    text.single(&all::APPROVALS_PENDING, gauges.approvals_pending);
}

/// Writes a counter for each value of a label, for each series.
fn by_label<S, L: Label>(
    text: &mut ExpositionWriter,
    family: &MetricFamily,
    all: &[Arc<S>],
    counters: fn(&S) -> (&str, &Counters<L>),
) {
    text.family(family);
    for (name, counters) in all.iter().map(|series| counters(series)) {
        for (value, count) in counters.iter() {
            text.sample(family, &[name, value.name()], count.get());
        }
    }
}

/// Selects a counter of a server.
type OfServer = fn(&ServerSeries) -> &Counter;

fn servers(text: &mut ExpositionWriter, registry: &Registry) {
    let servers = registry.all_servers();
    text.family(&all::SERVER_STATE);
    for server in &servers {
        for (state, count) in server.states.iter() {
            text.sample(&all::SERVER_STATE, &[&server.name, state.name()], count.get());
        }
    }
    let counters: [(_, OfServer); 5] = [
        (&all::SERVER_RESTARTS, |server| &server.restarts),
        (&all::SERVER_RECEIVED, |server| &server.received),
        (&all::SERVER_SENT, |server| &server.sent),
        (&all::TOOLS_CHANGED, |server| &server.tools_changed),
        (&all::DESCRIPTION_FINDINGS, |server| &server.description_findings),
    ];
    for (family, counter) in counters {
        text.family(family);
        for server in &servers {
            text.sample(family, &[&server.name], counter(server).get());
        }
    }
    by_label(text, &all::TOKEN_REFRESHES, &servers, |it| (&it.name, &it.refreshes));
}

fn turns(text: &mut ExpositionWriter, registry: &Registry) {
    let turns = registry.all_turns();
    by_label(text, &all::TURNS, &turns, |it| (&it.agent, &it.outcomes));
    text.family(&all::TURN_DURATION);
    for series in &turns {
        text.histogram(&all::TURN_DURATION, &[&series.agent], &series.duration.snapshot());
    }
}

fn models(text: &mut ExpositionWriter, registry: &Registry) {
    let models = registry.all_models();
    by_label(text, &all::MODEL_REQUESTS, &models, |it| (&it.model, &it.requests));
    by_label(text, &all::MODEL_TOKENS, &models, |it| (&it.model, &it.tokens));
    text.family(&all::MODEL_COST);
    for series in &models {
        let cost = series.cost_nano_usd.get() as f64 / NANO_USD;
        text.sample(&all::MODEL_COST, &[&series.model], cost);
    }
}

fn gateway(text: &mut ExpositionWriter, registry: &Registry, gauges: &Gauges) {
    text.single(&all::CLIENTS, gauges.clients);
    text.single(&all::SESSIONS, gauges.sessions);
    text.family(&all::QUEUE);
    text.sample(&all::QUEUE, &["turns"], gauges.waiting_turns);
    text.sample(&all::QUEUE, &["audit"], gauges.audit_queue);
    text.sample(&all::QUEUE, &["events"], gauges.event_queue);
    // More digits would be noise.
    let lag = (gauges.event_lag.as_secs_f64() * 1e3).round() / 1e3;
    text.single(&all::EVENT_LAG, lag);
    text.single(&all::EVENTS_LOST, registry.events_lost.get());
    text.single(&all::AUDIT_LOST, gauges.audit_lost);
}

#[cfg(test)]
mod tests {
    use openclaw_secrets::Redactor;

    use super::*;
    use crate::labels::{CallOutcome, ServerState, Success, TokenKind, TurnOutcome};
    use crate::server::ServerInstance;

    fn busy() -> (Metrics, ServerInstance) {
        let metrics = Metrics::on(Redactor::new());
        let server = ServerInstance::new(metrics.server("x").unwrap(), ServerState::Ready);
        let echo = metrics.calls("mcp", "x", "ec\"ho").unwrap();
        echo.entered();
        echo.executed(CallOutcome::Ok, Duration::from_millis(2), 1);
        echo.ended(CallOutcome::Denied, Some(crate::labels::Refusal::Policy));
        metrics.turns("main").unwrap().ended(TurnOutcome::Ok, Duration::from_secs(2));
        let model = metrics.model("offline").unwrap();
        model.answered(Success::Ok);
        model.used(TokenKind::Input, 12);
        model.cost(0.25);
        (metrics, server)
    }

    #[test]
    fn every_family_has_a_type_and_a_sample() {
        let (metrics, _server) = busy();
        for format in [Format::Prometheus, Format::OpenMetrics] {
            let text = metrics.render(format, &Gauges::default()).unwrap();
            for family in all::ALL {
                let ending = match (format, family.kind) {
                    (Format::Prometheus, all::MetricKind::Counter) => "_total",
                    _ => "",
                };
                let kind = format!("# TYPE {}{ending} {}\n", family.name, family.kind.name());
                assert_eq!(text.matches(&kind).count(), 1, "{kind}");
                for sample in family.samples() {
                    let is_sample = |line: &str| line.split(['{', ' ']).next() == Some(&sample);
                    assert!(text.lines().any(is_sample), "{sample}");
                }
            }
            assert_eq!(text.ends_with("# EOF\n"), format == Format::OpenMetrics);
        }
    }

    #[test]
    fn a_call_is_in_all_of_its_series() {
        let (metrics, _server) = busy();
        let text = metrics.render(Format::Prometheus, &Gauges::default()).unwrap();
        for line in [
            r#"openclaw_tool_calls_total{source="mcp",server="x",tool="ec\"ho",outcome="ok"} 1"#,
            r#"openclaw_tool_calls_refused_total{source="mcp",server="x",check="policy"} 1"#,
            r#"openclaw_tool_call_duration_seconds_bucket{source="mcp",server="x",tool="ec\"ho",le="0.002048"} 1"#,
            r#"openclaw_tool_call_duration_seconds_sum{source="mcp",server="x",tool="ec\"ho"} 0.002"#,
            r#"openclaw_suspicious_findings_total{source="mcp",server="x"} 1"#,
            r#"openclaw_mcp_server_state{server="x",state="ready"} 1"#,
            r#"openclaw_mcp_server_state{server="x",state="failed"} 0"#,
            r#"openclaw_model_cost_usd_total{model="offline"} 0.25"#,
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
    }

    #[test]
    fn without_metrics_there_is_no_exposition() {
        assert_eq!(Metrics::off().render(Format::Prometheus, &Gauges::default()), None);
    }
}
