//! Runs a turn for a message.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use openclaw_agent::{Agent, EndReason, Observer, Turn, TurnError, TurnResult};
use openclaw_content::Text;
use openclaw_mcp::fleet::Fleet;
use openclaw_metrics::labels::TurnOutcome;
use openclaw_models::{Model, ModelError, Part};
use openclaw_protocol::chat::{ErrorKind, SendStatus};
use openclaw_sessions::{SessionField, SessionKey};
use openclaw_tools::{PermissionMode, ToolSource, Toolbox};
use openclaw_trace::{Span, SpanContext, SpanKind};
use tracing::Instrument as _;

use crate::agents::AgentRuntime;
use crate::approvals::{CallerApprover, PendingApprovals};
use crate::briefing;
use crate::callers::Callers;
use crate::lent::Lent;
use crate::resource_cache::ResourceCache;
use crate::runs::RegisteredRun;
use crate::sessions::{Sessions, permission, with_causes};
use crate::turn_events::TurnEvents;

/// The protocol's stop reason of a turn that timed out.
const TIMED_OUT: &str = "timeout";

/// A turn to run.
pub(crate) struct TurnRequest {
    pub(crate) run: RegisteredRun,
    pub(crate) key: SessionKey,
    pub(crate) agent: Arc<AgentRuntime>,
    /// The folder to work in, if it is not the agent's own.
    pub(crate) folder: Option<String>,
    pub(crate) work: TurnWork,
    /// The model, instead of the session's.
    pub(crate) model: Option<String>,
    pub(crate) who: String,
    /// The connection of the caller.
    pub(crate) caller: u64,
    pub(crate) timeout: Option<Duration>,
    /// The span of the front end.
    pub(crate) trace: Option<SpanContext>,
}

/// What a turn does.
pub(crate) enum TurnWork {
    /// Answers a message.
    Answer(Vec<Part>),
    /// Replaces the history with a summary.
    Compact,
}

impl TurnWork {
    /// The text that the user has sent.
    fn text(&self) -> String {
        match self {
            Self::Answer(message) => {
                let texts = message.iter().filter_map(Part::as_text).map(Text::expose);
                texts.collect::<Vec<_>>().join("\n")
            }
            Self::Compact => "/compact".to_owned(),
        }
    }
}

/// Runs turns.
pub(crate) struct Turns {
    sessions: Arc<Sessions>,
    approvals: Arc<PendingApprovals>,
    callers: Arc<Callers>,
    lent: Arc<Lent>,
    resources: Arc<ResourceCache>,
    fleet: Arc<Fleet>,
}

impl Turns {
    pub(crate) fn new(
        sessions: Arc<Sessions>,
        approvals: Arc<PendingApprovals>,
        callers: Arc<Callers>,
        lent: Arc<Lent>,
        resources: Arc<ResourceCache>,
        fleet: Arc<Fleet>,
    ) -> Self {
        Self { sessions, approvals, callers, lent, resources, fleet }
    }

    /// Runs a turn to its end, and sends its events to the session's followers.
    pub(crate) async fn run(&self, mut request: TurnRequest) {
        let turn_events = Arc::new(TurnEvents::new(
            &self.callers,
            &request.run,
            request.agent.config.id.as_str(),
        ));
        // Held until the end is reported: the next turn starts after that.
        let Some(turn) = request.run.turn().await else {
            request.run.over(SendStatus::Error);
            return turn_events.aborted("", EndReason::Cancelled.name());
        };
        turn_events.started(&request.work.text());
        self.sessions.announce(&request.key, "agent.run.started").await;
        let begun = Instant::now();
        let span = self.span(&request);
        let logged = span.context().map_or_else(tracing::Span::none, SpanContext::log_span);
        let answering = self.answer_in_time(&request, &turn_events, &span).instrument(logged);
        let answer = AssertUnwindSafe(answering).catch_unwind();
        let answer = tokio::select! {
            biased;
            answer = Box::pin(answer) => answer,
            never = turn_events.flush_what_waits() => match never {},
        };
        self.keep_folder(&request).await;
        describe(&span, answer.as_ref().ok());
        // Before the end is reported: a front end may end its own span then.
        drop(span);
        turn_events.flush();
        let outcome = outcome(answer.as_ref().ok());
        if let Some(series) = self.fleet.metrics().turns(request.agent.config.id.as_str()) {
            series.ended(outcome, begun.elapsed());
        }
        request.run.over(status(outcome));
        match answer {
            Ok(Timed { answer: Ok(answer), is_late }) => {
                turn_events.ended();
                match answer {
                    Some(answer) if answer.ended != EndReason::Cancelled => {
                        turn_events.answered(&answer);
                    }
                    cut_short => {
                        let text = cut_short.map(|answer| answer.text).unwrap_or_default();
                        let reason = if is_late { TIMED_OUT } else { EndReason::Cancelled.name() };
                        turn_events.aborted(&text, reason);
                    }
                }
            }
            Ok(Timed { answer: Err(error), .. }) => {
                let message = match &error {
                    TurnError::Store(error) => with_causes(error),
                    _ => error.to_string(),
                };
                tracing::warn!(session = %request.key, error = %message, "turn failed");
                turn_events.run_failed(message, kind(&error));
            }
            // A panic must not leave callers waiting for an end that never comes.
            Err(_) => {
                tracing::error!(session = %request.key, "turn panicked");
                turn_events
                    .run_failed("the turn failed unexpectedly".to_owned(), ErrorKind::Unknown);
            }
        }
        let key = request.key.clone();
        drop((turn, request));
        self.sessions.announce(&key, "agent.run.ended").await;
    }

