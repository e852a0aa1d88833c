//! An authenticated connection: its requests and its events.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt as _;
use openclaw_budget::{BudgetSpent, ByteBudget, BytePermit, tree_bytes};
use openclaw_protocol::connect::{CancelParams, CancelResult};
use openclaw_protocol::frame::{self, Frame};
use openclaw_protocol::socket::{Socket, SocketError};
use openclaw_protocol::{
    ErrorShape, Event, EventReceiver, Method, Received, Shutdown, Tick, params_of,
};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet, unconstrained};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout_at};

use super::handshake::Admitted;
use super::listener::Ending;
use super::{EarlyResponse, Endpoint, RequestOptions, SocketLimits};
use crate::clock::now_ms;
use crate::tokens::TokenInUse;

/// Timeout for closing a connection.
pub(super) const GOODBYE: Duration = Duration::from_secs(2);
/// After this many ticks without any received data the connection is lost.
const SILENT_TICKS: u32 = 2;

/// Serves a caller until it disconnects or the gateway stops.
pub(super) async fn serve(
    socket: Socket,
    admitted: Admitted,
    limits: &SocketLimits,
    ending: &Ending,
) {
    let Admitted { surface, token, budget } = admitted;
    let events = surface.events();
    surface.sends_through(socket.backlog());
    // A response is queued while less than `pause` is waiting, so this much always fits.
    let most = limits.send.bytes - limits.send.pause.min(limits.send.bytes / 2);
    let mut connection = Connection {
        socket,
        surface,
        token,
        events,
        seq: 0,
        most,
        budget,
        answers: JoinSet::new(),
        early: mpsc::channel(limits.requests.max(1)),
        under_way: HashMap::new(),
    };
    let end = connection.run(limits, ending).await;
    let Connection { socket, answers, surface, events, .. } = connection;
    // Requests that cannot be answered any more are cancelled.
    drop((answers, events, surface));
    match end {
        End::Stopping => socket.close(1012, "service restart", GOODBYE).await,
        End::Revoked => socket.close(1008, "token revoked", GOODBYE).await,
        End::Late => socket.close(1008, "message takes too long", GOODBYE).await,
        End::NoFrame => socket.close(1008, "invalid frame", GOODBYE).await,
        End::Socket(broken) => {
            tracing::debug!(reason = %broken, "connection closed");
            let code = broken.close_code().unwrap_or(1000);
            socket.close(code, &broken.to_string(), GOODBYE).await;
        }
    }
}

struct Connection {
    socket: Socket,
    surface: Arc<dyn Endpoint>,
    token: Option<TokenInUse>,
    events: EventReceiver,
    seq: u64,
    /// Maximum size of a response, in bytes.
    most: usize,
    /// The memory of the caller: what it sends, and what waits for it.
    budget: Arc<ByteBudget>,
    /// Pending requests.
    answers: JoinSet<Answered>,
    /// Texts of responses that another one follows: one per request at most.
    early: (mpsc::Sender<String>, mpsc::Receiver<String>),
    /// Aborts pending requests, by id.
    under_way: HashMap<String, AbortHandle>,
}

/// Why a connection ends.
enum End {
    Stopping,
    /// The access token was revoked.
    Revoked,
    /// The caller takes too long to send a message.
    Late,
    NoFrame,
    Socket(SocketError),
}

impl From<SocketError> for End {
    fn from(broken: SocketError) -> Self {
        Self::Socket(broken)
    }
}

impl Connection {
    async fn run(&mut self, limits: &SocketLimits, ending: &Ending) -> End {
        match self.converse(limits, ending).await {
            Ok(()) => self.finish(ending).await,
            Err(end) => end,
        }
    }

