//! Executes the tool calls of one round: concurrently up to a limit, each through the pipeline.
//! Results keep the order of the requests.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use openclaw_models::{Part, ToolResult, ToolUse};
use openclaw_tools::pipeline::{Refusal, RefuseCall, Resolve, Resolving, unknown};
use openclaw_tools::{
    ApprovalAnswer, ApprovalRequest, Approver, Call, CallContext, CallOptions, Consent, Content,
    Fallback, Given, NoApprover, Pipeline, ProgressWatcher, RefusedBy, Tool, ToolFailure,
    ToolOutcome,
};
use tokio::sync::{Semaphore, watch};

use crate::budget::Budget;
use crate::event::{CallEnded, CallProgress, CallStarted, LoopEvent};
use crate::history::CallNote;
use crate::near::did_you_mean;
use crate::offer::OfferedTools;
use crate::repetition::{Repeat, Repetition};
use crate::turn::Turn;

/// Maximum calls per round.
const MOST: usize = 128;
/// Minimum interval between progress reports of one call.
const PROGRESS: Duration = Duration::from_millis(100);

/// The results of the calls of a round.
#[derive(Debug)]
pub(crate) struct RoundResults {
    pub(crate) results: Vec<ToolResult>,
    pub(crate) notes: Vec<CallNote>,
    pub(crate) is_cancelled: bool,
    pub(crate) is_stuck: bool,
}

/// How calls are executed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallSettings<'a> {
    /// Id of the agent.
    pub(crate) agent: &'a str,
    /// The pipeline that every call goes through.
    pub(crate) pipeline: &'a Pipeline,
    /// Maximum concurrent calls.
    pub(crate) parallel: usize,
    /// Applies when no approver is available.
    pub(crate) fallback: Fallback,
}

/// Executes the calls of a round. When the turn is cancelled, running calls are dropped, which
/// sends a cancellation to their servers (T7).
pub(crate) async fn carry_out(
    turn: &Turn,
    offers: &OfferedTools,
    uses: &[ToolUse],
    repetition: &mut Repetition,
    manner: CallSettings<'_>,
) -> RoundResults {
    let again = repetition.count_all(uses);
    let is_stuck = again.contains(&Repeat::Stop);
    let places = Semaphore::new(manner.parallel.max(1));
    let mut done: Vec<Option<ToolOutcome>> = uses.iter().map(|_| None).collect();
    let progress: Vec<Progress> = uses.iter().map(|_| Progress::default()).collect();
    let mut running: FuturesUnordered<_> = uses
        .iter()
        .zip(again)
        .zip(&progress)
        .enumerate()
        .map(|(nth, ((call, again), progress))| {
            let again = if nth < MOST { again } else { Repeat::TooMany };
            let places = &places;
            async move {
                let _place = places.acquire().await;
                let wanted = RequestedCall { turn, offers, call, again, progress };
                (nth, wanted.carry_out(manner).await)
            }
        })
        .collect();
    let mut is_cancelled = false;
    loop {
        tokio::select! {
            biased;
            () = turn.cancel.cancelled() => {
                is_cancelled = true;
                break;
            }
            ended = running.next() => match ended {
                Some((nth, outcome)) => done[nth] = Some(outcome),
                None => break,
            },
        }
    }
    drop(running);
    let (mut results, mut notes) = (Vec::with_capacity(uses.len()), Vec::new());
    let mut budget = Budget::new();
    for ((call, outcome), progress) in uses.iter().zip(done).zip(progress) {
        let outcome = match outcome {
            Some(outcome) => outcome,
            None => cancelled(turn, call, &progress, manner).await,
        };
        notes.push(note(call, &outcome));
        let mut result = result(call, outcome);
        budget.fit(&mut result);
        results.push(result);
    }
    RoundResults { results, notes, is_cancelled, is_stuck }
}

