//! Sends a message, and follows the events of its turn to the end.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use openclaw_protocol::chat::{
    AbortParams, AbortResult, Attachment, SendParams, SendResult, SendStatus,
};
use openclaw_protocol::sessions::{DescribeParams, RunStatus};
use openclaw_protocol::{Event, EventReceiver, Received, RequestError, Surface, ask_in, rpc};
use openclaw_trace::Span;
use tokio::time::sleep;

use super::answer::{TurnOutcome, TurnStatus};
use super::call::ShownCall;
use super::catch_up;
use super::fresh_key;
use super::step::{EventFilter, TurnEvent};
use crate::commands::link::look;

/// The interval of polling for the end of the turn after events were lost.
const RECHECK: Duration = Duration::from_secs(1);
/// The maximum bytes of streamed text that are kept in case the end of the turn is lost.
const MAX_HEARD: usize = 16 * 1024 * 1024;
/// The maximum number of calls that are kept.
const MAX_CALLS: usize = 10_000;

/// A message to send.
#[derive(Debug)]
pub(crate) struct OutgoingMessage {
    pub(crate) session: String,
    pub(crate) agent: Option<String>,
    pub(crate) message: String,
    /// Whether it goes to the model even if it looks like a command.
    pub(crate) is_plain: bool,
    pub(crate) timeout: Option<Duration>,
    /// The folder to work in; `None` for the agent's workspace.
    pub(crate) workspace: Option<PathBuf>,
    pub(crate) attachments: Vec<Attachment>,
    /// The span of the message, which ends with the turn.
    pub(crate) span: Span,
}

/// A running turn.
pub(crate) struct FollowedTurn<'a> {
    surface: &'a dyn Surface,
    events: EventReceiver,
    sent: SendParams,
    pub(crate) run: String,
    calls: Vec<ShownCall>,
    /// The text since the last call.
    heard: String,
    /// Whether events were lost, perhaps the end.
    has_gap: bool,
    /// Events that arrived before it was joined.
    so_far: VecDeque<Event>,
    /// Whether another client has sent the message.
    is_joined: bool,
    /// Whether approvals of other sessions are reported, too.
    all_questions: bool,
    _span: Span,
}

/// A turn that another client runs.
#[derive(Debug)]
pub(crate) struct JoinedRun {
    pub(crate) id: String,
    pub(crate) session: String,
    pub(crate) agent: Option<String>,
    /// The events that have arrived.
    pub(crate) so_far: VecDeque<Event>,
    /// Whether some of them were lost.
    pub(crate) has_gap: bool,
}

impl<'a> FollowedTurn<'a> {
    /// Sends the message.
    pub(crate) async fn begin(
        surface: &'a dyn Surface,
        words: OutgoingMessage,
    ) -> Result<Self, RequestError> {
        // Subscribed before sending, so that no event is missed.
        let events = surface.events();
        let timeout_ms = words.timeout.map(|limit| limit.as_millis());
        let sent = SendParams {
            session_key: words.session,
            agent_id: words.agent,
            message: words.message,
            timeout_ms: timeout_ms.map(|limit| u64::try_from(limit).unwrap_or(u64::MAX)),
            workspace: words
                .workspace
                .and_then(|folder| folder.into_os_string().into_string().ok()),
            idempotency_key: fresh_key(),
            suppress_command_interpretation: words.is_plain.then_some(true),
            attachments: (!words.attachments.is_empty()).then_some(words.attachments),
            ..SendParams::default()
        };
        let span = words.span;
        span.set_text("gen_ai.conversation.id", &sent.session_key);
        let sending = ask_in::<rpc::ChatSend>(surface, sent.clone(), span.context());
        let SendResult { run_id, .. } = sending.await?;
        Ok(Self { _span: span, ..Self::new(surface, events, sent, run_id) })
    }

    /// Follows a turn that another client runs. `events` has what follows those of the run so far.
    pub(crate) fn join(surface: &'a dyn Surface, run: JoinedRun, events: EventReceiver) -> Self {
        let JoinedRun { id, session, agent, so_far, has_gap } = run;
        let sent = SendParams {
            session_key: session,
            agent_id: agent,
            idempotency_key: id.clone(),
            ..SendParams::default()
        };
        let turn = Self::new(surface, events, sent, id);
        Self { so_far, has_gap, is_joined: true, ..turn }
    }

    fn new(surface: &'a dyn Surface, events: EventReceiver, sent: SendParams, run: String) -> Self {
        Self {
            surface,
            events,
            sent,
            run,
            calls: Vec::new(),
            heard: String::new(),
            has_gap: false,
            so_far: VecDeque::new(),
            is_joined: false,
            all_questions: false,
            _span: Span::default(),
        }
    }

    /// Also reports approvals of other sessions.
    pub(crate) fn with_all_questions(self) -> Self {
        Self { all_questions: true, ..self }
    }

