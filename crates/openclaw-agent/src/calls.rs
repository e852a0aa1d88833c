//! The calls that a model asks for in one round: side by side within a bound, their results in its order,
//! approved where somebody must agree (B9).

use std::sync::OnceLock;
use std::time::Instant;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use openclaw_models::{Part, ToolResult, ToolUse};
use openclaw_tools::schema::misfit;
use openclaw_tools::{
    Answer, Approval, Content, Failure, Question, Standing, Tool, ToolCall, ToolOutcome, Why,
};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::Semaphore;

use crate::budget::Budget;
use crate::event::{CallEnded, CallStarted, Event};
use crate::history::CallNote;
use crate::limits::Fallback;
use crate::near::did_you_mean;
use crate::offer::Offers;
use crate::repetition::{Again, Repetition};
use crate::turn::Turn;

/// More calls are not made in one round.
const MOST: usize = 128;

/// What the calls of a round came to.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) results: Vec<ToolResult>,
    pub(crate) notes: Vec<CallNote>,
    pub(crate) is_cancelled: bool,
    pub(crate) is_stuck: bool,
}

/// How calls are carried out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    /// At most so many at once.
    pub(crate) parallel: usize,
    /// What holds where nobody can be asked.
    pub(crate) fallback: Fallback,
}

/// Carries out the calls of a round. When the turn is cancelled, those that run are dropped, which tells
/// their servers (T7).
pub(crate) async fn carry_out(
    turn: &Turn,
    offers: &Offers,
    uses: &[ToolUse],
    repetition: &mut Repetition,
    manner: Manner,
) -> Results {
    let again = repetition.count_all(uses);
    let is_stuck = again.contains(&Again::Stop);
    let places = Semaphore::new(manner.parallel.max(1));
    let mut done: Vec<Option<ToolOutcome>> = uses.iter().map(|_| None).collect();
    let begun: Vec<OnceLock<Instant>> = uses.iter().map(|_| OnceLock::new()).collect();
    let mut running: FuturesUnordered<_> = uses
        .iter()
        .zip(again)
        .zip(&begun)
        .enumerate()
        .map(|(nth, ((call, again), begun))| {
            let places = &places;
            async move {
                let _place = places.acquire().await;
                let outcome = match nth < MOST {
                    true => one(turn, offers, call, again, manner.fallback, begun).await,
                    false => too_many(turn, call),
                };
                (nth, outcome)
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
    for ((call, outcome), begun) in uses.iter().zip(done).zip(begun) {
        let outcome = outcome.unwrap_or_else(|| {
            let mut outcome = ToolOutcome::failure("The call was cancelled by the user.");
            outcome.details.duration = begun.get().map(Instant::elapsed).unwrap_or_default();
            see_end(turn, call, &outcome);
            outcome
        });
        notes.push(note(call, &outcome));
        let mut result = result(call, outcome);
        budget.fit(&mut result);
        results.push(result);
    }
    Results { results, notes, is_cancelled, is_stuck }
}

async fn one(
    turn: &Turn,
    offers: &Offers,
    call: &ToolUse,
    again: Again,
    fallback: Fallback,
    begun: &OnceLock<Instant>,
) -> ToolOutcome {
    let found = offers.find(&*turn.tools, &call.name);
    turn.observer.see(Event::CallStarted(CallStarted {
        id: call.id.clone(),
        name: call.name.clone(),
        label: found.as_ref().map_or_else(String::new, |it| it.tool().spec().label.clone()),
        arguments: call.arguments.clone(),
    }));
    let outcome = match (found, again) {
        (_, Again::Refuse(times)) => fail(
            Failure::Denied,
            format!(
                "This very call was made {times} times in a row. It is not made again: use what it \
                 said, try something else, or answer."
            ),
        ),
        (_, Again::Stop) => fail(Failure::Denied, "This call was made too often.".to_owned()),
        (None, Again::Go) => {
            let near = did_you_mean(&*turn.tools, &call.name);
            let near = if near.is_empty() { " Use those that you are offered." } else { &near };
            fail(Failure::Denied, format!("There is no tool '{}'.{near}", shown(call)))
        }
        (Some(found), Again::Go) => match object(&call.arguments) {
            Ok(arguments) => approved(turn, found.tool(), &arguments, fallback, begun).await,
            Err(words) => fail(Failure::InvalidArguments, words),
        },
    };
    see_end(turn, call, &outcome);
    outcome
}

fn too_many(turn: &Turn, call: &ToolUse) -> ToolOutcome {
    let words = format!("More than {MOST} calls at once are not made. Make this one later.");
    let outcome = fail(Failure::RateLimited, words);
    see_end(turn, call, &outcome);
    outcome
}

/// Calls a tool, once whoever must agree does. When that is, is noted.
async fn approved(
    turn: &Turn,
    tool: &dyn Tool,
    arguments: &RawValue,
    fallback: Fallback,
    begun: &OnceLock<Instant>,
) -> ToolOutcome {
    let session = Some(turn.session.as_str());
    let approval = match tool.standing_for(arguments) {
        Standing::Free => None,
        Standing::Ask(why) => {
            // Nobody is bothered with a call that will not be made.
            if let Some(violations) = misfit(&tool.spec().input_schema, arguments) {
                let words = format!(
                    "The arguments do not fit this tool. Nothing was called.\n{violations}"
                );
                return fail(Failure::InvalidArguments, words);
            }
            let question = Question { tool: tool.spec(), arguments, why, session };
            match (turn.approver.ask(question).await, fallback) {
                (Answer::Yes(Approval::Always), _) if !why.can_last() => Some(Approval::Once),
                (Answer::Yes(approval), _) => Some(approval),
                (Answer::No, _) => return denied("The user does not allow this call."),
                (Answer::Nobody, Fallback::Allow) if why != Why::Changed => {
                    let name = &tool.spec().name;
                    tracing::warn!(tool = %name, "nobody was there to approve; allowed by the configuration");
                    turn.observer.see(Event::Notice(format!(
                        "nobody could be asked about `{name}`: the configuration allows it (`approval.fallback`)"
                    )));
                    Some(Approval::Once)
                }
                (Answer::Nobody, _) => {
                    return denied(
                        "This call needs the approval of a person, and nobody answered. It was not made. \
                         (The setting `approval` of its server, or `approval.fallback` of the agent, decides \
                         that.)",
                    );
                }
            }
        }
    };
    begun.get_or_init(Instant::now);
    tool.call(ToolCall { arguments, who: &turn.who, session, approval }).await
}

/// Arguments must be an object; models like to send nothing for none.
fn object(text: &str) -> Result<Box<RawValue>, String> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(_)) => RawValue::from_string(text.to_owned())
            .map_err(|error| format!("The arguments are no JSON: {error}.")),
        Ok(Value::Null) => {
            Ok(serde_json::value::to_raw_value(&Value::Object(Default::default()))
                .unwrap_or_default())
        }
        Ok(_) => Err("The arguments must be a JSON object. Nothing was called.".to_owned()),
        Err(error) => Err(format!("The arguments are no JSON: {error}. Nothing was called.")),
    }
}

