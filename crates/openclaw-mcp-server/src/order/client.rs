//! The client that a message comes from, as one that can be asked during the run.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::BoxFuture;
use openclaw_trace::SpanContext;
use rmcp::model::InputRequest;
use rmcp::service::{Peer, RequestContext, RoleServer};
use rmcp::task_manager::TaskContext;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::hub::answers::{Abilities, AskableClient, ClientAnswer, ClientQuestion, ask_peer};

/// The client of a message.
pub(super) struct OrderCaller {
    /// How it is asked.
    pub(super) answers: Arc<dyn AskableClient>,
    /// Whether it knows links to resources (2025-06-18).
    pub(super) takes_links: bool,
    /// Its span.
    pub(super) trace: Option<SpanContext>,
}

/// The span of the client of a request.
pub(super) fn trace(context: &RequestContext<RoleServer>) -> Option<SpanContext> {
    SpanContext::find(|name| context.meta.get(name)?.as_str())
}

/// What the client of a request can be asked for.
pub(super) fn abilities(context: &RequestContext<RoleServer>) -> Abilities {
    let capabilities = context.client_capabilities();
    let capabilities = capabilities.and_then(|it| serde_json::to_value(it).ok());
    Abilities::of(&capabilities.unwrap_or_default())
}

/// A client with a handshake, which is asked by requests.
pub(super) struct RequestedClient {
    pub(super) abilities: Abilities,
    pub(super) peer: Peer<RoleServer>,
}

impl fmt::Debug for RequestedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestedClient").finish_non_exhaustive()
    }
}

impl AskableClient for RequestedClient {
    fn abilities(&self) -> Abilities {
        self.abilities
    }

    fn ask(&self, question: ClientQuestion) -> BoxFuture<'_, ClientAnswer> {
        Box::pin(ask_peer(&self.peer, question))
    }

    fn log(&self, _: &Value) {}
}

/// A client that polls a task, which shows the questions.
pub(super) struct TaskClient {
    pub(super) abilities: Abilities,
    pub(super) task: TaskContext,
    /// Set when the client is asked for the first time.
    pub(super) is_asked: watch::Sender<bool>,
    pub(super) next: AtomicU64,
}

impl fmt::Debug for TaskClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskClient").finish_non_exhaustive()
    }
}

impl AskableClient for TaskClient {
    fn abilities(&self) -> Abilities {
        self.abilities
    }

    fn ask(&self, question: ClientQuestion) -> BoxFuture<'_, ClientAnswer> {
        Box::pin(async move {
            let request = json!({ "method": question.method, "params": question.params });
            let request: InputRequest =
                serde_json::from_value(request).map_err(|error| error.to_string())?;
            let key = format!("input-{}", self.next.fetch_add(1, Ordering::Relaxed));
            let asking = self.task.request_input(key, request);
            self.is_asked.send_replace(true);
            asking.await.map_err(|_| "the task is over".to_owned())
        })
    }

    fn log(&self, _: &Value) {}
}
