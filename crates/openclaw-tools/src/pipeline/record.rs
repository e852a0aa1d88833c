//! The final steps of a call: its provenance, its line in the audit log (N3), and its metrics (N4).

use std::sync::Arc;

use openclaw_metrics::labels::CallOutcome;
use openclaw_metrics::{CallSeries, Metrics};
use openclaw_trace::Span;
use tokio::time::Instant;

use super::refusal::Refusal;
use super::{Services, traced};
use crate::audit::{AuditOutcome, CallRecord};
use crate::context::{Call, CallContext};
use crate::outcome::{OutcomeDetails, ToolOutcome};
use crate::source::{AuditName, Tool};

/// The source and the name of a tool, in metrics, if a call was refused before it was found.
const UNKNOWN: &str = "unknown";

/// What is recorded about a call whatever its outcome.
pub(super) trait RecordedCall {
    /// The name of the tool, as the caller knows it.
    fn name(&self) -> &str;
    /// The arguments, as given.
    fn arguments(&self) -> &str;
    /// The caller.
    fn who(&self) -> &str;
    /// The agent.
    fn agent(&self) -> Option<&str>;
    /// The session.
    fn session(&self) -> Option<&str>;
    /// The span of the call.
    fn span(&self) -> &Span;
}

/// A call whose caller waits for it.
pub(super) struct AwaitedCall<'a> {
    pub(super) call: Call<'a>,
    pub(super) context: &'a CallContext<'a>,
    pub(super) span: &'a Span,
}

impl RecordedCall for AwaitedCall<'_> {
    fn name(&self) -> &str {
        self.call.name
    }

    fn arguments(&self) -> &str {
        self.call.arguments.text()
    }

    fn who(&self) -> &str {
        self.context.who
    }

    fn agent(&self) -> Option<&str> {
        self.context.agent
    }

    fn session(&self) -> Option<&str> {
        self.context.session
    }

    fn span(&self) -> &Span {
        self.span
    }
}

/// Records a call: if dropped before the end, the call was cancelled.
pub(super) struct CallRecorder<S: RecordedCall> {
    services: Arc<Services>,
    subject: S,
    tool: Option<Arc<dyn Tool>>,
    /// Whether the call is counted: decided once, because that may be switched meanwhile.
    is_counted: bool,
    /// Where it is counted, unless its tool knows.
    series: Option<Arc<CallSeries>>,
    is_executing: bool,
    started: Instant,
    tries: u32,
    is_written: bool,
}

impl<S: RecordedCall> CallRecorder<S> {
    pub(super) fn new(services: &Arc<Services>, subject: S, started: Instant) -> Self {
        Self {
            services: Arc::clone(services),
            subject,
            tool: None,
            is_counted: services.metrics.is_on(),
            series: None,
            is_executing: false,
            started,
            tries: 0,
            is_written: false,
        }
    }

    /// Returns what is recorded whatever the outcome of the call.
    pub(super) fn subject(&self) -> &S {
        &self.subject
    }

    /// Returns the metrics.
    pub(super) fn metrics(&self) -> &Metrics {
        &self.services.metrics
    }

    /// Records that the tool was resolved.
    pub(super) fn found(&mut self, tool: Arc<dyn Tool>) {
        if self.is_counted {
            self.stop_executing();
            let is_known = tool.known_series().is_some();
            self.series = if is_known { None } else { tool.series(&self.services.metrics) };
        }
        self.tool = Some(tool);
        self.tries += 1;
    }

    fn series(&self) -> Option<&CallSeries> {
        if !self.is_counted {
            return None;
        }
        self.series.as_deref().or_else(|| self.tool.as_deref()?.known_series())
    }

    /// Records that the call is being executed.
    pub(super) fn executing(&mut self) {
        if let Some(series) = self.series() {
            series.entered();
            self.is_executing = true;
        }
    }

    fn stop_executing(&mut self) {
        if std::mem::take(&mut self.is_executing)
            && let Some(series) = self.series()
        {
            series.left();
        }
    }

    /// Returns whether the tool was resolved before.
    pub(super) fn is_second_try(&self) -> bool {
        self.tries > 1
    }

    /// Returns the start of the call.
    pub(super) fn started(&self) -> Instant {
        self.started
    }

    /// Restarts the clock: waiting for an approval does not count.
    pub(super) fn begin_anew(&mut self) {
        self.started = Instant::now();
    }