/// The state of a call.
#[derive(Debug, Default)]
struct Progress {
    /// Set once the pipeline has the call: from then on it is in the audit log, however it ends.
    is_entered: AtomicBool,
    /// Set when the tool is executed.
    begun: OnceLock<Instant>,
}

/// A call requested by a model.
struct RequestedCall<'a> {
    turn: &'a Turn,
    offers: &'a OfferedTools,
    call: &'a ToolUse,
    again: Repeat,
    progress: &'a Progress,
}

impl RequestedCall<'_> {
    async fn carry_out(&self, manner: CallSettings<'_>) -> ToolOutcome {
        let (turn, call) = (self.turn, self.call);
        let approver = Reporting { turn, fallback: manner.fallback };
        let consent = Consent::Ask { approver: &approver, fallback: manner.fallback };
        let (watcher, progress) = ProgressWatcher::channel();
        let context = CallContext {
            begun: Some(&self.progress.begun),
            options: CallOptions {
                watcher: Some(&watcher),
                permission: turn.permission,
                ..CallOptions::default()
            },
            ..context(turn, manner, consent)
        };
        let calling = Box::pin(manner.pipeline.call(self, asked(call), &context));
        let outcome = tokio::select! {
            biased;
            outcome = calling => outcome,
            never = report(turn, call, progress) => match never {},
        };
        see_end(turn, call, &outcome);
        outcome
    }

    /// Returns the tool to call, or why the call is not made.
    fn found(&self) -> Result<Arc<dyn Tool>, Refusal> {
        let (turn, call) = (self.turn, self.call);
        let found = self.offers.find(&*turn.tools, &call.name);
        // A retried call was reported before.
        if !self.progress.is_entered.swap(true, Ordering::Relaxed) && self.again != Repeat::TooMany
        {
            turn.observer.see(LoopEvent::CallStarted(CallStarted {
                id: call.id.clone(),
                name: call.name.clone(),
                label: found.as_ref().map_or_else(String::new, |it| it.spec().label.clone()),
                arguments: call.arguments.clone(),
            }));
        }
        let repeated =
            |failure, words: String| Refusal::new(failure, words).by(RefusedBy::Repeated);
        match (found, self.again) {
            (_, Repeat::Refuse(times)) => Err(repeated(
                ToolFailure::Denied,
                format!(
                    "This call was already made {times} times in a row and is not repeated. Use its \
                     result, try something else, or answer."
                ),
            )),
            (_, Repeat::Stop) => {
                Err(repeated(ToolFailure::Denied, "This call was repeated too often.".to_owned()))
            }
            (_, Repeat::TooMany) => Err(repeated(
                ToolFailure::RateLimited,
                format!("At most {MOST} calls are made per round. Make this one later."),
            )),
            (None, Repeat::Go) => {
                let near = did_you_mean(&*turn.tools, &call.name);
                let near = if near.is_empty() { " Use one of the offered tools." } else { &near };
                Err(unknown(&call.name, near))
            }
            (Some(tool), Repeat::Go) => Ok(tool),
        }
    }
}

impl Resolve for RequestedCall<'_> {
    fn resolve<'a>(&'a self, _: &'a str) -> Resolving<'a> {
        Resolving::Now(self.found())
    }
}

fn asked(call: &ToolUse) -> Call<'_> {
    Call { name: &call.name, arguments: Given::Text(&call.arguments) }
}

fn context<'a>(turn: &'a Turn, manner: CallSettings<'a>, consent: Consent<'a>) -> CallContext<'a> {
    CallContext {
        agent: Some(manner.agent),
        session: Some(turn.session.as_str()),
        who: &turn.who,
        consent,
        options: CallOptions::default(),
        begun: None,
        trace: turn.trace.as_ref(),
    }
}