    /// Serves the connection until the gateway stops.
    async fn converse(&mut self, limits: &SocketLimits, ending: &Ending) -> Result<(), End> {
        let mut tick = interval_at(Instant::now() + limits.tick, limits.tick);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stopping = pin!(ending.begun());
        let (mut received, mut silent) = (0, 0);
        let mut can_hear = true;
        loop {
            // If the peer does not read, its requests are not read and its responses wait.
            let is_full = self.socket.is_full();
            let is_reading = !is_full && self.answers.len() < limits.requests;
            tokio::select! {
                biased;
                () = &mut stopping => return Ok(()),
                // Before the last response, and before the events that follow.
                Some(text) = self.early.1.recv(), if !is_full => self.socket.queue(text)?,
                Some(answer) = self.answers.join_next(), if !is_full => {
                    if let Ok(answered) = answer {
                        self.under_way.remove(&answered.id);
                        self.respond(answered)?;
                    }
                }
                heard = self.events.next(), if can_hear => match heard {
                    Some(heard) => self.tell(heard)?,
                    None => can_hear = false,
                },
                text = self.socket.next(is_reading) => {
                    if let Some(text) = text? {
                        self.take(text.as_str()).await?;
                    }
                }
                _ = tick.tick() => {
                    // While not reading, nothing can be received; writing has its own timeout.
                    let is_silent = is_reading && self.socket.received_bytes() == received;
                    silent = if is_silent { silent + 1 } else { 0 };
                    if silent > SILENT_TICKS {
                        return Err(SocketError::Lost(std::io::ErrorKind::TimedOut.into()).into());
                    }
                    if self.socket.receiving() > limits.sending {
                        return Err(End::Late);
                    }
                    received = self.socket.received_bytes();
                    self.check_token()?;
                    self.socket.ping()?;
                    self.send(&Event::new(Tick { ts: now_ms() }))?;
                }
            }
        }
    }

    /// Fails if the caller's access token was revoked.
    fn check_token(&mut self) -> Result<(), End> {
        match self.token.as_mut().is_none_or(TokenInUse::is_valid) {
            true => Ok(()),
            false => Err(End::Revoked),
        }
    }

    /// Handles a request: immediately if it is ready at the first poll, otherwise in a task.
    async fn take(&mut self, text: &str) -> Result<(), End> {
        let Ok(Frame::Request { id, method, params, trace }) = Frame::parse(text) else {
            return Err(End::NoFrame);
        };
        self.check_token()?;
        if method == Method::RequestCancel.name() {
            let text = self.cancel(&id, params.as_deref());
            return Ok(self.socket.queue(text)?);
        }
        let budget = Arc::clone(&self.budget);
        // Methods parse their parameters.
        let memory = match budget.hold(text.len().saturating_add(tree_bytes(text.as_bytes()))) {
            Ok(memory) => memory,
            Err(spent) => return Ok(self.socket.queue(refusal(&id, &method, spent))?),
        };
        let surface = Arc::clone(&self.surface);
        // Other methods have one response.
        let early = (method == Method::Agent.name())
            .then(|| EarlyResponse { id: id.clone(), queue: self.early.0.clone() });
        let options = RequestOptions { trace, early };
        let asked = Asked { id: id.clone(), method, params, options };
        let most = self.most;
        let mut answer = Box::pin(async move {
            let answered = answer(surface, asked, most, &budget).await;
            drop(memory);
            answered
        });
        match std::future::poll_fn(|cx| Poll::Ready(answer.as_mut().poll(cx))).await {
            Poll::Ready(answered) => self.respond(answered)?,
            Poll::Pending => {
                let handle = self.answers.spawn(answer);
                self.under_way.insert(id, handle);
            }
        }
        Ok(())
    }

    /// Cancels a request: its future is dropped, and it is not answered.
    fn cancel(&mut self, id: &str, params: Option<&RawValue>) -> String {
        let method = Method::RequestCancel.name();
        let outcome = params_of::<CancelParams>(method, params).and_then(|CancelParams { id }| {
            let handle = self.under_way.remove(&id);
            handle.iter().for_each(AbortHandle::abort);
            let cancelled = CancelResult { cancelled: handle.is_some() };
            to_raw_value(&cancelled).map_err(|error| ErrorShape::unavailable(error.to_string()))
        });
        response(id, method, outcome.as_ref().map(AsRef::as_ref))
    }

    /// Queues a response, or an error if it takes too much memory.
    fn respond(&mut self, answered: Answered) -> Result<(), SocketError> {
        let Answered { id, method, text, memory } = answered;
        // From here on, the socket counts it.
        drop(memory);
        match self.socket.queue(text) {
            Err(SocketError::Memory(spent)) => self.socket.queue(refusal(&id, &method, spent)),
            queued => queued,
        }
    }