fn see_end(turn: &Turn, call: &ToolUse, outcome: &ToolOutcome) {
    turn.observer.see(Event::CallEnded(CallEnded {
        id: call.id.clone(),
        name: call.name.clone(),
        is_error: outcome.is_error,
        text: outcome.text(),
        untrusted: outcome.details.untrusted,
        duration: outcome.details.duration,
        failure: outcome.details.failure,
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

/// The names of what is suspicious in it.
fn suspicions(outcome: &ToolOutcome) -> Vec<String> {
    outcome.details.findings.iter().map(|finding| finding.kind.name().to_owned()).collect()
}

fn result(call: &ToolUse, outcome: ToolOutcome) -> ToolResult {
    let parts = outcome.content.into_iter().map(|part| match part {
        Content::Text(text) | Content::Placeholder(text) => Part::Text(text),
        Content::Image { mime_type, data } => Part::Image { mime_type, data },
        Content::Audio { mime_type, data } => Part::Audio { mime_type, data },
    });
    ToolResult {
        id: call.id.clone(),
        name: call.name.clone(),
        parts: parts.collect(),
        is_error: outcome.is_error,
    }
}

fn denied(words: &str) -> ToolOutcome {
    fail(Failure::Denied, words.to_owned())
}

fn fail(failure: Failure, words: String) -> ToolOutcome {
    let mut outcome = ToolOutcome::failure(words);
    outcome.details.failure = Some(failure);
    outcome
}

/// A name that a model has made up, short and plain.
fn shown(call: &ToolUse) -> String {
    call.name.chars().take(64).filter(char::is_ascii_graphic).collect()
}
