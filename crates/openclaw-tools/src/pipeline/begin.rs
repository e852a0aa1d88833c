//! Calls without a future: for callers with many calls, such as the hub, where creating, waking and
//! polling a future would cost more than the call itself.

use std::sync::Arc;

use openclaw_trace::{Span, SpanContext, SpanKind};
use tokio::time::Instant;

use super::record::{CallRecorder, RecordedCall};
use super::resolve::{Resolve, Resolving};
use super::steps::{self, Approved, Consented};
use super::{NO_SPAN, Pipeline, traced};
use crate::approval::ApprovalContext;
use crate::context::{Call, CallContext};
use crate::outcome::ToolOutcome;
use crate::source::{Executed, StartedCall, ToolCall};

impl Pipeline {
    /// Starts a call, if it can be decided at once that it may be made, and its tool can be executed
    /// without waiting for anything but the result. Takes the same steps as [`call`](Self::call).
    /// `started` is the time of the start: several calls that begin together can share it.
    ///
    /// The function that `done` returns gets the outcome, usually from another task; it must not
    /// block. It is dropped if the call is cancelled.
    ///
    /// Returns `None` if the call was not started, for whatever reason: nothing has happened then,
    /// and [`call`](Self::call) decides.
    pub fn begin<S, F, D>(
        &self,
        source: &S,
        call: Call<'_>,
        context: &CallContext<'_>,
        started: Instant,
        done: F,
    ) -> Option<StartedCall>
    where
        S: Resolve + ?Sized,
        F: FnOnce() -> D,
        D: FnOnce(ToolOutcome) + Send + 'static,
    {
        // What is recorded about an error is known to a future only.
        if self.0.tracer.is_on() {
            return None;
        }
        let Resolving::Now(Ok(tool)) = source.resolve(call.name) else { return None };
        let ready = Arc::clone(&tool).ready(context.options)?;
        let arguments = &call.arguments.read().ok()?.counted_by(context.options.memory);
        let about = ApprovalContext { arguments, session: context.session, now: started };
        let pin = steps::allowed(&*tool, about).ok()?;
        let Ok(Consented::Given(given)) = steps::consent(&*tool, pin, about, context) else {
            return None;
        };
        let approved = Approved { given, ..Approved::default() };
        steps::admit(&*tool, &approved, pin, about, context.options).ok()?;

        let span = self.0.tracer.start(traced::NAME, SpanKind::Internal, context.trace);
        let span = span.context().is_some().then(|| Arc::new(span));
        let subject = OwnedCall::new(span.clone(), call, context);
        let mut record = CallRecorder::new(&self.0, subject, started);
        record.found(tool);
        record.executing();
        if let Some(begun) = context.begun {
            begun.get_or_init(std::time::Instant::now);
        }
        let done = done();
        let finish = move |executed: Executed| {
            let logged = log_span(record.subject().span());
            let _in_span = logged.enter();
            // What is stale was listed again for the next call; this one is not repeated.
            let (Executed::Done(outcome) | Executed::Stale(outcome)) = executed;
            done(record.done(outcome));
        };
        let call = ToolCall {
            arguments,
            agent: context.agent.unwrap_or_default(),
            who: context.who,
            session: context.session,
            approval: approved.given.as_ref(),
            started,
            options: context.options,
            span: span.as_deref().unwrap_or(&NO_SPAN),
        };
        let logged = log_span(call.span);
        let _in_span = logged.enter();
        Some(ready.start(call, Box::new(finish)))
    }
}

fn log_span(span: &Span) -> tracing::Span {
    span.context().map_or_else(tracing::Span::none, SpanContext::log_span)
}

/// What is recorded about a call that no future waits for, in one allocation.
struct OwnedCall {
    span: Option<Arc<Span>>,
    /// Caller, name, agent, session and arguments, concatenated.
    texts: String,
    /// The end of each but the last.
    ends: [usize; 4],
    has_agent: bool,
    has_session: bool,
}

impl OwnedCall {
    fn new(span: Option<Arc<Span>>, call: Call<'_>, context: &CallContext<'_>) -> Self {
        let (agent, session) = (context.agent, context.session);
        let first =
            [context.who, call.name, agent.unwrap_or_default(), session.unwrap_or_default()];
        let arguments = call.arguments.text();
        let length = first.iter().map(|text| text.len()).sum::<usize>() + arguments.len();
        let mut texts = String::with_capacity(length);
        let ends = first.map(|text| {
            texts.push_str(text);
            texts.len()
        });
        texts.push_str(arguments);
        Self { span, texts, ends, has_agent: agent.is_some(), has_session: session.is_some() }
    }

    fn text(&self, start: usize, end: usize) -> &str {
        self.texts.get(start..end).unwrap_or_default()
    }
}

impl RecordedCall for OwnedCall {
    fn who(&self) -> &str {
        self.text(0, self.ends[0])
    }

    fn name(&self) -> &str {
        self.text(self.ends[0], self.ends[1])
    }

    fn agent(&self) -> Option<&str> {
        self.has_agent.then(|| self.text(self.ends[1], self.ends[2]))
    }

    fn session(&self) -> Option<&str> {
        self.has_session.then(|| self.text(self.ends[2], self.ends[3]))
    }

    fn arguments(&self) -> &str {
        self.text(self.ends[3], self.texts.len())
    }

    fn span(&self) -> &Span {
        self.span.as_deref().unwrap_or(&NO_SPAN)
    }
}
