//! Events: what a gateway says unasked, in order.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// The names of events.
pub mod names {
    /// The first word of a gateway; a [`Challenge`](crate::connect::Challenge).
    pub const CONNECT_CHALLENGE: &str = "connect.challenge";
    /// A [`ChatEvent`](crate::chat::ChatEvent).
    pub const CHAT: &str = "chat";
    /// An [`AgentEvent`](crate::chat::AgentEvent).
    pub const AGENT: &str = "agent";
    /// The gateway is there; a [`Tick`](super::Tick).
    pub const TICK: &str = "tick";
    /// The gateway ends; a [`Shutdown`](super::Shutdown).
    pub const SHUTDOWN: &str = "shutdown";
    /// A [`ServerEvent`](crate::mcp::ServerEvent).
    pub const MCP_SERVER: &str = "mcp.server";
    /// A [`ProgressEvent`](crate::mcp::ProgressEvent).
    pub const MCP_PROGRESS: &str = "mcp.progress";
    /// An [`Elicitation`](crate::mcp::elicitation::Elicitation).
    pub const MCP_ELICITATION_REQUESTED: &str = "mcp.elicitation.requested";
    /// A [`ResolvedEvent`](crate::mcp::elicitation::ResolvedEvent).
    pub const MCP_ELICITATION_RESOLVED: &str = "mcp.elicitation.resolved";
    /// An [`Approval`](crate::approvals::Approval).
    pub const APPROVAL_REQUESTED: &str = "approval.requested";
    /// A [`ResolvedEvent`](crate::approvals::ResolvedEvent).
    pub const APPROVAL_RESOLVED: &str = "approval.resolved";
    /// An [`InvokeRequestEvent`](crate::tools::InvokeRequestEvent).
    pub const NODE_INVOKE_REQUEST: &str = "node.invoke.request";
    /// All of them.
    pub const ALL: [&str; 12] = [
        CONNECT_CHALLENGE,
        CHAT,
        AGENT,
        TICK,
        SHUTDOWN,
        MCP_SERVER,
        MCP_PROGRESS,
        MCP_ELICITATION_REQUESTED,
        MCP_ELICITATION_RESOLVED,
        APPROVAL_REQUESTED,
        APPROVAL_RESOLVED,
        NODE_INVOKE_REQUEST,
    ];
}

/// Something that happened. Cheap to copy: many may hear it.
#[derive(Debug, Clone)]
pub struct Event {
    /// What.
    pub event: Cow<'static, str>,
    /// More about it.
    pub payload: Arc<RawValue>,
    /// Its number on the connection it came by. Who sends leaves it out.
    pub seq: Option<u64>,
}

impl Event {
    /// An event with this payload.
    ///
    /// # Errors
    /// If the payload cannot be written as JSON.
    pub fn new<T: Serialize>(event: &'static str, payload: &T) -> Result<Self, serde_json::Error> {
        let payload = to_raw_value(payload)?.into();
        Ok(Self { event: Cow::Borrowed(event), payload, seq: None })
    }
}

/// What a listener hears.
#[derive(Debug, Clone)]
pub enum Received {
    /// An event.
    Event(Event),
    /// It listened too slowly, and missed so many.
    Lagged(u64),
}

/// Where events are told to all who listen.
#[derive(Debug, Clone)]
pub struct EventSender(broadcast::Sender<Received>);

impl EventSender {
    /// Keeps up to this many events for those who are slow.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self(broadcast::Sender::new(capacity.max(1)))
    }

    /// Tells it. It is no fault if nobody listens.
    pub fn tell(&self, event: Event) {
        let _ = self.0.send(Received::Event(event));
    }

    /// So many were lost on the way here.
    pub(crate) fn tell_gap(&self, missed: u64) {
        let _ = self.0.send(Received::Lagged(missed));
    }

    /// Where others may listen, without being able to tell anything.
    pub(crate) fn source(&self) -> EventSource {
        EventSource(self.0.downgrade())
    }

    /// Listens from now on.
    #[must_use]
    pub fn listen(&self) -> EventReceiver {
        EventReceiver { receiver: self.0.subscribe(), wanted: None }
    }

    /// Listens from now on, to what this says yes to.
    #[must_use]
    pub fn listen_where(
        &self,
        wanted: impl Fn(&Event) -> bool + Send + Sync + 'static,
    ) -> EventReceiver {
        EventReceiver { receiver: self.0.subscribe(), wanted: Some(Box::new(wanted)) }
    }
}

/// A place to listen at that does not keep events coming: when nobody can tell any more, listeners hear
/// that it is over.
#[derive(Debug)]
pub(crate) struct EventSource(broadcast::WeakSender<Received>);

impl EventSource {
    /// Listens from now on; what is over is over at once.
    pub(crate) fn listen(&self) -> EventReceiver {
        match self.0.upgrade() {
            Some(sender) => EventSender(sender).listen(),
            None => EventSender::new(1).listen(),
        }
    }
}

type EventFilter = Box<dyn Fn(&Event) -> bool + Send + Sync>;

/// One listener. What it has not heard yet is kept within a bound; what is lost is told.
pub struct EventReceiver {
    receiver: broadcast::Receiver<Received>,
    wanted: Option<EventFilter>,
}

impl EventReceiver {
    /// The next event; none if there can be no more. Cancel-safe.
    pub async fn next(&mut self) -> Option<Received> {
        loop {
            match self.receiver.recv().await {
                Ok(Received::Event(event)) => {
                    if self.wanted.as_ref().is_none_or(|wanted| wanted(&event)) {
                        return Some(Received::Event(event));
                    }
                }
                Ok(gap) => return Some(gap),
                Err(RecvError::Lagged(missed)) => return Some(Received::Lagged(missed)),
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

impl std::fmt::Debug for EventReceiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventReceiver").field("waiting", &self.receiver.len()).finish()
    }
}

/// The event `tick`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tick {
    /// When, in milliseconds since 1970.
    pub ts: u64,
}

/// The event `shutdown`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shutdown {
    /// Why.
    pub reason: String,
    /// When it will be back, if it will.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_expected_ms: Option<u64>,
}
