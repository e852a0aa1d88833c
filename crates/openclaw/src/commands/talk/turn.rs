//! Following one turn, from the message to the end.

use std::time::Duration;

use openclaw_protocol::chat::{AbortParams, AbortResult, SendParams, SendResult, SendStatus};
use openclaw_protocol::{AskError, EventReceiver, Received, Surface, ask, rpc};
use tokio::time::sleep;

use super::answer::{Answer, Ending};
use super::call::Call;
use super::catch_up;
use super::fresh_key;
use super::step::{Concern, Step};
use crate::commands::link::look;

/// After events were lost it is asked so often whether the turn is over.
const RECHECK: Duration = Duration::from_secs(1);
/// More of an answer is not kept for the case that its end is not heard.
const MAX_HEARD: usize = 16 * 1024 * 1024;
/// More calls of one turn are not remembered.
const MAX_CALLS: usize = 10_000;

/// What is said, and where.
#[derive(Debug, Clone)]
pub(crate) struct Words {
    pub(crate) session: String,
    pub(crate) agent: Option<String>,
    pub(crate) message: String,
    /// Whether it is for the model even if it looks like a command.
    pub(crate) is_plain: bool,
    pub(crate) timeout: Option<Duration>,
}

/// A turn that is under way.
pub(crate) struct Turn<'a> {
    surface: &'a dyn Surface,
    events: EventReceiver,
    sent: SendParams,
    pub(crate) run: String,
    calls: Vec<Call>,
    /// What was said since the last call.
    heard: String,
    /// Events were lost: the end may be among them.
    has_gap: bool,
}

impl<'a> Turn<'a> {
    /// Says it.
    pub(crate) async fn begin(surface: &'a dyn Surface, words: Words) -> Result<Self, AskError> {
        // First of all: the answer may be quick.
        let events = surface.events();
        let timeout_ms = words.timeout.map(|limit| limit.as_millis());
        let sent = SendParams {
            session_key: words.session,
            agent_id: words.agent,
            message: words.message,
            timeout_ms: timeout_ms.map(|limit| u64::try_from(limit).unwrap_or(u64::MAX)),
            idempotency_key: fresh_key(),
            suppress_command_interpretation: words.is_plain.then_some(true),
            ..SendParams::default()
        };
        let SendResult { run_id, .. } = ask::<rpc::ChatSend>(surface, sent.clone()).await?;
        let (calls, heard) = (Vec::new(), String::new());
        Ok(Self { surface, events, sent, run: run_id, calls, heard, has_gap: false })
    }

    /// What happens next. After [`Step::Over`] nothing does. Safe to cancel.
    pub(crate) async fn next(&mut self) -> Step {
        loop {
            let heard = if self.has_gap {
                tokio::select! {
                    heard = self.events.next() => heard,
                    answer = recheck(self.surface, &self.sent) => {
                        match answer {
                            Some(answer) => return self.over(answer),
                            None => continue,
                        }
                    }
                }
            } else {
                self.events.next().await
            };
            match heard {
                None => return self.over(Answer::bare(Ending::Gone)),
                Some(Received::Lagged(_)) => self.has_gap = true,
                Some(Received::Event(event)) => {
                    let concern = Concern { run: &self.run, session: &self.sent.session_key };
                    if let Some(step) = Step::of(&event, concern) {
                        return self.noted(step);
                    }
                }
            }
        }
    }

    /// Asks the gateway to end it. That it has ended is told like all else.
    pub(crate) async fn abort(&self) -> Result<AbortResult, AskError> {
        let params = AbortParams {
            session_key: self.sent.session_key.clone(),
            agent_id: self.sent.agent_id.clone(),
            run_id: Some(self.run.clone()),
            preserve_side_runs: None,
        };
        look::<rpc::ChatAbort>(self.surface, params).await
    }

    fn noted(&mut self, step: Step) -> Step {
        match step {
            Step::Text(text) => {
                if self.heard.len() + text.len() <= MAX_HEARD {
                    self.heard.push_str(&text);
                }
                Step::Text(text)
            }
            Step::Replaced(text) => {
                self.heard.clone_from(&text);
                Step::Replaced(text)
            }
            Step::Called(call) => {
                self.heard.clear();
                if self.calls.len() < MAX_CALLS {
                    self.calls.push(call.clone());
                }
                Step::Called(call)
            }
            Step::Advanced(call) => {
                let known = self.calls.iter().rev().find(|known| known.id == call.id);
                Step::Advanced(match known {
                    Some(known) => Call { progress: call.progress, ..known.clone() },
                    None => call,
                })
            }
            Step::Returned(call) => {
                let known = self.calls.iter_mut().rev().find(|known| known.id == call.id);
                match known {
                    Some(known) => {
                        *known = call.ended(known);
                        Step::Returned(known.clone())
                    }
                    None => Step::Returned(call),
                }
            }
            Step::Over(answer) => self.over(*answer),
            other => other,
        }
    }

    /// What there is of it, where its end is not waited for.
    pub(crate) fn given_up(&mut self, ending: Ending) -> Answer {
        self.with_all(Answer::bare(ending))
    }

    fn over(&mut self, answer: Answer) -> Step {
        Step::Over(Box::new(self.with_all(answer)))
    }

    fn with_all(&mut self, answer: Answer) -> Answer {
        let calls = std::mem::take(&mut self.calls);
        Answer { calls, ..answer.or_heard(&std::mem::take(&mut self.heard)) }
    }
}

/// Says the same once more: it is not run twice, and what became of it is told.
async fn recheck(surface: &dyn Surface, sent: &SendParams) -> Option<Answer> {
    sleep(RECHECK).await;
    let answer: Result<SendResult, AskError> = look::<rpc::ChatSend>(surface, sent.clone()).await;
    match answer {
        Ok(SendResult { status: SendStatus::Started | SendStatus::InFlight, .. }) => None,
        Ok(SendResult { status, .. }) => Some(catch_up::answer(surface, sent, status).await),
        Err(error) => Some(Answer::refused(&error)),
    }
}

#[cfg(test)]
#[path = "turn_tests.rs"]
mod tests;
