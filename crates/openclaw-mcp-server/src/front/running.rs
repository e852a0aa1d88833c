//! A call that can be asked about while it runs: its future, if it needs one, and what happens
//! meanwhile. If its client answers a question with another request (2026-07-28), it waits for that.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use openclaw_budget::{ByteBudget, BytePermit};
use openclaw_tools::{Progress, ProgressWatcher, StartedCall};
use rmcp::model::{CustomNotification, ServerNotification};
use rmcp::service::{Peer, RoleServer};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use super::connection::ClientConnection;
use super::events::{CallEvent, CallEvents};
use super::incoming::{CallRequest, ModernRequest};
use super::reply::{BUSY, HubReply, INVALID_PARAMS, ReplyTo};
use crate::input::parked::{Parked, take_input};
use crate::input::state::{Continues, StateOrigin, StateSeal, UNKNOWN_STATE};
use crate::input::{ClientAnswer, ClientQuestion, ask_peer};

/// The method of calls.
pub(crate) const CALL: &str = "tools/call";

/// The memory that a parked call counts at least: so a client cannot take the places of all others.
const PARKED: usize = 1024 * 1024;

/// A client that makes calls.
pub(crate) trait CallingClient: Send + Sync + Sized + 'static {
    /// Its number, which is part of its states.
    fn number(&self) -> u64;

    /// What is known of it, and the way to it.
    fn connection(&self) -> &ClientConnection;

    /// The memory of its principal.
    fn budget(&self) -> &Arc<ByteBudget>;

    /// The calls that wait for input, also those of other clients.
    fn waiting(&self) -> &WaitingCalls<Self>;

    /// Whether the calls of another client are its own, too.
    fn owns_calls_of(&self, other: &Self) -> bool;

    /// Starts a call that is asked by its events.
    fn start(self: &Arc<Self>, request: CallRequest) -> RunningCall<Self>;

    /// A request of it, which states belong to.
    fn origin<'a>(&self, method: &'a str, target: &'a str, arguments: &'a str) -> StateOrigin<'a> {
        StateOrigin { client: self.number(), method, target, arguments }
    }

    /// The client of a request, for its reply.
    fn reply_to<'a>(&'a self, method: &'a str, request: &'a CallRequest) -> ReplyTo<'a> {
        let CallRequest { name, arguments, modern, .. } = request;
        match modern {
            Some(_) => {
                ReplyTo::Modern(&self.waiting().seal, self.origin(method, name, arguments.get()))
            }
            None => ReplyTo::Legacy,
        }
    }

    /// Opens the state that a request brings along: returns the parked call that it continues, or adds
    /// the server's own state to it. A request without one continues nothing here.
    ///
    /// # Errors
    /// The reply, if the state is not one for this request.
    fn opened(
        &self,
        modern: &mut ModernRequest,
        origin: StateOrigin<'_>,
    ) -> Result<Option<RunningCall<Self>>, HubReply> {
        let Some(state) = &modern.state else { return Ok(None) };
        let refused = || HubReply::error(INVALID_PARAMS, UNKNOWN_STATE);
        let WaitingCalls { calls, seal } = self.waiting();
        match seal.open(state, origin).ok_or_else(refused)? {
            Continues::Parked(id) => {
                let parked = calls.take(&id, |call| self.owns_calls_of(&call.client));
                parked.map(Some).ok_or_else(refused)
            }
            Continues::Server(state) => {
                modern.continues(&state);
                Ok(None)
            }
        }
    }
}

/// The calls that wait for input, and what seals the states by which their clients continue them.
pub(crate) struct WaitingCalls<C> {
    calls: Parked<RunningCall<C>>,
    pub(crate) seal: StateSeal,
}

impl<C> Default for WaitingCalls<C> {
    fn default() -> Self {
        Self { calls: Parked::default(), seal: StateSeal::default() }
    }
}

impl<C> WaitingCalls<C> {
    /// Cancels the calls of these clients.
    pub(crate) fn cancel(&self, mut is_meant: impl FnMut(&C) -> bool) {
        drop(self.calls.take_all(|call| is_meant(&call.client)));
    }
}

/// A call in progress.
pub(crate) struct RunningCall<C> {
    client: Arc<C>,
    work: Work,
    events: CallEvents,
    /// The reports of its progress.
    reports: Option<watch::Receiver<Option<Progress>>>,
    /// The token of progress notifications as JSON, if the client wants them.
    token: Option<String>,
    /// Pauses of the server, if the client can be asked to come back later.
    pauses: Option<watch::Receiver<Option<Duration>>>,
    /// What the client is asked, and where its answer goes.
    asked: Option<(ClientQuestion, oneshot::Sender<ClientAnswer>)>,
    /// The memory of the request.
    memory: BytePermit,
    /// The size of the request.
    bytes: usize,
    /// The method and the request, for a call of a future.
    request: Option<(&'static str, Arc<CallRequest>)>,
}

/// What is watched during a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watched {
    /// Progress, if the request wants it.
    AsRequested,
    /// Progress, also for a request that continues the call.
    Progress,
    /// Progress, and pauses of the server.
    ProgressAndPauses,
}

