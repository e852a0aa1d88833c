//! The task that owns the socket: it sends requests and dispatches responses and events.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::foreign;
use super::pending::Pending;
use crate::event::{Event, EventSender};
use crate::frame::Frame;
use crate::socket::{Socket, SocketError};

/// Lower bound for the tick interval that a gateway announces.
const SHORTEST_TICK: Duration = Duration::from_millis(100);
/// The gateway is considered gone after this many intervals without a byte received.
const SILENT_TICKS: u32 = 3;

/// Where events go.
pub(super) struct Events {
    pub(super) sender: EventSender,
    /// Whether the gateway is of another program.
    pub(super) is_foreign: bool,
}

/// Runs until the connection is lost; then all pending requests fail.
pub(super) async fn run(
    socket: Socket,
    outbox: mpsc::Receiver<String>,
    pending: Arc<Pending>,
    events: Events,
    tick: Duration,
) {
    // Pending requests fail even if this task is aborted.
    let told = LoseOnDrop(pending);
    let broken = serve(socket, outbox, &told.0, &events, tick.max(SHORTEST_TICK)).await;
    tracing::debug!(reason = %broken, "connection to the gateway closed");
}

struct LoseOnDrop(Arc<Pending>);

impl Drop for LoseOnDrop {
    fn drop(&mut self) {
        self.0.lose();
    }
}

async fn serve(
    mut socket: Socket,
    mut outbox: mpsc::Receiver<String>,
    pending: &Pending,
    events: &Events,
    tick: Duration,
) -> SocketError {
    let mut watch = interval(tick);
    watch.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut received, mut silent) = (0, 0);
    let mut last_seq = None;
    loop {
        // While the socket is full, requests stay in the channel.
        let has_room = !socket.is_full();
        let happened = tokio::select! {
            biased;
            Some(text) = outbox.recv(), if has_room => socket.queue(text),
            text = socket.next(true) => text.map(|text| {
                if let Some(text) = text {
                    take(text.as_str(), pending, events, &mut last_seq);
                }
            }),
            _ = watch.tick() => {
                silent = if socket.received_bytes() == received { silent + 1 } else { 0 };
                received = socket.received_bytes();
                if silent >= SILENT_TICKS { Err(SocketError::Slow) } else { Ok(()) }
            }
        };
        if let Err(broken) = happened {
            return broken;
        }
    }
}

fn take(text: &str, pending: &Pending, events: &Events, last_seq: &mut Option<u64>) {
    match Frame::parse(text) {
        Ok(Frame::Response { id, outcome }) => {
            pending.answer(&id, outcome.map(|payload| payload.unwrap_or_else(null)));
        }
        Ok(Frame::Event { event, payload, seq }) => {
            // A gap means that the gateway dropped events for this client.
            if let (Some(last), Some(seq)) = (*last_seq, seq)
                && seq > last + 1
            {
                events.sender.send_gap(seq - last - 1);
            }
            *last_seq = seq.or(*last_seq);
            let payload = payload.unwrap_or_else(null);
            let (event, payload) = match events.is_foreign {
                true => foreign::event(event, payload),
                false => (event, payload),
            };
            let mut event = Event::from_json(event, payload);
            event.seq = seq;
            events.sender.tell(event);
        }
        Ok(Frame::Request { method, .. }) => {
            tracing::warn!(method, "ignored a request from the gateway");
        }
        Err(error) => tracing::warn!(%error, "the gateway sent an invalid frame"),
    }
}

fn null() -> Box<RawValue> {
    RawValue::NULL.to_owned()
}
