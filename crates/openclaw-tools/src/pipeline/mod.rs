//! The path of every call, whatever the source of its tool and the caller.
//!
//! [`Pipeline`] is the only way to execute a tool, by [`call`](Pipeline::call) or [`begin`](Pipeline::begin): resolve → policy → pin → approval → schema
//! → limits → execute → provenance → audit. Every call and every refusal writes exactly one line to
//! the audit log, even if the caller drops the call.
//!
//! [`Pipeline::begin`] takes the same steps without a future, for callers with many calls, as long
//! as nothing has to be waited for but the result.

mod begin;
mod record;
mod refusal;
mod resolve;
mod steps;
mod traced;

pub use refusal::Refusal;
pub use resolve::{AsyncLookup, FixedTool, RefuseCall, Resolve, Resolving, unknown};

use std::sync::Arc;

use openclaw_metrics::Metrics;
use openclaw_trace::{Span, SpanKind, Tracer};
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::approval::{ApprovalContext, ApprovalNeed};
use crate::arguments::Arguments;
use crate::audit::Audit;
use crate::context::{Call, CallContext};
use crate::outcome::ToolOutcome;
use crate::source::{Executed, Tool, ToolCall};
use record::{AwaitedCall, CallRecorder};
use steps::{Approved, Consented};

/// The span of a call without one.
static NO_SPAN: Span = Span::NONE;

/// Executes calls. Clones share the audit log and the metrics.
#[derive(Debug, Clone)]
pub struct Pipeline(Arc<Services>);

/// What a pipeline records calls with.
#[derive(Debug, Clone)]
struct Services {
    audit: Audit,
    metrics: Metrics,
    tracer: Tracer,
}

/// Returns whether a call of a tool would need an approval.
pub fn approval_need(
    tool: &dyn Tool,
    arguments: &Arguments<'_>,
    session: Option<&str>,
) -> ApprovalNeed {
    let pin = tool.pin(ApprovalContext { arguments, session, now: Instant::now() });
    ApprovalNeed::of(tool.rule(arguments), tool.spec().effect, pin)
}

impl Pipeline {
    /// Creates a pipeline that logs to `audit`.
    pub fn new(audit: Audit) -> Self {
        Self(Arc::new(Services { audit, metrics: Metrics::off(), tracer: Tracer::off() }))
    }

    /// Counts the calls in `metrics`.
    #[must_use]
    pub fn counted_in(mut self, metrics: Metrics) -> Self {
        Arc::make_mut(&mut self.0).metrics = metrics;
        self
    }

    /// Records the spans of calls, too.
    #[must_use]
    pub fn traced(mut self, tracer: Tracer) -> Self {
        Arc::make_mut(&mut self.0).tracer = tracer;
        self
    }

    /// Returns what records spans.
    pub fn tracer(&self) -> &Tracer {
        &self.0.tracer
    }

    /// Returns the audit log.
    pub fn audit(&self) -> &Audit {
        &self.0.audit
    }

    /// Calls a tool of a source. Failures are outcomes. Dropping the future cancels the call, and
    /// logs it as cancelled.
    pub async fn call<S: Resolve + ?Sized>(
        &self,
        source: &S,
        call: Call<'_>,
        context: &CallContext<'_>,
    ) -> ToolOutcome {
        let span = match (self.0.tracer.is_on(), context.trace) {
            (false, None) => None,
            (_, trace) => Some(self.0.tracer.start(traced::NAME, SpanKind::Internal, trace)),
        };
        let span = span.as_ref().unwrap_or(&NO_SPAN);
        match span.context().filter(|it| it.is_sampled()) {
            None => self.recorded(source, call, context, span).await,
            // Boxed: rare, and would enlarge the future of every call.
            Some(sampled) => {
                let logged = sampled.log_span();
                Box::pin(self.recorded(source, call, context, span).instrument(logged)).await
            }
        }
    }

    async fn recorded<S: Resolve + ?Sized>(
        &self,
        source: &S,
        call: Call<'_>,
        context: &CallContext<'_>,
        span: &Span,
    ) -> ToolOutcome {
        let subject = AwaitedCall { call, context, span };
        let mut record = CallRecorder::new(&self.0, subject, Instant::now());
        match run(source, call, context, span, &mut record).await {
            Ok(outcome) => record.done(outcome),
            Err(refusal) => record.refused(refusal),
        }
    }
}

async fn run<S: Resolve + ?Sized>(
    source: &S,
    call: Call<'_>,
    context: &CallContext<'_>,
    span: &Span,
    record: &mut CallRecorder<AwaitedCall<'_>>,
) -> Result<ToolOutcome, Refusal> {
    let mut first = None;
    loop {
        let tool = match source.resolve(call.name) {
            Resolving::Now(found) => found?,
            Resolving::Later(finding) => finding.await?,
        };
        record.found(Arc::clone(&tool));
        let tool = &*tool;
        let arguments = match &first {
            Some(arguments) => arguments,
            None => first.insert(call.arguments.read()?.counted_by(context.options.memory)),
        };
        let (session, now) = (context.session, record.started());
        let about = ApprovalContext { arguments, session, now };
        let pin = steps::allowed(tool, about)?;
        let approval = match steps::consent(tool, pin, about, context)? {
            Consented::Given(given) => Approved { given, ..Approved::default() },
            Consented::Ask(why) => steps::ask(tool, why, about, context, record.metrics()).await?,
        };
        steps::admit(tool, &approval, pin, about, context.options)?;
        if approval.has_waited {
            record.begin_anew();
        }
        record.executing();
        if let Some(begun) = context.begun {
            begun.get_or_init(std::time::Instant::now);
        }
        let call = ToolCall {
            arguments,
            agent: context.agent.unwrap_or_default(),
            who: context.who,
            session: context.session,
            approval: approval.given.as_ref(),
            started: record.started(),
            options: context.options,
            span,
        };
        match tool.execute(call).await {
            Executed::Done(outcome) => return Ok(outcome),
            Executed::Stale(outcome) if record.is_second_try() => return Ok(outcome),
            Executed::Stale(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
