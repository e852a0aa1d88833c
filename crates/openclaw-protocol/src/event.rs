//! Events: unsolicited, ordered messages of a gateway.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

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

/// The payload of an event that a gateway sends. Its type determines the name of the event.
pub trait EventPayload: Serialize + fmt::Debug + Send + Sync + 'static {
    /// Event name.
    const NAME: &'static str;

    /// Returns about how many bytes its texts and its JSON take: this counts in the memory of events
    /// that wait for slow listeners. 0 if they are always short.
    fn size(&self) -> usize;
}

/// An event. Cheap to clone, for any number of listeners.
#[derive(Debug, Clone)]
pub struct Event {
    /// Event name.
    pub event: Cow<'static, str>,
    /// Sequence number on the receiving connection; `None` when sending.
    pub seq: Option<u64>,
    payload: Payload,
}

#[derive(Debug, Clone)]
enum Payload {
    /// It came through a socket.
    Json(Arc<RawValue>),
    /// It was made in this process.
    Value(Arc<Shared<dyn AnyPayload>>),
}

/// A payload for all listeners, and its JSON as soon as one of them needs it.
#[derive(Debug)]
struct Shared<T: ?Sized> {
    json: OnceLock<Box<RawValue>>,
    value: T,
}

/// An [`EventPayload`] of any type.
trait AnyPayload: Any + fmt::Debug + Send + Sync {
    fn bytes(&self) -> usize;
    fn to_json(&self) -> Result<Box<RawValue>, serde_json::Error>;
}

impl<T: EventPayload> AnyPayload for T {
    fn bytes(&self) -> usize {
        self.size()
    }

    fn to_json(&self) -> Result<Box<RawValue>, serde_json::Error> {
        to_raw_value(self)
    }
}

impl Event {
    /// Creates an event of this process. Nothing is serialized until a socket needs it.
    #[must_use]
    pub fn new<T: EventPayload>(payload: T) -> Self {
        let shared = Arc::new(Shared { json: OnceLock::new(), value: payload });
        Self { event: Cow::Borrowed(T::NAME), seq: None, payload: Payload::Value(shared) }
    }

    /// Creates an event from JSON.
    #[must_use]
    pub fn from_json(event: impl Into<Cow<'static, str>>, payload: Box<RawValue>) -> Self {
        Self { event: event.into(), seq: None, payload: Payload::Json(payload.into()) }
    }

    /// Returns the payload as JSON. It is serialized once for all listeners.
    ///
    /// # Errors
    /// If the payload cannot be serialized.
    pub fn json(&self) -> Result<&RawValue, serde_json::Error> {
        let shared = match &self.payload {
            Payload::Json(json) => return Ok(json),
            Payload::Value(shared) => shared,
        };
        if let Some(json) = shared.json.get() {
            return Ok(json);
        }
        let json = shared.value.to_json()?;
        Ok(shared.json.get_or_init(|| json))
    }

    /// Returns the payload; `None` if it is of another type. Only what came through a socket is
    /// parsed.
    #[must_use]
    pub fn read<T: EventPayload + DeserializeOwned + Clone>(&self) -> Option<T> {
        match &self.payload {
            _ if self.event != T::NAME => None,
            Payload::Json(json) => serde_json::from_str(json.get()).ok(),
            Payload::Value(shared) => (&shared.value as &dyn Any).downcast_ref().cloned(),
        }
    }

    fn size(&self) -> usize {
        match &self.payload {
            Payload::Json(json) => json.get().len(),
            Payload::Value(shared) => shared.value.bytes(),
        }
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
        let size = event.size();
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
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde::Serializer;

    use super::*;

    /// How often a [`Counted`] was serialized.
    static SERIALIZED: AtomicUsize = AtomicUsize::new(0);

    #[derive(Debug, Clone, PartialEq, Deserialize)]
    struct Counted(String);

    impl Serialize for Counted {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            SERIALIZED.fetch_add(1, Ordering::Relaxed);
            self.0.serialize(serializer)
        }
    }

    impl EventPayload for Counted {
        const NAME: &'static str = names::CHAT;

        fn size(&self) -> usize {
            self.0.len()
        }
    }

    #[tokio::test]
    async fn large_events_for_a_slow_listener_are_lost_when_they_take_too_much_memory() {
        let large = "x".repeat(MAX_WAITING / 8 + 1);
        let json = Event::from_json(names::CHAT, to_raw_value(&large).unwrap());
        for event in [json, Event::new(Counted(large))] {
            let sender = EventSender::new(1_024);
            let (mut slow, mut quick) = (sender.listen(), sender.listen());
            for _ in 0..10 {
                sender.tell(event.clone());
                quick.next().await.unwrap();
            }
            let mut lost = 0;
            for _ in 0..10 {
                lost += u64::from(matches!(slow.next().await, Some(Received::Lagged(1))));
            }
            assert!((3..10).contains(&lost), "{lost} of 10");
            assert_eq!(sender.memory.used(), 0, "all have received everything");
            sender.tell(event);
            assert!(matches!(slow.next().await, Some(Received::Event(_))));
        }
    }

    #[test]
    fn a_payload_is_serialized_once_for_all_sockets_and_never_in_process() {
        let event = Event::new(Counted("hi".to_owned()));
        let copy = event.clone();
        assert_eq!(event.event, names::CHAT);
        assert_eq!(copy.read(), Some(Counted("hi".to_owned())));
        assert_eq!(copy.read::<Tick>(), None);
        assert_eq!(SERIALIZED.load(Ordering::Relaxed), 0);
        for event in [event, copy] {
            assert_eq!(event.json().unwrap().get(), "\"hi\"");
        }
        assert_eq!(SERIALIZED.load(Ordering::Relaxed), 1);
    }
}
