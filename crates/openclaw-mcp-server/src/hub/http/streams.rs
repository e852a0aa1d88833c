//! The stream of a call: what happens during it, and its reply. A client with a session that loses its
//! connection, or is asked to come back later, requests the rest of the stream by the id of the last
//! event that it has received.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body::Frame;
use http_body_util::StreamBody;
use openclaw_budget::{BudgetSpent, ByteBudget, BytePermit, FREE};
use tokio::sync::watch;
use tokio::time::timeout;

use super::HubBody;
use crate::front::memory::counted;

/// With this many events, or bytes of them, that wait for a client that does not read, notifications are
/// dropped.
const MAX_WAITING: usize = 16;
const MAX_WAITING_BYTES: usize = 1024 * 1024;
/// The memory that a stream takes, with the call that it belongs to.
const STREAM: usize = 4 * 1024;
/// How many events are kept after they were sent, and how many bytes of them.
const MAX_KEPT: (usize, usize) = (16, 256 * 1024);
/// How long a call goes on without a connection to its client, and its last events are kept.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// When a client requests the rest, unless a server wants another delay.
const RETRY: Duration = Duration::from_secs(1);
const PREFIX: &str = "call-";

/// The stream of a call.
#[derive(Debug)]
pub(super) struct CallStream {
    /// Its number in the session; without one it cannot be resumed.
    number: Option<u64>,
    state: watch::Sender<State>,
    /// The memory of the client.
    budget: Arc<ByteBudget>,
}

#[derive(Debug)]
struct State {
    /// The kept events, and those that wait.
    events: VecDeque<Bytes>,
    /// The number of the first of them.
    first: u64,
    /// The number of the first event that was not sent.
    unsent: u64,
    /// The connection that reads: the newest.
    reader: u64,
    is_read: bool,
    is_over: bool,
    /// How long the client is to wait until it requests the rest, if it is.
    paused: Option<Duration>,
    /// The size of the small events: a large one counts itself.
    bytes: usize,
    /// The memory of the stream with its small events.
    memory: BytePermit,
}

/// The size of a small event; zero for a large one.
fn small(event: &Bytes) -> usize {
    if event.len() <= FREE { event.len() } else { 0 }
}

impl State {
    fn new(memory: BytePermit) -> Self {
        Self {
            events: VecDeque::new(),
            first: 0,
            unsent: 0,
            reader: 0,
            is_read: false,
            is_over: false,
            paused: None,
            bytes: 0,
            memory,
        }
    }

    /// Adds an event.
    fn add(&mut self, event: Bytes) -> Result<(), BudgetSpent> {
        let bytes = self.bytes + small(&event);
        self.memory.resize_exactly(STREAM + bytes)?;
        self.bytes = bytes;
        self.events.push_back(event);
        Ok(())
    }

    fn event(&self, number: u64) -> Option<&Bytes> {
        self.events.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// Whether a connection has something to do.
    fn is_ready(&self, reader: u64, number: u64) -> bool {
        self.reader != reader || self.is_over || self.paused.is_some() || number < self.end()
    }

    /// Takes an event for a connection; `None` if there will be no further event for it.
    fn take(&mut self, reader: u64, number: u64) -> Option<Bytes> {
        let event = self.event(number).filter(|_| self.reader == reader).cloned()?;
        self.unsent = self.unsent.max(number + 1);
        let (most, most_bytes) = MAX_KEPT;
        let kept = usize::try_from(self.unsent - self.first).unwrap_or(usize::MAX);
        let mut bytes: usize = self.events.iter().take(kept).map(Bytes::len).sum();
        for count in (1..=kept).rev() {
            if count <= most && bytes <= most_bytes {
                break;
            }
            if let Some(event) = self.events.pop_front() {
                bytes -= event.len();
                self.bytes -= small(&event);
            }
            self.first += 1;
        }
        // Less than before.
        let _ = self.memory.resize_exactly(STREAM + self.bytes);
        Some(event)
    }
}

impl CallStream {
    /// Creates a stream: with a number if it can be resumed. If it `is_primed`, its first event is an
    /// empty one, so that the client has an id before anything happens.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(super) fn new(
        number: Option<u64>,
        is_primed: bool,
        budget: &Arc<ByteBudget>,
    ) -> Result<Arc<Self>, BudgetSpent> {
        let state = State::new(budget.hold_exactly(STREAM)?);
        let stream = Self { number, state: watch::Sender::new(state), budget: Arc::clone(budget) };
        if is_primed {
            stream.append(&format!("retry: {}\ndata: \n\n", RETRY.as_millis()).into_bytes())?;
        }
        Ok(Arc::new(stream))
    }

    pub(super) fn number(&self) -> Option<u64> {
        self.number
    }