    /// Records the folder of a session, so that clients find it where it was used.
    async fn keep_folder(&self, request: &TurnRequest) {
        let keep = async {
            let Some(session) = self.sessions.store().get(&request.key).await? else {
                return Ok(());
            };
            if session.folder == request.folder {
                return Ok(());
            }
            self.sessions
                .store()
                .set(&request.key, SessionField::Folder, request.folder.as_deref())
                .await
        };
        if let Err(error) = keep.await {
            tracing::warn!(session = %request.key, %error, "the folder of the session was not stored");
        }
    }

    /// Starts the span of a turn, in the semantic conventions for generative AI.
    fn span(&self, request: &TurnRequest) -> Span {
        const OPERATION: &str = "invoke_agent";
        let pipeline = self.fleet.pipeline();
        let span = pipeline.tracer().start(OPERATION, SpanKind::Internal, request.trace.as_ref());
        if span.is_recorded() {
            let agent = request.agent.config.id.as_str();
            span.rename(format!("{OPERATION} {agent}"), SpanKind::Internal);
            span.set("gen_ai.operation.name", OPERATION);
            span.set_text("gen_ai.agent.name", agent);
            span.set_text("gen_ai.conversation.id", request.key.as_str());
            span.set_text("openclaw.run.id", &request.run.id);
            span.set_message("gen_ai.input.messages", "user", &request.work.text(), Vec::new);
        }
        span
    }

    async fn answer_in_time(
        &self,
        request: &TurnRequest,
        turn_events: &Arc<TurnEvents>,
        span: &Span,
    ) -> Timed {
        let cancel = &request.run.cancel;
        let mut answering = std::pin::pin!(self.answer(request, turn_events, span));
        let Some(timeout) = request.timeout else {
            return Timed { answer: answering.await, is_late: false };
        };
        tokio::select! {
            biased;
            answer = &mut answering => Timed { answer, is_late: false },
            () = tokio::time::sleep(timeout) => {
                // If it was cancelled before, that is the reason.
                let is_late = !cancel.is_cancelled();
                cancel.cancel();
                Timed { answer: answering.await, is_late }
            }
        }
    }