    /// Waits for the next event. [`TurnEvent::Over`] is the last. Cancel-safe.
    pub(crate) async fn next(&mut self) -> TurnEvent {
        loop {
            let heard = if let Some(event) = self.so_far.pop_front() {
                Some(Received::Event(event))
            } else if self.has_gap {
                tokio::select! {
                    heard = self.events.next() => heard,
                    answer = recheck(self.surface, &self.sent, self.is_joined) => {
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
                None => return self.over(TurnOutcome::bare(TurnStatus::Gone)),
                Some(Received::Lagged(_)) => self.has_gap = true,
                Some(Received::Event(event)) => {
                    let (run, session) = (self.run.as_str(), self.sent.session_key.as_str());
                    let concern = EventFilter { run, session, all_questions: self.all_questions };
                    if let Some(step) = TurnEvent::of(&event, concern) {
                        return self.noted(step);
                    }
                }
            }
        }
    }

    /// Asks the gateway to abort the turn. Its end is reported by [`next`](Self::next).
    pub(crate) async fn abort(&self) -> Result<AbortResult, RequestError> {
        let params = AbortParams {
            session_key: self.sent.session_key.clone(),
            agent_id: self.sent.agent_id.clone(),
            run_id: Some(self.run.clone()),
            preserve_side_runs: None,
        };
        look::<rpc::ChatAbort>(self.surface, params).await
    }

    fn noted(&mut self, step: TurnEvent) -> TurnEvent {
        match step {
            TurnEvent::Text(text) => {
                if self.heard.len() + text.len() <= MAX_HEARD {
                    self.heard.push_str(&text);
                }
                TurnEvent::Text(text)
            }
            TurnEvent::Replaced(text) => {
                self.heard.clone_from(&text);
                TurnEvent::Replaced(text)
            }
            TurnEvent::Called(call) => {
                self.heard.clear();
                if self.calls.len() < MAX_CALLS {
                    self.calls.push(call.clone());
                }
                TurnEvent::Called(call)
            }
            TurnEvent::Advanced(call) => {
                let known = self.calls.iter().rev().find(|known| known.id == call.id);
                TurnEvent::Advanced(match known {
                    Some(known) => ShownCall { progress: call.progress, ..known.clone() },
                    None => call,
                })
            }
            TurnEvent::Returned(call) => {
                let known = self.calls.iter_mut().rev().find(|known| known.id == call.id);
                match known {
                    Some(known) => {
                        *known = call.ended(known);
                        TurnEvent::Returned(known.clone())
                    }
                    None => TurnEvent::Returned(call),
                }
            }
            TurnEvent::Over(answer) => self.over(*answer),
            other => other,
        }
    }

    /// Returns the partial answer of a turn whose end is not awaited.
    pub(crate) fn given_up(&mut self, ending: TurnStatus) -> TurnOutcome {
        self.with_all(TurnOutcome::bare(ending))
    }

    fn over(&mut self, answer: TurnOutcome) -> TurnEvent {
        TurnEvent::Over(Box::new(self.with_all(answer)))
    }

    fn with_all(&mut self, answer: TurnOutcome) -> TurnOutcome {
        let calls = std::mem::take(&mut self.calls);
        TurnOutcome { calls, ..answer.or_streamed(&std::mem::take(&mut self.heard)) }
    }
}

/// Returns the outcome of a turn if it is over. Sends the same message again: by its idempotency key
/// it is not run twice, and the response has the status of the turn.
async fn recheck(surface: &dyn Surface, sent: &SendParams, is_joined: bool) -> Option<TurnOutcome> {
    sleep(RECHECK).await;
    if is_joined {
        return recheck_session(surface, sent).await;
    }
    let answer = look::<rpc::ChatSend>(surface, sent.clone()).await;
    match answer {
        Ok(SendResult { status: SendStatus::Started | SendStatus::InFlight, .. }) => None,
        Ok(SendResult { status, .. }) => Some(catch_up::answer(surface, sent, status).await),
        Err(error) => Some(TurnOutcome::refused(&error)),
    }
}

/// Like [`recheck`], for a message that another client has sent.
async fn recheck_session(surface: &dyn Surface, sent: &SendParams) -> Option<TurnOutcome> {
    let params = DescribeParams { key: sent.session_key.clone(), ..DescribeParams::default() };
    let described = look::<rpc::SessionsDescribe>(surface, params).await;
    match described.map(|it| it.session.and_then(|row| row.status)) {
        Ok(Some(RunStatus::Running)) => None,
        Ok(_) => Some(catch_up::answer(surface, sent, SendStatus::Ok).await),
        Err(error) => Some(TurnOutcome::refused(&error)),
    }
}

#[cfg(test)]
#[path = "turn_tests.rs"]
mod tests;