/// What makes the reply.
enum Work {
    /// A future.
    Future(BoxFuture<'static, HubReply>),
    /// A call that was started without one: its reply is an event.
    Started(CancelOnDrop),
}

/// Cancels a call when it is dropped, unless it is over.
struct CancelOnDrop(Option<StartedCall>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(call) = &self.0 {
            call.cancel();
        }
    }
}

/// What happened to a call.
pub(crate) enum CallStep {
    /// It is over.
    Done(HubReply),
    /// The client is asked.
    Ask(ClientQuestion, oneshot::Sender<ClientAnswer>),
    /// A notification: its method and parameters.
    Tell(&'static str, Value),
    /// The server has closed the stream of its response for this time.
    Pause(Duration),
    /// It was cancelled.
    Cancelled,
}

impl<C: CallingClient> RunningCall<C> {
    /// A call whose reply is that of the future that `make` returns.
    pub(crate) fn new(
        client: &Arc<C>,
        request: CallRequest,
        events: CallEvents,
        watched: Watched,
        make: impl FnOnce(Arc<CallRequest>, Option<ProgressWatcher>) -> BoxFuture<'static, HubReply>,
    ) -> Self {
        let (mut watcher, reports) = ProgressWatcher::channel();
        let token = request.progress.clone();
        let is_watched = token.is_some() || watched != Watched::AsRequested;
        let pauses = (watched == Watched::ProgressAndPauses).then(|| watcher.receive_pauses());
        let bytes = request.bytes();
        let request = Arc::new(request);
        let (memory, future) = match client.budget().hold_exactly(bytes) {
            Ok(memory) => (memory, make(Arc::clone(&request), is_watched.then_some(watcher))),
            Err(spent) => (client.budget().permit(), Box::pin(ready(HubReply::busy(spent))) as _),
        };
        Self {
            reports: is_watched.then_some(reports),
            token,
            pauses,
            bytes,
            request: Some((CALL, request)),
            ..Self::with(client, Work::Future(future), events, memory)
        }
    }

    fn with(client: &Arc<C>, work: Work, events: CallEvents, memory: BytePermit) -> Self {
        Self {
            client: Arc::clone(client),
            work,
            events,
            reports: None,
            token: None,
            pauses: None,
            asked: None,
            memory,
            bytes: 0,
            request: None,
        }
    }

    /// The client that it is made for.
    pub(crate) fn client(&self) -> &Arc<C> {
        &self.client
    }

    /// Starts or continues a call of a client since 2026-07-28.
    ///
    /// # Errors
    /// The reply, if the request does not continue what it names, or lacks input.
    pub(crate) fn answered(client: &Arc<C>, mut request: CallRequest) -> Result<Self, HubReply> {
        match Self::continuing(client, CALL, &mut request)? {
            Some(parked) => Ok(parked),
            None => Ok(client.start(request)),
        }
    }

    /// Makes a call of a client since 2026-07-28, up to its reply or a question.
    pub(crate) fn answer(client: &Arc<C>, request: CallRequest) -> BoxFuture<'static, HubReply> {
        match Self::answered(client, request) {
            Ok(running) => Box::pin(running.until_asked()),
            Err(reply) => Box::pin(ready(reply)),
        }
    }