    async fn answer(
        &self,
        request: &TurnRequest,
        turn_events: &Arc<TurnEvents>,
        span: &Span,
    ) -> Result<Option<TurnResult>, TurnError> {
        let runtime = &request.agent;
        let id = runtime.config.id.as_str();
        let prepared = tokio::select! {
            biased;
            () = request.run.cancel.cancelled() => return Ok(None),
            prepared = self.prepare(request) => prepared,
        };
        let Prepared { models, briefing, permission } = prepared?;
        let agent = Agent {
            id: id.to_owned(),
            models,
            store: Arc::clone(self.sessions.store()),
            instructions: briefing::instructions(runtime),
            limits: runtime.limits,
            pipeline: self.fleet.pipeline(),
        };
        let lent = self.lent.tools(request.key.as_str(), request.caller, &runtime.policy);
        // Client tools come last: a server's tool may have taken the name meanwhile.
        let tools = Toolbox::new([Arc::clone(&runtime.tools) as Arc<dyn ToolSource>, lent]);
        let turn = Turn {
            session: request.key.clone(),
            run: request.run.id.clone(),
            message: match &request.work {
                TurnWork::Answer(message) => message.clone(),
                TurnWork::Compact => Vec::new(),
            },
            who: request.who.clone(),
            briefing,
            tools: Arc::new(tools),
            approver: Arc::new(CallerApprover {
                approvals: Arc::clone(&self.approvals),
                agent: id.to_owned(),
                run: request.run.id.clone(),
                timeout: runtime.config.approval.timeout,
                turn_events: Arc::clone(turn_events),
            }),
            permission,
            observer: Arc::clone(turn_events) as Arc<dyn Observer>,
            cancel: request.run.cancel.clone(),
            trace: span.context().cloned(),
        };
        match request.work {
            TurnWork::Answer(_) => agent.answer(&turn).await.map(Some),
            TurnWork::Compact => agent.compact(&turn).await.map(Some),
        }
    }

    /// Prepares a turn. Depends on servers and may be slow.
    async fn prepare(&self, request: &TurnRequest) -> Result<Prepared, TurnError> {
        let session = self.sessions.store().get(&request.key).await?;
        let (model, permission) = match &session {
            Some(session) => (session.model.as_deref(), permission(session)),
            None => (None, PermissionMode::Configured),
        };
        let models = request.agent.models.open(request.model.as_deref().or(model)).await?;
        Ok(Prepared {
            models,
            briefing: briefing::briefing(&self.fleet, &self.resources, &request.agent.config).await,
            permission,
        })
    }
}

/// Describes a turn that is over; `None` stands for one that panicked.
fn describe(span: &Span, timed: Option<&Timed>) {
    match timed {
        Some(Timed { answer: Ok(Some(result)), is_late }) => {
            span.set("gen_ai.usage.input_tokens", result.usage.input_tokens);
            span.set("gen_ai.usage.output_tokens", result.usage.output_tokens);
            let model = result.model.split_once('/').map_or(&*result.model, |(_, model)| model);
            span.set_text("gen_ai.request.model", model);
            span.set("openclaw.turn.end", result.ended.name());
            if *is_late {
                span.fail(TIMED_OUT, "");
            }
        }
        Some(Timed { answer: Ok(None), .. }) => span.fail(EndReason::Cancelled.name(), ""),
        // The message may quote the conversation.
        Some(Timed { answer: Err(_), .. }) | None => span.fail("_OTHER", "the turn failed"),
    }
}

/// How a turn ended, for metrics; `None` stands for a turn that panicked.
fn outcome(timed: Option<&Timed>) -> TurnOutcome {
    let is_cut_short = |answer: &Option<TurnResult>| {
        answer.as_ref().is_none_or(|answer| answer.ended == EndReason::Cancelled)
    };
    match timed {
        Some(Timed { answer: Ok(answer), is_late }) if is_cut_short(answer) => match is_late {
            true => TurnOutcome::TimedOut,
            false => TurnOutcome::Cancelled,
        },
        Some(Timed { answer: Ok(_), .. }) => TurnOutcome::Ok,
        Some(Timed { answer: Err(_), .. }) | None => TurnOutcome::Error,
    }
}

/// The status for a message that is sent again.
fn status(outcome: TurnOutcome) -> SendStatus {
    match outcome {
        TurnOutcome::TimedOut => SendStatus::Timeout,
        TurnOutcome::Ok | TurnOutcome::Cancelled => SendStatus::Ok,
        TurnOutcome::Error => SendStatus::Error,
    }
}

fn kind(error: &TurnError) -> ErrorKind {
    match error {
        TurnError::Model(ModelError::RateLimited { .. }) => ErrorKind::RateLimit,
        TurnError::Model(ModelError::ContextTooLong) => ErrorKind::ContextLength,
        TurnError::Model(ModelError::Silent(_)) => ErrorKind::Timeout,
        _ => ErrorKind::Unknown,
    }
}

/// The result of a turn, and whether it timed out.
struct Timed {
    /// `None` if it was cancelled before it started.
    answer: Result<Option<TurnResult>, TurnError>,
    is_late: bool,
}

/// Everything a turn needs before it starts.
struct Prepared {
    models: Vec<Arc<dyn Model>>,
    briefing: Vec<Text>,
    permission: PermissionMode,
}
