//! A running call: shows its progress, and prompts the user for elicitations and sampling requests.

use std::collections::VecDeque;
use std::pin::pin;

use openclaw_mcp_client::host::ElicitationAnswer;
use openclaw_protocol::approvals::{Approval, ApprovalKind, ResolvedEvent as Resolved};
use openclaw_protocol::mcp::elicitation::{Elicitation, ResolvedEvent};
use openclaw_protocol::mcp::{CallParams, Outcome, ProgressEvent};
use openclaw_protocol::{Event, EventReceiver, Received, RequestError, ask, names, rpc};
use tokio::sync::watch;

use super::shell::Shell;
use super::terminal::Terminal;
use crate::commands::elicitation::{Responded, respond};
use crate::commands::talk::approve::respond as respond_to;
use crate::commands::talk::fresh_key;
use crate::prompt::say;

/// The maximum number of times that a form is filled in, if the gateway rejects it.
const MAX_FORMS: usize = 3;

/// An event of a call.
enum CallEvent {
    Progress(ProgressEvent),
    Asked(Elicitation),
    /// The server requests sampling.
    Sampling(Box<Approval>),
    /// The request with this id needs no answer any more.
    Settled(String),
}

impl Shell<'_> {
    /// Calls a tool. Dropping the future cancels the call.
    pub(super) async fn call(
        &self,
        params: CallParams,
        what: &str,
    ) -> Result<Outcome, RequestError> {
        let is_shown = self.screen.can_draw();
        if !is_shown && self.terminal.is_none() {
            return ask::<rpc::McpCall>(self.surface, params).await;
        }
        let token = fresh_key();
        let params = CallParams { progress_token: is_shown.then(|| token.clone()), ..params };
        let server = params.server.clone();
        // Subscribed before the call: the server may elicit immediately.
        let mut events = Events { events: self.surface.events(), token, held: VecDeque::new() };
        let (progress, shown) = watch::channel(None);
        let calling = async {
            let mut calling = pin!(ask::<rpc::McpCall>(self.surface, params));
            tokio::select! {
                biased;
                called = &mut calling => called,
                never = self.attend(&mut events, &progress) => match never {},
            }
        };
        let starting = self.starting(server.as_deref());
        self.screen.show_call(what, starting, &shown, calling).await
    }

    /// Forwards progress, and prompts the user for requests, until it is dropped.
    async fn attend(
        &self,
        events: &mut Events,
        progress: &watch::Sender<Option<ProgressEvent>>,
    ) -> std::convert::Infallible {
        loop {
            match events.next().await {
                CallEvent::Progress(event) => drop(progress.send(Some(event))),
                CallEvent::Settled(_) => {}
                CallEvent::Sampling(approval) => {
                    let Some(terminal) = &self.terminal else { continue };
                    if events.is_settled(&approval.id) {
                        continue;
                    }
                    let deciding = async {
                        let decision = terminal.decide(&approval).await;
                        if let Err(error) = respond_to(self.surface, &approval.id, decision).await {
                            say(&format!("    {error}\n"));
                        }
                    };
                    tokio::select! {
                        biased;
                        () = deciding => {}
                        () = events.until_settled(&approval.id) => {
                            say("the question was withdrawn\n");
                        }
                    }
                }
                CallEvent::Asked(question) => {
                    let Some(terminal) = &self.terminal else { continue };
                    if events.is_settled(&question.id) {
                        continue;
                    }
                    tokio::select! {
                        biased;
                        () = self.lead(terminal, &question) => {}
                        () = events.until_settled(&question.id) => {
                            say("the question was withdrawn\n");
                        }
                    }
                }
            }
        }
    }

    async fn lead(&self, terminal: &Terminal, question: &Elicitation) {
        for _ in 0..MAX_FORMS {
            let answer = terminal.answer(question).await;
            match respond(self.surface, &question.id, answer).await {
                Responded::Done => return,
                Responded::Failed(why) => return say(&format!("    {why}\n")),
                Responded::Unfit(why) => say(&format!("    {why}\n")),
            }
        }
        let _ = respond(self.surface, &question.id, ElicitationAnswer::Cancel).await;
    }
}

/// Whether a request belongs to a call outside a conversation, such as that of this command.
fn is_of_call(approval: &Approval) -> bool {
    approval.session_key.as_deref().is_some_and(|key| !key.starts_with("agent:"))
}

/// The events of one call.
struct Events {
    events: EventReceiver,
    /// The progress token of this call.
    token: String,
    /// Events that arrived during a prompt.
    held: VecDeque<CallEvent>,
}

impl Events {
    /// Waits for the next event. Cancel-safe.
    async fn next(&mut self) -> CallEvent {
        match self.held.pop_front() {
            Some(told) => told,
            None => self.hear().await,
        }
    }

    async fn hear(&mut self) -> CallEvent {
        loop {
            match self.events.next().await {
                Some(Received::Event(event)) => {
                    if let Some(told) = self.read(&event) {
                        return told;
                    }
                }
                Some(Received::Lagged(_)) => {}
                // The connection is closed, so the call itself fails.
                None => std::future::pending().await,
            }
        }
    }

    fn read(&self, event: &Event) -> Option<CallEvent> {
        match &*event.event {
            names::MCP_PROGRESS => event
                .read::<ProgressEvent>()
                .filter(|event| event.token == self.token)
                .map(CallEvent::Progress),
            names::MCP_ELICITATION_REQUESTED => event.read().map(CallEvent::Asked),
            // All clients that may approve receive it; those of conversations are answered there.
            names::APPROVAL_REQUESTED => event
                .read::<Approval>()
                .filter(|it| it.kind == ApprovalKind::Sampling && is_of_call(it))
                .map(|it| CallEvent::Sampling(Box::new(it))),
            names::APPROVAL_RESOLVED => {
                event.read::<Resolved>().map(|event| CallEvent::Settled(event.id))
            }
            names::MCP_ELICITATION_RESOLVED => {
                event.read::<ResolvedEvent>().map(|event| CallEvent::Settled(event.id))
            }
            _ => None,
        }
    }

    fn is_settled(&self, id: &str) -> bool {
        self.held.iter().any(|told| matches!(told, CallEvent::Settled(settled) if settled == id))
    }

    /// Waits until a request needs no answer any more. Other events are kept, of progress only the
    /// latest.
    async fn until_settled(&mut self, id: &str) {
        while !self.is_settled(id) {
            let told = self.hear().await;
            if matches!(told, CallEvent::Progress(_)) {
                self.held.retain(|held| !matches!(held, CallEvent::Progress(_)));
            }
            self.held.push_back(told);
        }
    }
}
