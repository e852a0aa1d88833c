//! The sessions of clients up to 2025-11-25. Each belongs to the principal that has opened it: to others
//! it does not exist.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use openclaw_budget::{BudgetSpent, BytePermit};
use openclaw_protocol::Principal;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{SessionId, SessionManager as _};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::super::asks::CallScope;
use super::super::client::HubClient;
use super::super::listen;
use super::HubBody;
use super::room::KeepLimits;
use super::streams::CallStream;
use crate::front::events::ReplyingTask;
use crate::front::memory::for_tree;
use crate::input::{Abilities, AskableClient, ClientAnswer, ClientQuestion};

/// Maximum number of sessions.
const LIMITS: KeepLimits = KeepLimits { total: 1_000, each: 500 };
/// A session that is unused for this long is closed when another one is opened.
const UNUSED: Duration = Duration::from_secs(4 * 60 * 60);
/// Maximum number of calls in progress of a session.
const MAX_CALLS: usize = 256;
/// Maximum number of streams of a session that can be resumed.
const MAX_STREAMS: usize = 64;

/// All sessions: every one that `rmcp` opens is here.
pub(super) struct HttpSessions {
    manager: Arc<LocalSessionManager>,
    open: Mutex<HashMap<String, Arc<HubSession>>>,
}

/// A session of a client.
#[derive(Debug)]
pub(super) struct HubSession {
    calls: Arc<SessionCalls>,
    scope: Arc<CallScope>,
    used: Mutex<Instant>,
    /// Our requests by id, as JSON.
    asked: Mutex<HashMap<String, oneshot::Sender<ClientAnswer>>>,
    /// The streams of calls that can be resumed.
    streams: Mutex<Vec<Arc<CallStream>>>,
    /// The number of our next request, or of the next stream.
    next: AtomicU64,
    watching: tokio::task::AbortHandle,
    /// The memory of the request that has opened it.
    _handshake: BytePermit,
}

impl Drop for HubSession {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HttpSessions {
    pub(super) fn new(manager: Arc<LocalSessionManager>) -> Self {
        Self { manager, open: Mutex::default() }
    }

    /// Returns a session of a principal, which counts as a use of it.
    pub(super) fn get(&self, id: &str, principal: &Principal) -> Option<Arc<HubSession>> {
        let session = lock(&self.open).get(id).filter(|it| it.principal() == principal).cloned()?;
        *lock(&session.used) = Instant::now();
        Some(session)
    }

    /// Adds a session that `rmcp` has opened, with the memory of its handshake.
    pub(super) fn open(&self, id: &str, client: Arc<HubClient>, handshake: BytePermit) {
        client.hub.asks.listen(&client);
        let watching = tokio::spawn(listen::watch(Arc::downgrade(&client))).abort_handle();
        let calls = Arc::new(SessionCalls { client, open: Mutex::default() });
        let scope = calls.client.scope_of(Arc::clone(&calls) as Arc<dyn AskableClient>);
        let session = HubSession {
            calls,
            scope: Arc::new(scope),
            used: Mutex::new(Instant::now()),
            asked: Mutex::default(),
            streams: Mutex::default(),
            next: AtomicU64::new(1),
            watching,
            _handshake: handshake,
        };
        for (id, ended) in self.insert(id, session) {
            // The new one does not wait for them.
            drop(self.close(&id, &ended));
        }
    }

    /// Adds a session. Returns those that are unused for long, and the one that makes room, which are
    /// removed.
    fn insert(&self, id: &str, session: HubSession) -> Vec<(String, Arc<HubSession>)> {
        let mut open = lock(&self.open);
        let now = Instant::now();
        let is_unused = |it: &HubSession| now.saturating_duration_since(it.used()) > UNUSED;
        let mut ended: Vec<_> = open.extract_if(|_, session| is_unused(session)).collect();
        let kept = open.iter().map(|(id, session)| (id, session.principal(), session.used()));
        let displaced = LIMITS.displaced(session.principal(), kept).cloned();
        ended.extend(displaced.and_then(|id| open.remove_entry(&id)));
        open.insert(id.to_owned(), Arc::new(session));
        ended
    }

    /// Ends a session.
    pub(super) async fn end(&self, id: &str) {
        let session = lock(&self.open).remove(id);
        if let Some(session) = session {
            let _ = self.close(id, &session).await;
        }
    }

    /// Ends the sessions of these principals.
    pub(super) fn end_all(&self, mut is_meant: impl FnMut(&Principal) -> bool) {
        let mut open = lock(&self.open);
        let ended: Vec<_> = open.extract_if(|_, it| is_meant(it.principal())).collect();
        drop(open);
        for (id, session) in ended {
            drop(self.close(&id, &session));
        }
    }

    /// Cancels the calls of a session that was removed, and closes it: also if nothing waits for that.
    fn close(&self, id: &str, session: &HubSession) -> JoinHandle<()> {
        let calls = std::mem::take(&mut *lock(&session.calls.open));
        calls.iter().for_each(|(_, call)| call.cancel());
        let manager = Arc::clone(&self.manager);
        let id = SessionId::from(id);
        tokio::spawn(async move {
            if let Err(error) = manager.close_session(&id).await {
                tracing::warn!(%error, "cannot close a session");
            }
        })
    }
}

impl HubSession {
    pub(super) fn client(&self) -> &Arc<HubClient> {
        &self.calls.client
    }

    fn principal(&self) -> &Principal {
        self.calls.client.principal()
    }

