//! A call that can be asked about while it runs: its future, and what happens meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use openclaw_tools::Progress;
use rmcp::model::{CustomNotification, ServerNotification};
use rmcp::service::{Peer, RoleServer};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};

use super::answers::{Abilities, Answer, CallEvent, Question, ReplyingTask, ask_peer};
use super::asks::CallScope;
use super::call::CallFor;
use super::client::Client;
use super::incoming::CallRequest;
use super::parked::{input_required, take_input};
use super::reply::{BUSY, INVALID_PARAMS, Reply};

/// How many events wait for the task that replies.
const EVENTS: usize = 64;

/// A call in progress.
pub(super) struct Running {
    client: Arc<Client>,
    call: BoxFuture<'static, Reply>,
    events: mpsc::Receiver<CallEvent>,
    progress: watch::Receiver<Option<Progress>>,
    /// The token of progress notifications, as JSON.
    token: Option<String>,
    /// Where the answer goes that the client is asked for.
    asked: Option<oneshot::Sender<Answer>>,
    _scope: Arc<CallScope>,
}

/// What happened to a call.
pub(super) enum Step {
    /// It is over.
    Done(Reply),
    /// The client is asked.
    Ask(Question, oneshot::Sender<Answer>),
    /// A notification: its method and parameters.
    Tell(&'static str, Value),
}

impl Running {
    /// Starts a call for a client with these abilities.
    pub(super) fn start(client: &Arc<Client>, request: CallRequest, abilities: Abilities) -> Self {
        let (sender, events) = mpsc::channel(EVENTS);
        let answers = Arc::new(ReplyingTask { abilities, events: sender });
        let scope = Arc::new(client.hub.asks.register(Arc::clone(&answers) as _));
        let (watcher, progress) = watch::channel(None);
        let (calling, of_call) = (Arc::clone(client), Arc::clone(&scope));
        let token = request.progress.clone();
        let call = Box::pin(async move {
            let watcher = request.progress.is_some().then_some(&watcher);
            let by = CallFor { session: of_call.session(), answers: &*answers, watcher };
            calling.call(&request, by).await
        });
        let (client, asked) = (Arc::clone(client), None);
        Self { client, call, events, progress, token, asked, _scope: scope }
    }

    /// Waits for the next thing that happens. Safe to cancel.
    pub(super) async fn step(&mut self) -> Step {
        loop {
            // In this order, so that what happened before the end is sent before it.
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => match event {
                    CallEvent::Ask(question, answer) => return Step::Ask(question, answer),
                    CallEvent::Log(message) => return Step::Tell("notifications/message", message),
                },
                Ok(()) = self.progress.changed() => {
                    let progress = self.progress.borrow_and_update().clone();
                    if let Some(told) = self.token.as_deref().zip(progress) {
                        return Step::Tell("notifications/progress", progress_params(told.0, &told.1));
                    }
                }
                reply = &mut self.call => return Step::Done(reply),
            }
        }
    }

    /// Runs the call of a client that is asked through `rmcp`.
    pub(super) async fn through_peer(mut self, peer: &Peer<RoleServer>) -> Reply {
        loop {
            match self.step().await {
                Step::Done(reply) => return reply,
                Step::Tell(method, params) => {
                    let notification = CustomNotification::new(method, Some(params));
                    let notification = ServerNotification::CustomNotification(notification);
                    let _ = peer.send_notification(notification).await;
                }
                Step::Ask(question, answer) => {
                    let _ = answer.send(ask_peer(peer, question).await);
                }
            }
        }
    }

    /// Runs the call of a client that answers questions with another request. Such a question is
    /// the reply, and the call waits for the next request.
    pub(super) async fn until_asked(mut self, tell: impl Fn(&str, &Value)) -> Reply {
        loop {
            match self.step().await {
                Step::Done(reply) => return reply,
                Step::Tell(method, params) => tell(method, &params),
                Step::Ask(question, answer) => return self.parked(&question, answer),
            }
        }
    }

    /// Parks the call until its client sends the answer to a question. Returns the result that asks
    /// for it.
    pub(super) fn parked(mut self, question: &Question, answer: oneshot::Sender<Answer>) -> Reply {
        self.asked = Some(answer);
        let client = Arc::clone(&self.client);
        let Some(state) = client.hub.parked.park(self) else {
            return Reply::error(BUSY, "too many calls wait for input");
        };
        Reply::Result(input_required(question, &state).to_string())
    }

    /// Continues a parked call with the input of its client.
    ///
    /// # Errors
    /// If the input is missing.
    pub(super) fn continued(
        mut self,
        responses: &mut BTreeMap<String, Value>,
    ) -> Result<Self, Reply> {
        let missing = || Reply::error(INVALID_PARAMS, "`inputResponses` lacks the requested input");
        let response = take_input(responses).ok_or_else(missing)?;
        if let Some(asked) = self.asked.take() {
            // The question may have timed out.
            let _ = asked.send(Ok(response));
        }
        Ok(self)
    }
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
