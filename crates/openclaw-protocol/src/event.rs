//! Events: unsolicited, ordered messages of a gateway.

use std::borrow::Cow;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_with::skip_serializing_none;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Event names.
pub mod names {
    /// The first message of a gateway; a [`Challenge`](crate::connect::Challenge).
    pub const CONNECT_CHALLENGE: &str = "connect.challenge";
    /// A [`ChatEvent`](crate::chat::ChatEvent).
    pub const CHAT: &str = "chat";
    /// An [`AgentEvent`](crate::chat::AgentEvent).
    pub const AGENT: &str = "agent";
    /// Heartbeat of the gateway; a [`Tick`](super::Tick).
    pub const TICK: &str = "tick";
    /// The gateway is stopping; a [`Shutdown`](super::Shutdown).
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
    /// A [`Requested`](crate::approvals::published::Requested).
    pub const PLUGIN_APPROVAL_REQUESTED: &str = "plugin.approval.requested";
    /// A [`Resolved`](crate::approvals::published::Resolved).
    pub const PLUGIN_APPROVAL_RESOLVED: &str = "plugin.approval.resolved";
    /// A [`ChangedEvent`](crate::sessions::ChangedEvent).
    pub const SESSIONS_CHANGED: &str = "sessions.changed";
    /// All event names.
    pub const ALL: [&str; 15] = [
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
        PLUGIN_APPROVAL_REQUESTED,
        PLUGIN_APPROVAL_RESOLVED,
        SESSIONS_CHANGED,
    ];
}

/// An event. Cheap to clone, for any number of listeners.
#[derive(Debug, Clone)]
pub struct Event {
    /// Event name.
    pub event: Cow<'static, str>,
    /// Payload.
    pub payload: Arc<RawValue>,
    /// Sequence number on the receiving connection; `None` when sending.
    pub seq: Option<u64>,
}

impl Event {
    /// Creates an event with this payload.
    ///
    /// # Errors
    /// If the payload cannot be serialized.
    pub fn new<T: Serialize>(event: &'static str, payload: &T) -> Result<Self, serde_json::Error> {
        let payload = to_raw_value(payload)?.into();
        Ok(Self { event: Cow::Borrowed(event), payload, seq: None })
    }

    /// Reads the payload; `None` if it is of another type.
    #[must_use]
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.payload.get()).ok()
    }
}

/// What a listener receives.
#[derive(Debug, Clone)]
pub enum Received {
    /// An event.
    Event(Event),
    /// The listener was too slow and missed this many events.
    Lagged(u64),
}

/// Broadcasts events to all listeners.
#[derive(Debug, Clone)]
pub struct EventSender(broadcast::Sender<Received>);

impl EventSender {
    /// Creates a sender that buffers up to this many events for slow listeners.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self(broadcast::Sender::new(capacity.max(1)))
    }

    /// Sends an event. Does nothing if there is no listener.
    pub fn tell(&self, event: Event) {
        let _ = self.0.send(Received::Event(event));
    }

    /// Number of events that the slowest listener has not received yet.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.len()
    }

    /// Reports to all listeners that this many events were lost.
    pub(crate) fn send_gap(&self, missed: u64) {
        let _ = self.0.send(Received::Lagged(missed));
    }

    /// Returns a weak handle for subscribing.
    pub(crate) fn source(&self) -> EventSource {
        EventSource(self.0.downgrade())
    }

    /// Subscribes to all later events.
    #[must_use]
    pub fn listen(&self) -> EventReceiver {
        EventReceiver(self.0.subscribe())
    }
}

/// A weak handle for subscribing: it does not keep the channel open, so receivers end when the last
/// sender is dropped.
#[derive(Debug)]
pub(crate) struct EventSource(broadcast::WeakSender<Received>);

impl EventSource {
    /// Subscribes to later events; the receiver ends immediately if the channel is closed.
    pub(crate) fn listen(&self) -> EventReceiver {
        match self.0.upgrade() {
            Some(sender) => EventSender(sender).listen(),
            None => EventSender::new(1).listen(),
        }
    }
}

/// A subscription to events. Its buffer is bounded; lost events are reported.
#[derive(Debug)]
pub struct EventReceiver(broadcast::Receiver<Received>);

impl EventReceiver {
    /// Returns the next event, or `None` once the channel is closed. Cancel-safe.
    pub async fn next(&mut self) -> Option<Received> {
        match self.0.recv().await {
            Ok(received) => Some(received),
            Err(RecvError::Lagged(missed)) => Some(Received::Lagged(missed)),
            Err(RecvError::Closed) => None,
        }
    }
}

/// Payload of the event `tick`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tick {
    /// Timestamp, in milliseconds since 1970.
    pub ts: u64,
}

/// Payload of the event `shutdown`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shutdown {
    /// Reason.
    pub reason: String,
    /// Milliseconds until the gateway is expected back, if it restarts.
    pub restart_expected_ms: Option<u64>,
}
