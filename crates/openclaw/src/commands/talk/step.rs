//! Events of the gateway as steps of one turn.

use openclaw_protocol::agent_event::{AgentData, AgentEvent, ApprovalPhase, ToolPhase};
use openclaw_protocol::approvals::{Approval, ResolvedEvent};
use openclaw_protocol::chat::{ChatEvent, ChatState};
use openclaw_protocol::mcp::elicitation::{self, Elicitation};
use openclaw_protocol::{Event, Shutdown, names};

use super::answer::{TurnOutcome, TurnStatus};
use super::call::ShownCall;
use super::parts::ShownMessage;

/// An event of a turn.
#[derive(Debug, Clone)]
pub(crate) enum TurnEvent {
    /// More of the answer.
    Text(String),
    /// The answer so far, which replaces the earlier text.
    Replaced(String),
    /// The model is thinking.
    Thought,
    /// A call has started.
    Called(ShownCall),
    /// The progress of a call: only its id and progress are set.
    Advanced(ShownCall),
    /// A call has finished: only its id and result are set.
    Returned(ShownCall),
    /// A notice for the user.
    Notice(String),
    /// A call waits for approval, by this client or another one. Its title.
    Waits(String),
    /// A request for approval.
    Asked(Box<Approval>),
    /// A server elicits input.
    Elicited(Box<Elicitation>),
    /// The approval or elicitation with this id was answered, or has expired.
    Decided(String),
    /// The gateway is stopping.
    EndingServer(String),
    /// The turn is over.
    Over(Box<TurnOutcome>),
}

/// The run and the session whose events are relevant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventFilter<'a> {
    pub(crate) run: &'a str,
    pub(crate) session: &'a str,
    /// Whether approvals of other sessions are relevant, too.
    pub(crate) all_questions: bool,
}

impl TurnEvent {
    /// Converts an event; `None` if it is irrelevant to the turn, or cannot be parsed: a newer
    /// gateway may send unknown events.
    pub(crate) fn of(event: &Event, concern: EventFilter<'_>) -> Option<Self> {
        match &*event.event {
            names::CHAT => {
                let chat: ChatEvent = event.read()?;
                (chat.run_id == concern.run).then(|| of_chat(chat.state)).flatten()
            }
            names::AGENT => {
                let agent: AgentEvent = event.read()?;
                (agent.run_id == concern.run).then(|| of_agent(agent.data)).flatten()
            }
            names::APPROVAL_REQUESTED => {
                let approval: Approval = event.read()?;
                let is_ours = concern.all_questions
                    || approval.run_id.as_deref() == Some(concern.run)
                    || approval.session_key.as_deref() == Some(concern.session);
                is_ours.then(|| Self::Asked(Box::new(approval)))
            }
            names::APPROVAL_RESOLVED => {
                event.read::<ResolvedEvent>().map(|resolved| Self::Decided(resolved.id))
            }
            // Not filtered: it is sent only to clients that show it.
            names::MCP_ELICITATION_REQUESTED => {
                event.read().map(|elicitation| Self::Elicited(Box::new(elicitation)))
            }
            names::MCP_ELICITATION_RESOLVED => {
                event.read::<elicitation::ResolvedEvent>().map(|it| Self::Decided(it.id))
            }
            names::SHUTDOWN => {
                event.read::<Shutdown>().map(|event| Self::EndingServer(event.reason))
            }
            _ => None,
        }
    }
}

fn of_chat(state: ChatState) -> Option<TurnEvent> {
    let over = |answer| Some(TurnEvent::Over(Box::new(answer)));
    match state {
        ChatState::Status { .. } => None,
        ChatState::Delta { message, replace: Some(true), .. } => {
            Some(TurnEvent::Replaced(ShownMessage::of(message.as_ref()?)?.text()))
        }
        ChatState::Delta { delta_text, .. } => {
            (!delta_text.is_empty()).then_some(TurnEvent::Text(delta_text))
        }
        ChatState::Final { message, usage, stop_reason } => {
            let ending = TurnStatus::of_stop(stop_reason.as_deref());
            over(TurnOutcome { stop_reason, usage, ..TurnOutcome::new(ending, message.as_ref()) })
        }
        ChatState::Aborted { message, error_message, stop_reason } => {
            let ending = TurnStatus::of_abort(stop_reason.as_deref());
            let answer = TurnOutcome::new(ending, message.as_ref());
            over(TurnOutcome { stop_reason, error: error_message, ..answer })
        }
        ChatState::Error { message, error_message, error_kind, usage, stop_reason, .. } => {
            let answer = TurnOutcome::new(TurnStatus::of_error(error_kind), message.as_ref());
            over(TurnOutcome { stop_reason, usage, error: error_message, ..answer })
        }
    }
}

fn of_agent(data: AgentData) -> Option<TurnEvent> {
    match data {
        AgentData::Tool(ToolPhase::Start(start)) => Some(TurnEvent::Called(start.into())),
        AgentData::Tool(ToolPhase::Update(update)) => {
            update.progress.is_some().then(|| TurnEvent::Advanced(update.into()))
        }
        AgentData::Tool(ToolPhase::Result(result)) => Some(TurnEvent::Returned(result.into())),
        AgentData::Approval(ApprovalPhase::Requested(approval)) => {
            Some(TurnEvent::Waits(approval.title))
        }
        AgentData::Reasoning(_) => Some(TurnEvent::Thought),
        AgentData::Notice(notice) => Some(TurnEvent::Notice(notice.text)),
        AgentData::Lifecycle(_)
        | AgentData::Assistant(_)
        | AgentData::Usage(_)
        | AgentData::Other { .. } => None,
    }
}
