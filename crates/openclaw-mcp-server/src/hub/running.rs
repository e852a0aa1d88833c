//! A call that can be asked about while it runs: its future, if it needs one, and what happens
//! meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use openclaw_budget::BytePermit;
use openclaw_config::LogLevel;
use openclaw_protocol::Principal;
use openclaw_tools::{Progress, ProgressWatcher, StartedCall};
use rmcp::model::{CustomNotification, ServerNotification};
use rmcp::service::{Peer, RoleServer};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use super::answers::{AskableClient as _, ClientAnswer, ClientQuestion, ask_peer};
use super::asks::CallScope;
use super::call::CallFor;
use super::client::HubClient;
use super::incoming::CallRequest;
use super::parked::take_input;
use super::reply::{BUSY, HubReply};
use super::replying::{CallEvent, CallEvents, ReplyingTask};
use super::state::Continues;

/// The method of calls.
pub(super) const CALL: &str = "tools/call";

/// The memory that a parked call counts at least: so a client cannot take the places of all others.
const PARKED: usize = 1024 * 1024;

/// A call in progress.
pub(super) struct RunningCall {
    client: Arc<HubClient>,
    work: Work,
    events: CallEvents,
    /// The reports, with the token of progress notifications as JSON, if the client wants them.
    progress: Option<(watch::Receiver<Option<Progress>>, String)>,
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
    _scope: Option<Arc<CallScope>>,
}

/// A request that is not a call, with what it is made with.
pub(super) struct ForwardedRequest {
    pub(super) request: Arc<CallRequest>,
    /// How the client is asked.
    pub(super) answers: Arc<ReplyingTask>,
    pub(super) scope: Arc<CallScope>,
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
pub(super) enum CallStep {
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

impl RunningCall {
    /// Starts a call for a client that is reached by replies only.
    pub(super) fn start(client: &Arc<HubClient>, request: CallRequest) -> Self {
        let (abilities, log_level) = match &request.modern {
            Some(modern) => (modern.abilities, modern.log_level),
            None => (client.abilities(), Some(client.log_level().unwrap_or(LogLevel::Debug))),
        };
        let (answers, events) = ReplyingTask::new(abilities, log_level);
        let scope = client.scope_of(Arc::clone(&answers) as _);
        Self::in_scope(client, request, answers, events, Arc::new(scope), false)
    }

    /// Starts a call in a scope of several calls.
    pub(super) fn in_scope(
        client: &Arc<HubClient>,
        request: CallRequest,
        answers: Arc<ReplyingTask>,
        events: CallEvents,
        scope: Arc<CallScope>,
        can_pause: bool,
    ) -> Self {
        let (mut watcher, reports) = ProgressWatcher::channel();
        let progress = request.progress.clone().map(|token| (reports, token));
        let pauses = can_pause.then(|| watcher.receive_pauses());
        let watcher = (progress.is_some() || can_pause).then_some(watcher);
        let (calling, of_call) = (Arc::clone(client), Arc::clone(&scope));
        let bytes = request.bytes();
        let memory = client.budget.hold_exactly(bytes);
        let refusal = memory.as_ref().err().copied();
        let memory = memory.unwrap_or_else(|_| client.budget.permit());
        let request = Arc::new(request);
        let called = Arc::clone(&request);
        let call = Box::pin(async move {
            if let Some(spent) = refusal {
                return HubReply::busy(spent);
            }
            let watcher = watcher.as_ref();
            let by = CallFor { session: of_call.session(), answers: &*answers, watcher };
            calling.call(&called, by).await
        });
        let (client, work, asked) = (Arc::clone(client), Work::Future(call), None);
        let (request, scope) = (Some((CALL, request)), Some(scope));
        Self {
            client,
            work,
            events,
            progress,
            pauses,
            asked,
            memory,
            bytes,
            request,
            _scope: scope,
        }
    }

    /// The client that it is made for.
    pub(super) fn client(&self) -> &Arc<HubClient> {
        &self.client
    }

    /// Starts or continues a call of a client since 2026-07-28.
    ///
    /// # Errors
    /// The reply, if the request does not continue what it names, or lacks input.
    pub(super) fn answered(
        client: &Arc<HubClient>,
        mut request: CallRequest,
    ) -> Result<Self, HubReply> {
        match Self::continuing(client, CALL, &mut request)? {
            Some(parked) => Ok(parked),
            None => Ok(Self::start(client, request)),
        }
    }