    fn tell(&mut self, heard: Received) -> Result<(), SocketError> {
        match heard {
            Received::Event(event) => self.send(&event),
            // The caller detects the gap in the sequence numbers.
            Received::Lagged(missed) => {
                self.surface.lost_events(missed);
                self.seq += missed;
                Ok(())
            }
        }
    }

    fn send(&mut self, event: &Event) -> Result<(), SocketError> {
        let payload = match event.json() {
            Ok(payload) => payload,
            Err(error) => {
                tracing::error!(event = %event.event, %error, "cannot serialize an event");
                return Ok(());
            }
        };
        self.seq += 1;
        match frame::event(&event.event, Some(payload), Some(self.seq)) {
            Ok(text) => match self.socket.queue(text) {
                // As if it had lagged.
                Err(SocketError::Memory(_)) => {
                    self.surface.lost_events(1);
                    Ok(())
                }
                queued => queued,
            },
            Err(error) => Err(SocketError::Protocol(error.to_string())),
        }
    }

    /// Notifies the caller that the gateway stops, and sends the responses that complete in time.
    async fn finish(&mut self, ending: &Ending) -> End {
        // Earlier events come before the shutdown event.
        while let Some(Some(heard)) = unconstrained(self.events.next()).now_or_never() {
            if let Err(broken) = self.tell(heard) {
                return broken.into();
            }
        }
        let shutdown =
            Shutdown { reason: "gateway stopping".to_owned(), restart_expected_ms: None };
        if let Err(broken) = self.send(&Event::new(shutdown)) {
            return broken.into();
        }
        let drained = async {
            loop {
                let has_room = !self.socket.is_full();
                tokio::select! {
                    biased;
                    answer = self.answers.join_next(), if has_room => match answer {
                        Some(Ok(answered)) => self.respond(answered)?,
                        Some(Err(_)) => {}
                        None => return self.socket.flush().await,
                    },
                    room = self.socket.next(false) => drop(room?),
                }
            }
        };
        match timeout_at(ending.deadline(), drained).await {
            Ok(Err(broken)) => broken.into(),
            Ok(Ok(())) | Err(_) => End::Stopping,
        }
    }
}

/// A request of the caller.
struct Asked {
    id: String,
    method: String,
    params: Option<Box<RawValue>>,
    options: RequestOptions,
}

/// A response that was not queued yet.
struct Answered {
    /// The id of the request.
    id: String,
    method: String,
    text: String,
    memory: BytePermit,
}

/// The response to a request for which there is no memory.
fn refusal(id: &str, method: &str, spent: BudgetSpent) -> String {
    let error = ErrorShape::unavailable(spent.to_string());
    response(id, method, Err(&ErrorShape { retryable: Some(true), ..error }))
}

/// Answers a request. A panic in a method fails only that request.
async fn answer(
    surface: Arc<dyn Endpoint>,
    asked: Asked,
    most: usize,
    budget: &Arc<ByteBudget>,
) -> Answered {
    let Asked { id, method, params, options } = asked;
    let outcome = if method == Method::Connect.name() {
        Err(ErrorShape::invalid("`connect` is only valid as the first request"))
    } else {
        let asked = AssertUnwindSafe(surface.request_with(&method, params, options)).catch_unwind();
        asked.await.unwrap_or_else(|_| {
            tracing::error!(method, "method panicked");
            Err(ErrorShape::unavailable(format!("`{method}` failed unexpectedly")))
        })
    };
    let text = response(&id, &method, outcome.as_ref().map(AsRef::as_ref));
    if text.len() <= most {
        return match budget.hold(text.len()) {
            Ok(memory) => Answered { id, method, text, memory },
            Err(spent) => {
                let text = refusal(&id, &method, spent);
                Answered { id, method, text, memory: budget.permit() }
            }
        };
    }
    let (size, most) = (text.len() / 1024, most / 1024);
    let message =
        format!("the response has {size} KB; at most {most} KB are allowed, request less");
    let error = ErrorShape { retryable: None, ..ErrorShape::unavailable(message) };
    let text = response(&id, &method, Err(&error));
    Answered { id, method, text, memory: budget.permit() }
}

fn response(id: &str, method: &str, outcome: Result<&RawValue, &ErrorShape>) -> String {
    frame::response(id, outcome).unwrap_or_else(|error| {
        tracing::error!(method, %error, "cannot serialize a response");
        String::new()
    })
}
