//! Events: unsolicited, ordered messages of a gateway.

use std::borrow::Cow;
use std::sync::Arc;

use openclaw_budget::{ByteBudget, BytePermit, FREE};
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
    /// An [`AgentEvent`](crate::agent_event::AgentEvent).
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
pub struct EventSender {
    channel: broadcast::Sender<Waiting>,
    /// The memory of large events that listeners have not received.
    memory: Arc<ByteBudget>,
}

/// An event for listeners, with the memory that it takes until all have received it.
type Waiting = (Received, Option<Arc<BytePermit>>);

/// The memory of large events that wait for slow listeners.
const MAX_WAITING: usize = 64 * 1024 * 1024;

impl EventSender {
    /// Creates a sender that buffers up to this many events for slow listeners.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let memory = ByteBudget::new(MAX_WAITING);
        Self { channel: broadcast::Sender::new(capacity.max(1)), memory }
    }

    /// Sends an event. Does nothing if there is no listener. A large one is lost if too many bytes of
    /// others wait for a slow listener.
    pub fn tell(&self, event: Event) {
        let size = event.payload.get().len();
        let waiting = if size <= FREE {
            (Received::Event(event), None)
        } else {
            match self.memory.hold(size) {
                Ok(memory) => (Received::Event(event), Some(Arc::new(memory))),
                Err(_) => (Received::Lagged(1), None),
            }
        };
        let _ = self.channel.send(waiting);
    }

    /// Number of events that the slowest listener has not received yet.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.channel.len()
    }

    /// Reports to all listeners that this many events were lost.
    pub(crate) fn send_gap(&self, missed: u64) {
        let _ = self.channel.send((Received::Lagged(missed), None));
    }

    /// Returns a weak handle for subscribing.
    pub(crate) fn source(&self) -> EventSource {
        EventSource { channel: self.channel.downgrade(), memory: Arc::clone(&self.memory) }
    }

    /// Subscribes to all later events.
    #[must_use]
    pub fn listen(&self) -> EventReceiver {
        EventReceiver(self.channel.subscribe())
    }
}

/// A weak handle for subscribing: it does not keep the channel open, so receivers end when the last
/// sender is dropped.
#[derive(Debug)]
pub(crate) struct EventSource {
    channel: broadcast::WeakSender<Waiting>,
    memory: Arc<ByteBudget>,
}

impl EventSource {
    /// Subscribes to later events; the receiver ends immediately if the channel is closed.
    pub(crate) fn listen(&self) -> EventReceiver {
        match self.channel.upgrade() {
            Some(channel) => EventSender { channel, memory: Arc::clone(&self.memory) }.listen(),
            None => EventSender::new(1).listen(),
        }
    }
}

/// A subscription to events. Its buffer is bounded; lost events are reported.
#[derive(Debug)]
pub struct EventReceiver(broadcast::Receiver<Waiting>);

impl EventReceiver {
    /// Returns the next event, or `None` once the channel is closed. Cancel-safe.
    pub async fn next(&mut self) -> Option<Received> {
        match self.0.recv().await {
            Ok((received, _)) => Some(received),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn large_events_for_a_slow_listener_are_lost_when_they_take_too_much_memory() {
        let sender = EventSender::new(1_024);
        let (mut slow, mut quick) = (sender.listen(), sender.listen());
        let large = "x".repeat(MAX_WAITING / 8);
        for _ in 0..10 {
            sender.tell(Event::new("chat", &large).unwrap());
            quick.next().await.unwrap();
        }
        let mut lost = 0;
        for _ in 0..10 {
            lost += u64::from(matches!(slow.next().await, Some(Received::Lagged(1))));
        }
        assert!((3..10).contains(&lost), "{lost} of 10");
        assert_eq!(sender.memory.used(), 0, "all have received everything");
        sender.tell(Event::new("chat", &large).unwrap());
        assert!(matches!(slow.next().await, Some(Received::Event(_))));
    }
}