    pub(super) fn is_over(&self) -> bool {
        self.state.borrow().is_over
    }

    /// Adds a message that the client needs.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(super) fn push(&self, message: &[u8]) -> Result<(), BudgetSpent> {
        self.append(&[b"event: message\ndata: ", message, b"\n\n"].concat())
    }

    /// Adds a notification. It is dropped while too many events wait for the client: waiting would keep
    /// the result of the call in memory that nothing counts.
    pub(super) fn offer(&self, message: &[u8]) {
        let has_room = {
            let state = self.state.borrow();
            state.end() - state.unsent < MAX_WAITING as u64 && state.bytes < MAX_WAITING_BYTES
        };
        if has_room {
            // Dropped without memory, too.
            let _ = self.push(message);
        }
    }

    /// Closes the connection: the client requests the rest after this time.
    pub(super) fn pause(&self, retry: Duration) {
        // Without memory for it, the client waits for the usual time.
        let _ = self.append(&format!("retry: {}\ndata: \n\n", retry.as_millis()).into_bytes());
        self.state.send_modify(|state| state.paused = Some(retry));
    }

    /// Ends the stream.
    pub(super) fn end(&self) {
        self.state.send_modify(|state| state.is_over = true);
    }

    fn append(&self, event: &[u8]) -> Result<(), BudgetSpent> {
        let mut added = Ok(());
        self.state.send_modify(|state| {
            let id = self.number.map(|number| format!("id: {PREFIX}{number}-{}\n", state.end()));
            let event = [id.unwrap_or_default().as_bytes(), event].concat();
            added = counted(&self.budget, event).and_then(|event| state.add(event));
        });
        added
    }

    /// Waits until the call is not worth continuing: no client has read the stream for long, or
    /// at all if it cannot be resumed.
    pub(super) async fn abandoned(&self) {
        let mut changes = self.state.subscribe();
        loop {
            let patience = match changes.wait_for(|state| !state.is_read).await {
                Ok(state) => PATIENCE + state.paused.unwrap_or_default(),
                Err(_) => return,
            };
            if self.number.is_none()
                || timeout(patience, changes.wait_for(|state| state.is_read)).await.is_err()
            {
                return;
            }
        }
    }

    /// The body of a response with all events.
    pub(super) fn body(self: &Arc<Self>) -> HubBody {
        self.read_from(0)
    }

    /// The body of a response with the events after this one; `None` if they are no longer kept.
    pub(super) fn resumed(self: &Arc<Self>, last: u64) -> Option<HubBody> {
        let next = last.checked_add(1)?;
        let is_kept = |state: &State| (state.first..=state.end()).contains(&next);
        let is_kept = is_kept(&self.state.borrow());
        is_kept.then(|| self.read_from(next))
    }

    fn read_from(self: &Arc<Self>, next: u64) -> HubBody {
        let mut number = 0;
        self.state.send_modify(|state| {
            state.reader += 1;
            state.is_read = true;
            state.paused = None;
            number = state.reader;
        });
        let changes = self.state.subscribe();
        let reader = Reader { stream: Arc::clone(self), changes, number, next };
        let frames = stream::unfold(reader, |mut reader| async move {
            Some((Ok::<_, Infallible>(Frame::data(reader.next().await?)), reader))
        });
        HubBody::stream(StreamBody::new(frames))
    }
}

/// A connection that reads a stream.
struct Reader {
    stream: Arc<CallStream>,
    changes: watch::Receiver<State>,
    number: u64,
    next: u64,
}

impl Reader {
    async fn next(&mut self) -> Option<Bytes> {
        let (number, next) = (self.number, self.next);
        self.changes.wait_for(|state| state.is_ready(number, next)).await.ok()?;
        let mut event = None;
        self.stream.state.send_modify(|state| event = state.take(number, next));
        self.next += 1;
        event
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.stream.state.send_if_modified(|state| {
            let is_newest = state.reader == self.number;
            state.is_read &= !is_newest;
            is_newest
        });
    }
}

