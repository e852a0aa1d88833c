//! What has arrived from the gateway and is not shown yet: questions, turns of other clients in the
//! same conversation, changes of servers.

use std::collections::VecDeque;

use openclaw_protocol::agent_event::{AgentData, AgentEvent, RunPhase};
use openclaw_protocol::chat::ChatEvent;
use openclaw_protocol::mcp::elicitation::{Elicitation, ResolvedEvent};
use openclaw_protocol::{Event, Received, names};

/// The maximum number of events that are kept of a run, of runs, and of elicitations.
const MAX_EVENTS: usize = 1_024;
const MAX_RUNS: usize = 8;
const MAX_ELICITATIONS: usize = 32;

/// What to show.
#[derive(Debug)]
pub(super) enum InboxItem {
    /// The state of a server may have changed.
    Servers,
    /// There may be requests for approval.
    Approvals,
    /// A server elicits input.
    Elicited(Box<Elicitation>),
    /// Another client runs a turn of this conversation.
    Turn(RunElsewhere),
    /// The connection is closed.
    Gone,
}

/// A turn of this conversation that another client runs.
#[derive(Debug, Default)]
pub(super) struct RunElsewhere {
    pub(super) id: String,
    /// The message, if its beginning was seen.
    pub(super) message: Option<String>,
    pub(super) events: VecDeque<Event>,
    /// Whether events were lost.
    pub(super) has_gap: bool,
}

/// The conversation that is shown, and the last run of this chat.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown<'a> {
    pub(super) session: &'a str,
    pub(super) own_run: &'a str,
}

/// What has arrived and is not shown yet.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    servers: bool,
    approvals: bool,
    elicited: VecDeque<Elicitation>,
    runs: VecDeque<RunElsewhere>,
}

impl Inbox {
    /// An inbox that looks for everything first. `elicited` is what already waits.
    pub(super) fn unknown(mut elicited: Vec<Elicitation>) -> Self {
        elicited.truncate(MAX_ELICITATIONS);
        Self { approvals: true, elicited: elicited.into(), ..Self::default() }
    }

    /// Returns the next thing to show.
    pub(super) fn pop(&mut self) -> Option<InboxItem> {
        if std::mem::take(&mut self.approvals) {
            return Some(InboxItem::Approvals);
        }
        if let Some(elicitation) = self.elicited.pop_front() {
            return Some(InboxItem::Elicited(Box::new(elicitation)));
        }
        if let Some(run) = self.runs.pop_front() {
            return Some(InboxItem::Turn(run));
        }
        std::mem::take(&mut self.servers).then_some(InboxItem::Servers)
    }

    pub(super) fn add(&mut self, received: Received, shown: Shown<'_>) {
        let event = match received {
            Received::Event(event) => event,
            Received::Lagged(_) => {
                (self.servers, self.approvals) = (true, true);
                self.runs.iter_mut().for_each(|run| run.has_gap = true);
                return;
            }
        };
        match &*event.event {
            names::MCP_SERVER => self.servers = true,
            names::APPROVAL_REQUESTED => self.approvals = true,
            names::MCP_ELICITATION_REQUESTED if self.elicited.len() < MAX_ELICITATIONS => {
                let new = event.read();
                // One that was listed may also arrive as an event.
                let is_new = |new: &Elicitation| !self.elicited.iter().any(|it| it.id == new.id);
                self.elicited.extend(new.filter(is_new));
            }
            names::MCP_ELICITATION_RESOLVED => {
                if let Some(ResolvedEvent { id, .. }) = event.read() {
                    self.elicited.retain(|it| it.id != id);
                }
            }
            names::AGENT => {
                let Some(agent) = event.read::<AgentEvent>() else { return };
                let (begun_in, message) = match agent.data {
                    AgentData::Lifecycle(RunPhase::Start { session_key, message, .. }) => {
                        (session_key, message)
                    }
                    _ => (None, None),
                };
                let is_here = begun_in.as_deref() == Some(shown.session);
                self.run(agent.run_id, is_here, message, event, shown);
            }
            names::CHAT => {
                let Some(chat) = event.read::<ChatEvent>() else { return };
                let is_here = chat.session_key == shown.session;
                self.run(chat.run_id, is_here, None, event, shown);
            }
            _ => {}
        }
    }