    fn used(&self) -> Instant {
        *lock(&self.used)
    }

    /// The session of its calls, by which servers' questions find it.
    pub(super) fn scope(&self) -> &Arc<CallScope> {
        &self.scope
    }

    /// Registers a call.
    ///
    /// # Errors
    /// If its id is in use, or too many are in progress.
    pub(super) fn begin(
        &self,
        id: &str,
        call: &Arc<ReplyingTask>,
    ) -> Result<SessionCallGuard, CallRefusal> {
        let mut open = lock(&self.calls.open);
        if open.iter().any(|(other, _)| &**other == id) {
            return Err(CallRefusal::IdInUse);
        }
        if open.len() >= MAX_CALLS {
            return Err(CallRefusal::TooMany);
        }
        open.push((id.into(), Arc::clone(call)));
        Ok(SessionCallGuard { calls: Arc::clone(&self.calls), call: Arc::clone(call) })
    }

    /// Cancels a call. Returns whether there was one.
    pub(super) fn cancel(&self, id: &str) -> bool {
        let open = lock(&self.calls.open);
        let call = open.iter().find(|(other, _)| &**other == id).map(|(_, call)| Arc::clone(call));
        drop(open);
        call.map(|call| call.cancel()).is_some()
    }

    /// Creates the stream of a call; one that can be resumed unless there are too many.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(super) fn new_stream(&self, is_primed: bool) -> Result<Arc<CallStream>, BudgetSpent> {
        let mut streams = lock(&self.streams);
        if streams.len() >= MAX_STREAMS
            && let Some(over) = streams.iter().position(|stream| stream.is_over())
        {
            streams.remove(over);
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let is_kept = streams.len() < MAX_STREAMS;
        let budget = &self.client().budget;
        let stream = CallStream::new(is_kept.then_some(number), is_primed && is_kept, budget)?;
        if is_kept {
            streams.push(Arc::clone(&stream));
        }
        Ok(stream)
    }

    /// Returns the rest of a stream after this event; `None` if it is no longer kept.
    pub(super) fn resumed(&self, (number, last): (u64, u64)) -> Option<HubBody> {
        let streams = lock(&self.streams);
        let stream = streams.iter().find(|stream| stream.number() == Some(number)).cloned();
        drop(streams);
        stream?.resumed(last)
    }

    /// Forgets a stream.
    pub(super) fn drop_stream(&self, stream: &Arc<CallStream>) {
        lock(&self.streams).retain(|other| !Arc::ptr_eq(other, stream));
    }

    /// Returns the message that asks the client.
    pub(super) fn question(
        &self,
        question: &ClientQuestion,
        answer: oneshot::Sender<ClientAnswer>,
    ) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let id = json!(format!("openclaw-hub-{number}"));
        let mut asked = lock(&self.asked);
        asked.retain(|_, answer| !answer.is_closed());
        asked.insert(id.to_string(), answer);
        let ClientQuestion { method, params } = question;
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
    }

    /// Takes the response to one of our requests. Returns whether it is one.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(super) fn answer(&self, id: &str, message: &[u8]) -> Result<bool, BudgetSpent> {
        #[derive(Deserialize)]
        struct Response {
            result: Option<Value>,
            #[serde(default)]
            error: Value,
        }
        if !lock(&self.asked).contains_key(id) {
            return Ok(false);
        }
        let _memory = for_tree(&self.client().budget, message)?;
        let Some(asked) = lock(&self.asked).remove(id) else { return Ok(false) };
        let answer = match serde_json::from_slice(message) {
            Ok(Response { result: Some(result), .. }) => Ok(result),
            Ok(Response { error, .. }) => {
                Err(error.get("message").and_then(Value::as_str).unwrap_or_default().to_owned())
            }
            Err(error) => Err(error.to_string()),
        };
        // The question may have timed out.
        let _ = asked.send(answer);
        Ok(true)
    }
}

/// The calls in progress of a session. Their streams are the way to the client.
#[derive(Debug)]
struct SessionCalls {
    client: Arc<HubClient>,
    /// By id, as JSON, in the order of their start. Few: a connection has one at a time.
    open: Mutex<Vec<(Box<str>, Arc<ReplyingTask>)>>,
}

impl SessionCalls {
    fn newest(&self) -> Option<Arc<ReplyingTask>> {
        lock(&self.open).last().map(|(_, call)| Arc::clone(call))
    }
}

impl AskableClient for SessionCalls {
    fn abilities(&self) -> Abilities {
        self.client.abilities()
    }

    fn ask(&self, question: ClientQuestion) -> BoxFuture<'_, ClientAnswer> {
        let call = self.newest();
        Box::pin(async move {
            let call = call.ok_or("the client cannot be asked")?;
            call.ask(question).await
        })
    }

    fn log(&self, message: &Value) {
        if let Some(call) = self.newest()
            && self.client.wants_log(message)
        {
            call.log(message);
        }
    }

    fn visited(&self, id: &str) {
        self.client.visited(id);
    }
}

/// Why a call of a session cannot begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallRefusal {
    /// Another request has its id.
    IdInUse,
    /// Too many calls are in progress.
    TooMany,
}

/// Unregisters a call when it is dropped.
pub(super) struct SessionCallGuard {
    calls: Arc<SessionCalls>,
    call: Arc<ReplyingTask>,
}

impl Drop for SessionCallGuard {
    fn drop(&mut self) {
        lock(&self.calls.open).retain(|(_, call)| !Arc::ptr_eq(call, &self.call));
    }
}