/// Returns the number of the stream and of the event with this id, if it is one of ours.
pub(super) fn of_event(id: &str) -> Option<(u64, u64)> {
    let (stream, event) = id.strip_prefix(PREFIX)?.split_once('-')?;
    Some((stream.parse().ok()?, event.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use http_body_util::BodyExt as _;

    use super::*;

    /// Returns the next event of a body that has one; `None` at its end.
    fn next(body: &mut HubBody) -> Option<String> {
        let frame = body.frame().now_or_never().expect("it does not wait")?;
        Some(String::from_utf8(frame.unwrap().into_data().unwrap().to_vec()).unwrap())
    }

    fn open(number: Option<u64>, is_primed: bool) -> Arc<CallStream> {
        CallStream::new(number, is_primed, &ByteBudget::new(usize::MAX)).unwrap()
    }

    fn waits(body: &mut HubBody) -> bool {
        body.frame().now_or_never().is_none()
    }

    #[tokio::test]
    async fn a_stream_is_resumed_after_the_last_event_that_was_received() {
        let stream = open(Some(3), true);
        let mut first = stream.body();
        assert_eq!(next(&mut first).unwrap(), "id: call-3-0\nretry: 1000\ndata: \n\n");
        stream.push(b"1").unwrap();
        stream.push(b"2").unwrap();
        let event =
            |number: u64| format!("id: call-3-{number}\nevent: message\ndata: {number}\n\n");
        assert_eq!(next(&mut first).unwrap(), event(1));
        assert_eq!(next(&mut first).unwrap(), event(2));
        assert!(waits(&mut first));
        let mut second = stream.resumed(1).unwrap();
        assert_eq!(next(&mut first), None, "the newer connection reads");
        drop(first);
        assert_eq!(next(&mut second).unwrap(), event(2));
        stream.push(b"3").unwrap();
        stream.end();
        assert_eq!(next(&mut second).unwrap(), event(3));
        assert_eq!(next(&mut second), None);
        assert!(stream.resumed(9).is_none() && stream.resumed(u64::MAX).is_none());
        assert_eq!(next(&mut stream.resumed(2).unwrap()).unwrap(), event(3));
        assert_eq!(next(&mut stream.resumed(3).unwrap()), None);
        assert_eq!(of_event("call-3-12"), Some((3, 12)));
        assert!(["", "3-12", "call-3", "call-x-1", "0/1"].iter().all(|id| of_event(id).is_none()));
    }

    #[tokio::test]
    async fn a_pause_closes_the_connection_and_the_next_one_reads_on() {
        let stream = open(Some(1), false);
        let mut first = stream.body();
        stream.pause(Duration::from_millis(500));
        assert_eq!(next(&mut first).unwrap(), "id: call-1-0\nretry: 500\ndata: \n\n");
        assert_eq!(next(&mut first), None);
        drop(first);
        let mut second = stream.resumed(0).unwrap();
        assert!(waits(&mut second));
        stream.push(b"{}").unwrap();
        assert_eq!(next(&mut second).unwrap(), "id: call-1-1\nevent: message\ndata: {}\n\n");
    }

    #[tokio::test]
    async fn events_are_bounded_whether_they_wait_or_are_kept() {
        let stream = open(Some(1), false);
        let mut body = stream.body();
        for _ in 0..MAX_WAITING + 3 {
            stream.offer(b"x");
        }
        assert_eq!(stream.state.borrow().end(), MAX_WAITING as u64, "notifications are dropped");
        for _ in 0..MAX_WAITING {
            next(&mut body).unwrap();
        }
        stream.push(&vec![b'x'; MAX_KEPT.1]).unwrap();
        next(&mut body).unwrap();
        assert_eq!(stream.state.borrow().events.len(), 0, "the last one is too large to keep");
        assert!(stream.resumed(3).is_none());
        let mut body = stream.resumed(16).unwrap();
        for _ in 0..2 * MAX_KEPT.0 {
            stream.push(b"x").unwrap();
            next(&mut body).unwrap();
        }
        assert_eq!(stream.state.borrow().events.len(), MAX_KEPT.0);
    }

    #[tokio::test]
    async fn results_that_are_not_read_share_the_memory_of_their_client() {
        let budget = ByteBudget::new(1024 * 1024);
        let streams = [1, 2].map(|number| CallStream::new(Some(number), false, &budget).unwrap());
        let large = vec![b'x'; 600 * 1024];
        streams[0].push(&large).unwrap();
        assert!(streams[1].push(&large).is_err(), "both together are too large");
        streams[1].push(b"small").unwrap();
        let mut body = streams[0].body();
        assert!(next(&mut body).unwrap().len() > large.len());
        streams[1].push(&large).expect("the first result was sent");
        drop((body, streams));
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_abandoned_when_its_client_stays_away() {
        let at_once = open(None, false);
        drop(at_once.body());
        at_once.abandoned().now_or_never().expect("it cannot be resumed");
        let stream = open(Some(1), false);
        let body = stream.body();
        assert!(timeout(2 * PATIENCE, stream.abandoned()).await.is_err());
        drop(body);
        let mut abandoned = std::pin::pin!(stream.abandoned());
        assert!(timeout(PATIENCE / 2, &mut abandoned).await.is_err());
        let body = stream.body();
        assert!(timeout(2 * PATIENCE, &mut abandoned).await.is_err());
        drop(body);
        timeout(2 * PATIENCE, &mut abandoned).await.unwrap();
    }
}