    /// Adds an event of a run, which is new if the event tells that it is of this conversation.
    fn run(
        &mut self,
        id: String,
        is_here: bool,
        message: Option<String>,
        event: Event,
        shown: Shown<'_>,
    ) {
        if let Some(known) = self.runs.iter_mut().find(|run| run.id == id) {
            match known.events.len() < MAX_EVENTS {
                true => known.events.push_back(event),
                false => known.has_gap = true,
            }
        } else if is_here && id != shown.own_run && self.runs.len() < MAX_RUNS {
            let events = VecDeque::from([event]);
            self.runs.push_back(RunElsewhere { id, message, events, has_gap: false });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;
    use serde_json::{Value, json};

    use super::*;

    const SHOWN: Shown<'_> = Shown { session: "here", own_run: "own" };

    fn inbox(events: &[(&'static str, Value)]) -> Inbox {
        let mut inbox = Inbox::default();
        for (name, payload) in events {
            let event = Event::from_json(*name, to_raw_value(payload).unwrap());
            inbox.add(Received::Event(event), SHOWN);
        }
        inbox
    }

    fn chat(run: &str, session: &str) -> (&'static str, Value) {
        let delta = json!({ "runId": run, "sessionKey": session, "seq": 1, "state": "delta",
                            "deltaText": "Hi" });
        (names::CHAT, delta)
    }

    fn begins(run: &str, session: &str) -> (&'static str, Value) {
        let data = json!({ "phase": "start", "sessionKey": session, "message": "Hello" });
        let event = json!({ "runId": run, "seq": 1, "stream": "lifecycle", "ts": 0, "data": data });
        (names::AGENT, event)
    }

    #[test]
    fn a_turn_of_another_client_is_shown_with_its_message_and_events() {
        let mut inbox = inbox(&[begins("r", "here"), chat("r", "here")]);
        let Some(InboxItem::Turn(run)) = inbox.pop() else { panic!("{inbox:?}") };
        assert_eq!((run.id.as_str(), run.message.as_deref()), ("r", Some("Hello")));
        assert_eq!((run.events.len(), run.has_gap), (2, false));
        assert!(inbox.pop().is_none());
    }

    #[test]
    fn turns_of_this_chat_and_of_other_conversations_are_not() {
        let events =
            [begins("own", "here"), chat("own", "here"), begins("r", "there"), chat("r", "there")];
        assert!(inbox(&events).pop().is_none());
    }

    #[test]
    fn a_turn_that_runs_already_is_shown_from_its_next_event() {
        let mut inbox = inbox(&[chat("r", "here")]);
        let Some(InboxItem::Turn(run)) = inbox.pop() else { panic!("{inbox:?}") };
        assert_eq!((run.id.as_str(), run.message), ("r", None));
    }

    #[test]
    fn an_elicitation_that_was_answered_meanwhile_is_not_shown() {
        let asked = json!({ "id": "1", "server": "x", "sessionKeys": ["here"], "message": "Who?",
                            "mode": "url", "url": "https://a.test", "createdAtMs": 0,
                            "expiresAtMs": 0 });
        let listed = serde_json::from_value(asked.clone()).unwrap();
        let asked = (names::MCP_ELICITATION_REQUESTED, asked);
        let mut waiting = Inbox::unknown(vec![listed]);
        let event = Event::from_json(asked.0, to_raw_value(&asked.1).unwrap());
        waiting.add(Received::Event(event), SHOWN);
        assert!(matches!(waiting.pop(), Some(InboxItem::Approvals)));
        assert!(matches!(waiting.pop(), Some(InboxItem::Elicited(_))));
        assert!(waiting.pop().is_none(), "shown once");
        assert!(matches!(inbox(std::slice::from_ref(&asked)).pop(), Some(InboxItem::Elicited(_))));
        let resolved = (names::MCP_ELICITATION_RESOLVED, json!({ "id": "1", "reason": "user" }));
        assert!(inbox(&[asked, resolved]).pop().is_none());
    }

    #[test]
    fn lost_events_are_looked_up() {
        let mut inbox = inbox(&[]);
        inbox.add(Received::Lagged(3), SHOWN);
        assert!(matches!(inbox.pop(), Some(InboxItem::Approvals)));
        assert!(matches!(inbox.pop(), Some(InboxItem::Servers)));
    }
}