    /// Like [`answered`](Self::answered), for another request, which this function makes: it returns the
    /// future of the reply, and the events meanwhile. Only since 2026-07-28 does one continue another.
    ///
    /// # Errors
    /// The reply, if the request does not continue what it names, or lacks input.
    pub(crate) fn forwarded(
        client: &Arc<C>,
        method: &'static str,
        mut request: CallRequest,
        forward: impl FnOnce(Arc<CallRequest>) -> (BoxFuture<'static, HubReply>, CallEvents),
    ) -> Result<Self, HubReply> {
        if let Some(parked) = Self::continuing(client, method, &mut request)? {
            return Ok(parked);
        }
        let request = Arc::new(request);
        let (future, events) = forward(Arc::clone(&request));
        // `rmcp` has counted it.
        let memory = client.budget().permit();
        Ok(Self {
            request: Some((method, request)),
            ..Self::with(client, Work::Future(future), events, memory)
        })
    }

    /// Opens the state of a request, and returns the parked call that it continues, if it does.
    fn continuing(
        client: &C,
        method: &str,
        request: &mut CallRequest,
    ) -> Result<Option<Self>, HubReply> {
        let CallRequest { name, arguments, modern, progress, .. } = request;
        let Some(modern) = modern else { return Ok(None) };
        let origin = client.origin(method, name, arguments.get());
        let Some(mut parked) = client.opened(modern, origin)? else { return Ok(None) };
        parked.token = progress.take();
        parked.continued(&mut modern.responses).map(Some)
    }

    /// A call that was started without a future; its reply is an event.
    pub(crate) fn started(client: &Arc<C>, call: StartedCall, events: CallEvents) -> Self {
        let work = Work::Started(CancelOnDrop(Some(call)));
        Self::with(client, work, events, client.budget().permit())
    }

    /// Waits for the next thing that happens. Safe to cancel.
    pub(crate) async fn step(&mut self) -> CallStep {
        let call = match &mut self.work {
            Work::Future(call) => call,
            Work::Started(CancelOnDrop(call)) => {
                let event = self.events.next().await;
                if matches!(event, CallEvent::Over(Some(_))) {
                    *call = None;
                }
                return event.into();
            }
        };
        // In this order, so that what happened before the end is sent before it.
        tokio::select! {
            biased;
            event = self.events.next() => event.into(),
            Some(params) = reported(&mut self.reports, self.token.as_deref()) => {
                CallStep::Tell("notifications/progress", params)
            }
            Some(retry) = paused(&mut self.pauses) => CallStep::Pause(retry),
            reply = call => CallStep::Done(reply),
        }
    }

    /// Runs the call of a client that is asked through `rmcp`.
    pub(crate) async fn through_peer(mut self, peer: &Peer<RoleServer>) -> HubReply {
        loop {
            match self.step().await {
                CallStep::Done(reply) => return reply,
                CallStep::Tell(method, params) => {
                    let notification = CustomNotification::new(method, Some(params));
                    let notification = ServerNotification::CustomNotification(notification);
                    let _ = peer.send_notification(notification).await;
                }
                CallStep::Ask(question, answer) => {
                    let _ = answer.send(ask_peer(peer, question).await);
                }
                CallStep::Pause(_) => {}
                CallStep::Cancelled => return HubReply::cancelled(),
            }
        }
    }

    /// Runs the call of a client that answers questions with another request. Such a question is
    /// the reply, and the call waits for the next request.
    pub(crate) async fn until_asked(mut self) -> HubReply {
        loop {
            match self.step().await {
                CallStep::Done(reply) => return reply,
                CallStep::Tell(method, params) => self.client.connection().notify(method, params),
                CallStep::Ask(question, answer) => return self.parked(&question, answer),
                CallStep::Pause(_) => {}
                CallStep::Cancelled => return HubReply::cancelled(),
            }
        }
    }

    /// Parks the call until its client sends the answer to a question. Returns the result that asks
    /// for it.
    pub(crate) fn parked(
        mut self,
        question: &ClientQuestion,
        answer: oneshot::Sender<ClientAnswer>,
    ) -> HubReply {
        self.asked = Some((question.clone(), answer));
        let client = Arc::clone(&self.client);
        let request = self.request.clone();
        // It waits for minutes.
        if let Err(spent) = self.memory.resize_exactly(self.bytes.max(PARKED)) {
            return HubReply::busy(spent);
        }
        let state = request.and_then(|(method, request)| {
            let origin = client.origin(method, &request.name, request.arguments.get());
            let WaitingCalls { calls, seal } = client.waiting();
            seal.seal(&Continues::Parked(calls.park(self)?), origin)
        });
        match state {
            Some(state) => HubReply::asking(question, &state),
            None => HubReply::error(BUSY, "too many calls wait for input"),
        }
    }

    /// Continues a parked call with the input of its client.
    ///
    /// # Errors
    /// If the input is missing: the reply, which asks for it again.
    fn continued(mut self, responses: &mut BTreeMap<String, Value>) -> Result<Self, HubReply> {
        // Less than while it was parked.
        let _ = self.memory.resize_exactly(self.bytes);
        // The question may have timed out.
        let Some((question, answer)) = self.asked.take().filter(|(_, it)| !it.is_closed()) else {
            return Ok(self);
        };
        match take_input(responses) {
            Some(response) => {
                let _ = answer.send(Ok(response));
                Ok(self)
            }
            None => Err(self.parked(&question, answer)),
        }
    }
}

impl From<CallEvent> for CallStep {
    fn from(event: CallEvent) -> Self {
        match event {
            CallEvent::Ask(question, answer) => Self::Ask(question, answer),
            CallEvent::Log(message) => Self::Tell("notifications/message", message),
            CallEvent::Over(Some(reply)) => Self::Done(reply),
            CallEvent::Over(None) => Self::Cancelled,
        }
    }
}

/// Waits for a report, and returns the parameters of its notification; `None` if there will be none.
async fn reported(
    reports: &mut Option<watch::Receiver<Option<Progress>>>,
    token: Option<&str>,
) -> Option<Value> {
    let (reports, token) = (reports.as_mut()?, token?);
    loop {
        reports.changed().await.ok()?;
        if let Some(progress) = reports.borrow_and_update().as_ref() {
            return Some(progress_params(token, progress));
        }
    }
}

/// Waits for a pause; `None` if there will be none.
async fn paused(pauses: &mut Option<watch::Receiver<Option<Duration>>>) -> Option<Duration> {
    let pauses = pauses.as_mut()?;
    pauses.changed().await.ok()?;
    *pauses.borrow_and_update()
}

/// The parameters of a progress notification.
pub(crate) fn progress_params(token: &str, progress: &Progress) -> Value {
    let token: Value = serde_json::from_str(token).unwrap_or_default();
    let mut params = json!({ "progressToken": token, "progress": progress.done });
    if let Some(total) = progress.total {
        params["total"] = json!(total);
    }
    if let Some(message) = &progress.message {
        params["message"] = json!(message);
    }
    params
}