    /// Records an executed call.
    pub(super) fn done(mut self, mut outcome: ToolOutcome) -> ToolOutcome {
        self.is_written = true;
        // A tool's own measurement is more accurate, and saves reading the clock.
        if outcome.details.duration.is_zero() {
            outcome.details.duration = self.started.elapsed();
        }
        label(&mut outcome.details, self.origin());
        let ended = AuditOutcome::of(&outcome);
        if let Some(series) = self.series() {
            let OutcomeDetails { duration, findings, .. } = &*outcome.details;
            let findings = if findings.is_empty() { 0 } else { findings.iter().count() as u64 };
            series.executed(ended.into(), *duration, findings);
            self.is_executing = false;
        }
        self.write(ended, &outcome, None);
        self.subject.span().set_content("gen_ai.tool.call.result", || outcome.text());
        outcome
    }

    /// Records a refused call.
    pub(super) fn refused(mut self, refusal: Refusal) -> ToolOutcome {
        self.is_written = true;
        let Refusal { mut outcome, ended, name } = refusal;
        label(&mut outcome.details, self.origin());
        if self.is_counted && self.tool.is_none() {
            self.series = self.services.metrics.calls(UNKNOWN, "", UNKNOWN);
        }
        if let Some(series) = self.series() {
            series.ended(ended.into(), outcome.details.refused.map(Into::into));
        }
        self.write(ended, &outcome, name.as_deref());
        *outcome
    }

    fn origin(&self) -> AuditName<'_> {
        self.tool.as_ref().map(|tool| tool.origin()).unwrap_or_default()
    }

    fn write(&self, ended: AuditOutcome, outcome: &ToolOutcome, name: Option<&str>) {
        let details = &outcome.details;
        let chars = if self.services.audit.is_on() { outcome.content_chars() } else { 0 };
        self.record(ended, details, chars, name);
    }

    /// `name` replaces the one that the caller used.
    fn record(
        &self,
        ended: AuditOutcome,
        details: &OutcomeDetails,
        result_chars: usize,
        name: Option<&str>,
    ) {
        // A tool that serves several servers reports the server in its outcome only.
        let (origin, subject) = (self.origin(), &self.subject);
        let server = match origin.server {
            "" => details.server.as_deref().unwrap_or_default(),
            server => server,
        };
        let raw_tool = match origin.raw_tool {
            "" => details.tool.as_deref().unwrap_or_default(),
            tool => tool,
        };
        let name = match origin.name {
            "" => name.unwrap_or(subject.name()),
            name => name,
        };
        let span = subject.span();
        if span.is_recorded() {
            let named = AuditName { name, server, raw_tool, ..origin };
            traced::describe(span, named, subject, ended);
            span.set_content("gen_ai.tool.call.arguments", || subject.arguments().to_owned());
        }
        tracing::debug!(
            server,
            tool = name,
            outcome = ended.name(),
            duration_ms = details.duration.as_secs_f64() * 1_000.0,
            "call"
        );
        if !self.services.audit.is_on() {
            return;
        }
        self.services.audit.record(&CallRecord {
            ended: (self.started + details.duration).into_std(),
            who: subject.who(),
            agent: subject.agent(),
            session: subject.session(),
            source: origin.source,
            server,
            tool: name,
            raw_tool,
            arguments: subject.arguments(),
            outcome: ended,
            refused: details.refused,
            duration: details.duration,
            result_chars,
            trace: span.context().map(|it| (it.trace_id(), it.span_id())),
        });
    }
}

/// Adds the origin where the outcome does not have it.
fn label(details: &mut OutcomeDetails, origin: AuditName<'_>) {
    if details.server.is_none() && !origin.server.is_empty() {
        details.server = Some(origin.server.into());
    }
    if details.tool.is_none() && !origin.raw_tool.is_empty() {
        details.tool = Some(origin.raw_tool.into());
    }
}

impl<S: RecordedCall> Drop for CallRecorder<S> {
    fn drop(&mut self) {
        self.stop_executing();
        if !self.is_written {
            if let Some(series) = self.series() {
                series.ended(CallOutcome::Cancelled, None);
            }
            let details =
                OutcomeDetails { duration: self.started.elapsed(), ..OutcomeDetails::default() };
            self.record(AuditOutcome::Cancelled, &details, 0, None);
        }
    }
}