    /// Like [`answered`](Self::answered), for another request of a client since 2026-07-28, which this
    /// function makes.
    ///
    /// # Errors
    /// The reply, if the request does not continue what it names, or lacks input.
    pub(super) fn forwarded(
        client: &Arc<HubClient>,
        method: &'static str,
        mut request: CallRequest,
        forward: impl FnOnce(ForwardedRequest) -> BoxFuture<'static, HubReply>,
    ) -> Result<Self, HubReply> {
        if let Some(parked) = Self::continuing(client, method, &mut request)? {
            return Ok(parked);
        }
        let modern = request.modern.as_ref();
        let abilities = modern.map(|it| it.abilities).unwrap_or_default();
        let (answers, events) = ReplyingTask::new(abilities, modern.and_then(|it| it.log_level));
        let scope = Arc::new(client.scope_of(Arc::clone(&answers) as _));
        let bytes = request.bytes();
        let request = Arc::new(request);
        let forwarded = ForwardedRequest { request: Arc::clone(&request), answers, scope };
        let (client, work) = (Arc::clone(client), Work::Future(forward(forwarded)));
        let (progress, pauses, asked) = (None, None, None);
        // `rmcp` has counted it, until it is parked.
        let memory = client.budget.permit();
        let request = Some((method, request));
        Ok(Self {
            client,
            work,
            events,
            progress,
            pauses,
            asked,
            memory,
            bytes,
            request,
            _scope: None,
        })
    }

    /// Opens the state of a request, and returns the parked call that it continues, if it does.
    fn continuing(
        client: &HubClient,
        method: &str,
        request: &mut CallRequest,
    ) -> Result<Option<Self>, HubReply> {
        let CallRequest { name, arguments, modern, .. } = request;
        let Some(modern) = modern else { return Ok(None) };
        let Some(parked) = client.opened(modern, client.origin(method, name, arguments.get()))?
        else {
            return Ok(None);
        };
        parked.continued(&mut modern.responses).map(Some)
    }

    /// A call that was started without a future; its reply is an event.
    pub(super) fn started(client: &Arc<HubClient>, call: StartedCall, events: CallEvents) -> Self {
        let work = Work::Started(CancelOnDrop(Some(call)));
        let client = Arc::clone(client);
        let (memory, bytes) = (client.budget.permit(), 0);
        let (progress, pauses, asked, request) = (None, None, None, None);
        Self { client, work, events, progress, pauses, asked, memory, bytes, request, _scope: None }
    }

    /// Who has made the call.
    pub(super) fn principal(&self) -> &Principal {
        self.client.principal()
    }

    /// Waits for the next thing that happens. Safe to cancel.
    pub(super) async fn step(&mut self) -> CallStep {
        let call = match &mut self.work {
            Work::Future(call) => call,
            Work::Started(CancelOnDrop(call)) => {
                let event = self.events.next().await;
                if matches!(event, CallEvent::Over(Some(_))) {
                    *call = None;
                }
                return CallStep::of(event);
            }
        };
        // In this order, so that what happened before the end is sent before it.
        tokio::select! {
            biased;
            event = self.events.next() => CallStep::of(event),
            Some(params) = reported(&mut self.progress) => {
                CallStep::Tell("notifications/progress", params)
            }
            Some(retry) = paused(&mut self.pauses) => CallStep::Pause(retry),
            reply = call => CallStep::Done(reply),
        }
    }

    /// Runs the call of a client that is asked through `rmcp`.
    pub(super) async fn through_peer(mut self, peer: &Peer<RoleServer>) -> HubReply {
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
    pub(super) async fn until_asked(mut self, tell: impl Fn(&str, &Value)) -> HubReply {
        loop {
            match self.step().await {
                CallStep::Done(reply) => return reply,
                CallStep::Tell(method, params) => tell(method, &params),
                CallStep::Ask(question, answer) => return self.parked(&question, answer),
                CallStep::Pause(_) => {}
                CallStep::Cancelled => return HubReply::cancelled(),
            }
        }
    }

    /// Parks the call until its client sends the answer to a question. Returns the result that asks
    /// for it.
    pub(super) fn parked(
        mut self,
        question: &ClientQuestion,
        answer: oneshot::Sender<ClientAnswer>,
    ) -> HubReply {
        self.asked = Some((question.clone(), answer));
        let (client, request) = (Arc::clone(&self.client), self.request.clone());
        // It waits for minutes.
        if let Err(spent) = self.memory.resize_exactly(self.bytes.max(PARKED)) {
            return HubReply::busy(spent);
        }
        let state = request.and_then(|(method, request)| {
            let origin = client.origin(method, &request.name, request.arguments.get());
            let parked = client.hub.parked.park(self)?;
            client.hub.seal.seal(&Continues::Parked(parked), origin)
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

impl CallStep {
    fn of(event: CallEvent) -> Self {
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
    progress: &mut Option<(watch::Receiver<Option<Progress>>, String)>,
) -> Option<Value> {
    let (reports, token) = progress.as_mut()?;
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
pub(super) fn progress_params(token: &str, progress: &Progress) -> Value {
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