/// The outcome of a call that the user cancelled. A call that was still queued is logged here.
async fn cancelled(
    turn: &Turn,
    call: &ToolUse,
    progress: &Progress,
    manner: CallSettings<'_>,
) -> ToolOutcome {
    const WORDS: &str = "The call was cancelled by the user.";
    let mut outcome = if progress.is_entered.load(Ordering::Relaxed) {
        ToolOutcome::failure(WORDS)
    } else {
        let consent = Consent::Ask { approver: &NoApprover, fallback: Fallback::Deny };
        let never_made = RefuseCall(|| Refusal::cancelled(WORDS));
        manner.pipeline.call(&never_made, asked(call), &context(turn, manner, consent)).await
    };
    outcome.details.duration = progress.begun.get().map(Instant::elapsed).unwrap_or_default();
    see_end(turn, call, &outcome);
    outcome
}

/// Forwards questions to the turn's approver, and reports a call that is made because no approver
/// was available.
#[derive(Debug)]
struct Reporting<'a> {
    turn: &'a Turn,
    fallback: Fallback,
}

impl Approver for Reporting<'_> {
    fn ask<'a>(&'a self, question: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            let answer = self.turn.approver.ask(question).await;
            let is_allowed = self.fallback == Fallback::Allow && question.why.can_fall_back();
            let is_open = matches!(answer, ApprovalAnswer::Unanswered | ApprovalAnswer::NotAsked);
            if is_open && is_allowed {
                let name = &question.tool.name;
                self.turn.observer.see(LoopEvent::Notice(format!(
                    "`{name}` runs without approval: no user answered, and `approval.fallback` is `allow`"
                )));
            }
            answer
        })
    }
}

/// Reports progress until dropped. Only the latest value is reported, so a server that sends more
/// costs nothing.
async fn report(
    turn: &Turn,
    call: &ToolUse,
    mut progress: watch::Receiver<Option<openclaw_tools::Progress>>,
) -> Infallible {
    loop {
        if progress.changed().await.is_err() {
            return std::future::pending().await;
        }
        let latest = progress.borrow_and_update().clone();
        if let Some(progress) = latest {
            let (id, name) = (call.id.clone(), call.name.clone());
            turn.observer.see(LoopEvent::CallProgress(CallProgress { id, name, progress }));
        }
        tokio::time::sleep(PROGRESS).await;
    }
}

fn see_end(turn: &Turn, call: &ToolUse, outcome: &ToolOutcome) {
    turn.observer.see(LoopEvent::CallEnded(CallEnded {
        id: call.id.clone(),
        name: call.name.clone(),
        is_error: outcome.is_error,
        text: outcome.text(),
        untrusted: outcome.details.untrusted,
        duration: outcome.details.duration,
        failure: outcome.details.failure,
        refused: outcome.details.refused,
        findings: suspicions(outcome),
        kept_in: outcome.details.kept_in.clone(),
    }));
}

fn note(call: &ToolUse, outcome: &ToolOutcome) -> CallNote {
    CallNote {
        id: call.id.clone(),
        duration_ms: outcome.details.duration.as_secs_f64() * 1_000.0,
        failure: outcome.details.failure.map(|failure| failure.name().to_owned()),
        untrusted: outcome.details.untrusted,
        findings: suspicions(outcome),
    }
}

/// Names of the findings in an outcome.
fn suspicions(outcome: &ToolOutcome) -> Vec<String> {
    outcome.details.findings.iter().map(|finding| finding.kind.name().to_owned()).collect()
}

/// Converts a part of an outcome for a model.
#[must_use]
pub fn part_of(content: Content) -> Part {
    match content {
        Content::Text(text) | Content::Placeholder(text) | Content::ForModel(text) => {
            Part::Text(text)
        }
        Content::Image { mime_type, data } => Part::Image { mime_type, data },
        Content::Audio { mime_type, data } => Part::Audio { mime_type, data },
    }
}

fn result(call: &ToolUse, outcome: ToolOutcome) -> ToolResult {
    ToolResult {
        id: call.id.clone(),
        name: call.name.clone(),
        parts: outcome.content.into_iter().map(part_of).collect(),
        is_error: outcome.is_error,
    }
}
