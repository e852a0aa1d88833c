//! What servers ask and report goes to the client that a call is made for (S6).
//!
//! Which call a server's request belongs to is known if it is part of a result, if it arrives on the
//! stream of a call, or if all calls that the server is processing are those of one client. Otherwise
//! it is refused: another client's user must neither see the question nor answer it. So is one about the
//! call of a client that is gone. Calls that ended without a response of the server count, too: not every
//! server stops when a call is cancelled. A request outside any call reaches no client.

use std::collections::{HashMap, VecDeque};
use std::future::ready;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use futures_util::future::BoxFuture;
use openclaw_content::clean_json;
use openclaw_mcp::fleet::Fleet;
use openclaw_mcp_client::host::{
    CallInProgress, Downstream, ElicitationAnswer, ElicitationRequest, SamplingRequest,
};
use openclaw_tools::{OutcomeDetails, RawReply, ToolOutcome};
use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::client::HubClient;
use super::listen::Updated;
use crate::input::{
    AskableClient, ClientAnswer, ClientQuestion, ROOTS, SAMPLE, ask_if_able, elicited, visit_id,
};

/// Why a request is refused that may belong to the call of another client.
const UNCLEAR: &str = "the server is processing calls of several clients, and does not say which of \
                       them it asks";
/// The beginning of the names of clients' sessions. The keys of all others name an agent or a caller.
const HUB_SESSION: &str = "hub:";
/// What follows the number of the client in such a name.
const OF_CLIENT: char = '.';
/// Maximum length of a text in a log message, in characters.
const LOG_CHARS: usize = 4_000;
/// How many changes of resources are kept for a slow client; it loses the oldest.
const MAX_UPDATES: usize = 256;
/// How many visits to URLs are remembered.
const MAX_VISITS: usize = 256;
/// How many visits that one error requires are remembered.
const MAX_VISITS_OF_ERROR: usize = 16;
/// Maximum length of the id of a visit, in bytes; a longer one is not remembered.
const MAX_VISIT_ID: usize = 1_024;
/// The code of the error that requires the client to visit URLs before it repeats the request.
const VISITS_REQUIRED: i64 = -32042;

/// The calls that are made for clients, and the clients that listen to what servers report.
#[derive(Debug)]
pub struct Asks {
    calls: Mutex<HashMap<String, CallOf>>,
    listeners: Mutex<Vec<Weak<HubClient>>>,
    updates: broadcast::Sender<Updated>,
    /// The URLs that clients were asked to visit, newest first.
    visits: Mutex<VecDeque<Visit>>,
    next: AtomicU64,
    /// The servers, which the clients of one can be separated at.
    fleet: OnceLock<Weak<Fleet>>,
}

/// A URL that a client was asked to visit.
#[derive(Debug)]
struct Visit {
    server: String,
    /// The id by which the server reports the visit.
    theirs: String,
    /// The id that the client knows.
    ours: String,
    client: Weak<dyn AskableClient>,
}

impl Default for Asks {
    fn default() -> Self {
        Self {
            calls: Mutex::default(),
            listeners: Mutex::default(),
            updates: broadcast::Sender::new(MAX_UPDATES),
            visits: Mutex::default(),
            next: AtomicU64::new(1),
            fleet: OnceLock::new(),
        }
    }
}

/// For whom the calls of a session are made.
#[derive(Debug)]
struct CallOf {
    /// The number of the client.
    client: u64,
    /// Whether several programs may share it.
    is_shared: bool,
    answers: Arc<dyn AskableClient>,
    /// Whether texts of servers are sanitized for it.
    wraps: bool,
}

/// Whom a server's request concerns.
enum Concerned {
    /// No client.
    NoClient,
    /// A client, and whether texts of servers are sanitized for it.
    Client(Arc<dyn AskableClient>, bool),
    /// Unknown.
    Unclear,
}

/// A registered session of calls. Unregistered when dropped.
#[derive(Debug)]
pub(super) struct CallScope {
    asks: Arc<Asks>,
    session: String,
}

impl CallScope {
    /// The session of the calls.
    pub(super) fn session(&self) -> &str {
        &self.session
    }
}

impl Drop for CallScope {
    fn drop(&mut self) {
        self.asks.calls().remove(&self.session);
    }
}

impl Asks {
    /// Registers the client that the calls of a new session are made for. One that several programs may
    /// share is not taken for the client of another open session.
    pub(super) fn register(
        self: &Arc<Self>,
        (client, is_shared): (u64, bool),
        answers: Arc<dyn AskableClient>,
        wraps: bool,
    ) -> CallScope {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let session = format!("{HUB_SESSION}{client}{OF_CLIENT}{number}");
        self.calls().insert(session.clone(), CallOf { client, is_shared, answers, wraps });
        CallScope { asks: Arc::clone(self), session }
    }

    /// Sets the servers, whose clients are separated when it is unclear which one is asked.
    pub(super) fn separates_by(&self, fleet: &Arc<Fleet>) {
        let _ = self.fleet.set(Arc::downgrade(fleet));
    }

    /// Records that a request of a server was refused, because it is unclear whom it concerns.
    fn refused(&self, server: &str, what: &str) {
        tracing::warn!(server, "refused {what}: {UNCLEAR}");
        let fleet = self.fleet.get().and_then(Weak::upgrade);
        if fleet.is_some_and(|fleet| fleet.separate_clients(server)) {
            tracing::warn!(
                server,
                "from now on, each client of the hub gets a process of its own of this server; set \
                 `perClient: true` in its entry to do so from the start"
            );
        }
    }

    /// Subscribes to changes of resources.
    pub(super) fn updates(&self) -> broadcast::Receiver<Updated> {
        self.updates.subscribe()
    }

    /// Adds a client that listens to what servers report outside its calls.
    pub(super) fn listen(&self, client: &Arc<HubClient>) {
        let mut listeners = self.listeners();
        listeners.retain(|it| it.strong_count() > 0);
        listeners.push(Arc::downgrade(client));
    }

    /// Passes an elicitation to the client that it concerns; `None` if it concerns none. It is
    /// cancelled if that is unknown.
    pub fn elicit(
        &self,
        asked: &ElicitationRequest,
    ) -> Option<BoxFuture<'static, ElicitationAnswer>> {
        let client = match self.concerned(&asked.calls) {
            Concerned::NoClient => return None,
            Concerned::Client(client, _) => client,
            Concerned::Unclear => {
                self.refused(&asked.server, "an elicitation");
                return Some(Box::pin(ready(ElicitationAnswer::Cancel)));
            }
        };
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let question = ClientQuestion::elicitation(&asked.message, &asked.wanted, id);
        if let Some(theirs) = &asked.id
            && let Some(ours) = question.params["elicitationId"].as_str()
        {
            self.remember_visit(&asked.server, theirs, ours, &client);
        }
        Some(Box::pin(async move {
            match ask_if_able(&*client, question).await {
                Ok(answer) => elicited(&answer),
                Err(_) => ElicitationAnswer::Decline,
            }
        }))
    }

    /// Replaces the ids of the URLs that the client of a session has to visit before it repeats its
    /// request (error -32042) by ids that the client is told when they were visited.
    pub(super) fn name_visits(&self, outcome: &mut ToolOutcome, session: &str) {
        let OutcomeDetails { server: Some(server), raw: Some(RawReply::Error(json)), .. } =
            &mut *outcome.details
        else {
            return;
        };
        let Ok(mut error) = serde_json::from_str::<Value>(json) else { return };
        if error["code"] != VISITS_REQUIRED {
            return;
        }
        let Some(visits) = error.pointer_mut("/data/elicitations").and_then(Value::as_array_mut)
        else {
            return;
        };
        let Some(client) = self.calls().get(session).map(|call| Arc::clone(&call.answers)) else {
            return;
        };
        for visit in visits.iter_mut().take(MAX_VISITS_OF_ERROR) {
            let Some(Value::String(id)) = visit.get_mut("elicitationId") else { continue };
            let ours = visit_id(self.next.fetch_add(1, Ordering::Relaxed));
            self.remember_visit(server, id, &ours, &client);
            *id = ours;
        }
        *json = error.to_string();
    }

    /// Remembers a URL that a client is asked to visit, instead of the oldest one if there are too many.
    fn remember_visit(
        &self,
        server: &str,
        theirs: &str,
        ours: &str,
        client: &Arc<dyn AskableClient>,
    ) {
        if theirs.len() > MAX_VISIT_ID {
            return;
        }
        let visit = Visit {
            server: server.to_owned(),
            theirs: theirs.to_owned(),
            ours: ours.to_owned(),
            client: Arc::downgrade(client),
        };
        let mut visits = self.visits();
        visits.retain(|visit| visit.client.strong_count() > 0);
        visits.truncate(MAX_VISITS - 1);
        visits.push_front(visit);
    }

    fn visits(&self) -> MutexGuard<'_, VecDeque<Visit>> {
        self.visits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a sampling request to the client that it concerns; `None` if it concerns none. It fails
    /// if that is unknown.
    pub fn sample(&self, asked: &SamplingRequest) -> Option<BoxFuture<'static, ClientAnswer>> {
        let (client, wraps) = match self.concerned(&asked.calls) {
            Concerned::NoClient => return None,
            Concerned::Client(client, wraps) => (client, wraps),
            Concerned::Unclear => {
                self.refused(&asked.server, "a sampling request");
                return Some(Box::pin(ready(Err(UNCLEAR.to_owned()))));
            }
        };
        let mut params = asked.params.clone();
        if wraps {
            // Not bounded further: it is the context of a model.
            clean_json(&mut params, usize::MAX);
        }
        let question = ClientQuestion { method: SAMPLE, params };
        Some(Box::pin(async move { ask_if_able(&*client, question).await }))
    }

    /// Returns whom a request concerns that may belong to any of these calls, newest first.
    fn concerned(&self, in_progress: &[CallInProgress]) -> Concerned {
        let calls = self.calls();
        let of = |call: &CallInProgress| calls.get(call.session.as_deref()?);
        let Some(newest) = in_progress.iter().find_map(of) else {
            let is_of_gone_client = in_progress.iter().any(|call| client_of(call).is_some());
            return if is_of_gone_client { Concerned::Unclear } else { Concerned::NoClient };
        };
        let is_same = |call: &CallInProgress| match of(call) {
            Some(other) => {
                Arc::ptr_eq(&other.answers, &newest.answers)
                    || (!other.is_shared && other.client == newest.client)
            }
            // A session that has ended, which may be an earlier one of the same client.
            None => client_of(call) == Some(newest.client),
        };
        if in_progress.iter().all(is_same) {
            Concerned::Client(Arc::clone(&newest.answers), newest.wraps)
        } else {
            Concerned::Unclear
        }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<String, CallOf>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<Weak<HubClient>>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn each_listener(&self, tell: impl Fn(&Arc<HubClient>)) {
        let listeners: Vec<_> = self.listeners().iter().filter_map(Weak::upgrade).collect();
        listeners.iter().for_each(tell);
    }
}

/// The number of the client that a call is made for, from the name of its session; `None` for all other
/// callers.
fn client_of(call: &CallInProgress) -> Option<u64> {
    let (client, _) = call.session.as_deref()?.strip_prefix(HUB_SESSION)?.split_once(OF_CLIENT)?;
    client.parse().ok()
}

/// A log message that names its server, unless it names its logger. Its texts are sanitized if the client
/// gets all texts sanitized.
fn named(server: &str, message: &Value, wraps: bool) -> Value {
    let mut message = message.clone();
    if let Value::Object(members) = &mut message {
        members.entry("logger").or_insert_with(|| Value::from(server));
        if wraps {
            members.retain(|name, _| matches!(name.as_str(), "level" | "logger" | "data"));
            clean_json(&mut message, LOG_CHARS);
        }
    }
    message
}

impl Downstream for Asks {
    fn logged(&self, server: &str, calls: &[CallInProgress], message: &Value) {
        match self.concerned(calls) {
            Concerned::Client(client, wraps) => client.log(&named(server, message, wraps)),
            // Outside a call it concerns every client; not the ones that another caller's call
            // caused.
            Concerned::NoClient if calls.is_empty() => {
                self.each_listener(|it| {
                    it.logged(server, &named(server, message, it.options.wrap));
                });
            }
            Concerned::NoClient | Concerned::Unclear => {}
        }
    }

    fn visited(&self, server: &str, id: &str) {
        let mut visits = self.visits();
        let is_it = |it: &Visit| it.server == server && it.theirs == id;
        let Some(client) = visits.iter().find(|it| is_it(it)).map(|it| it.client.clone()) else {
            return;
        };
        // A client that has repeated its request in vain knows the visit by several ids.
        let (visited, others): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut *visits)
            .into_iter()
            .partition(|it| is_it(it) && it.client.ptr_eq(&client));
        *visits = others;
        drop(visits);
        if let Some(client) = client.upgrade() {
            visited.iter().for_each(|visit| client.visited(&visit.ours));
        }
    }

    fn updated(&self, server: &str, uri: &str) {
        // Fails if there is no subscriber.
        let _ = self.updates.send(Updated { server: server.to_owned(), uri: uri.to_owned() });
    }

    fn roots<'a>(
        &'a self,
        server: &str,
        calls: &'a [CallInProgress],
    ) -> BoxFuture<'a, Option<Value>> {
        let concerned = self.concerned(calls);
        if matches!(concerned, Concerned::Unclear) {
            self.refused(server, "to ask a client for its roots");
        }
        let question = ClientQuestion { method: ROOTS, params: json!({}) };
        Box::pin(async move {
            let Concerned::Client(client, _) = concerned else { return None };
            ask_if_able(&*client, question).await.ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use openclaw_mcp_client::host::ElicitationKind;

    use super::*;
    use crate::front::events::{CallEvent, CallEvents, ReplyingTask};
    use crate::input::Abilities;

    fn request(sessions: &[Option<&str>]) -> ElicitationRequest {
        let calls = sessions.iter().map(|session| CallInProgress {
            agent: "main".to_owned(),
            session: session.map(ToOwned::to_owned),
        });
        ElicitationRequest {
            server: "x".to_owned(),
            calls: calls.collect(),
            message: "Well?".to_owned(),
            wanted: ElicitationKind::Form(json!({ "type": "object" })),
            id: None,
        }
    }

    /// A client that several programs share has the number 0.
    fn client(asks: &Arc<Asks>, number: u64, form: bool) -> (CallScope, CallEvents) {
        let (task, events) = ReplyingTask::new(Abilities { form, ..Abilities::default() }, None);
        (asks.register((number, number == 0), task, true), events)
    }

    #[tokio::test]
    async fn the_newest_call_of_the_only_client_is_asked() {
        let asks = Arc::new(Asks::default());
        let (old, mut old_events) = client(&asks, 1, true);
        let (new, mut new_events) = client(&asks, 1, true);
        let sessions = [Some(new.session()), Some(old.session())];
        let answering = tokio::spawn(asks.elicit(&request(&sessions)).unwrap());
        let CallEvent::Ask(question, answer) = new_events.next().await else { panic!() };
        assert_eq!(question.params["message"], "Well?");
        answer.send(Ok(json!({ "action": "accept", "content": { "a": 1 } }))).unwrap();
        let expected = ElicitationAnswer::Accept(Some(json!({ "a": 1 })));
        assert_eq!(answering.await.unwrap(), expected);
        assert!(old_events.next().now_or_never().is_none());
        drop(new);
        let of_agent = request(&[Some("agent:main:main")]);
        assert!(asks.elicit(&of_agent).is_none(), "it is for another user");
        assert!(asks.elicit(&request(&[None])).is_none(), "it is for another user");
        let (mute, _mute_events) = client(&asks, 2, false);
        let declined = asks.elicit(&request(&[Some(mute.session())])).unwrap().await;
        assert_eq!(declined, ElicitationAnswer::Decline);
    }

    #[tokio::test]
    async fn an_earlier_session_of_the_same_client_is_not_another_client() {
        let asks = Arc::new(Asks::default());
        for number in [0, 1] {
            let (gone, _events) = client(&asks, number, true);
            let earlier = gone.session().to_owned();
            drop(gone);
            let (now, mut events) = client(&asks, number, true);
            let asked = request(&[Some(now.session()), Some(&earlier)]);
            let answering = tokio::spawn(asks.elicit(&asked).unwrap());
            let CallEvent::Ask(_, answer) = events.next().await else { panic!() };
            answer.send(Ok(json!({ "action": "decline" }))).unwrap();
            assert_eq!(answering.await.unwrap(), ElicitationAnswer::Decline);
        }
    }

    #[tokio::test]
    async fn a_question_that_may_be_for_another_user_is_asked_nowhere() {
        let asks = Arc::new(Asks::default());
        let (ours, mut events) = client(&asks, 1, true);
        let (theirs, mut their_events) = client(&asks, 2, true);
        let (shared, mut shared_events) = client(&asks, 0, true);
        let (like_it, _events) = client(&asks, 0, true);
        let (ours, theirs) = (Some(ours.session()), Some(theirs.session()));
        let shared = Some(shared.session());
        for calls in [
            [ours, theirs],
            [ours, shared],
            [shared, Some(like_it.session())],
            [ours, Some("agent:main:main")],
            [None, ours],
            // The client of this one is gone.
            [ours, Some("hub:9.99")],
            [Some("hub:9.99"), Some("agent:main:main")],
        ] {
            let asked = request(&calls);
            assert_eq!(asks.elicit(&asked).unwrap().await, ElicitationAnswer::Cancel, "{calls:?}");
            let (server, agents, calls) = ("x".to_owned(), Vec::new(), asked.calls);
            asks.logged("x", &calls, &json!({ "data": "secret" }));
            assert!(asks.roots("x", &calls).await.is_none());
            let asked = SamplingRequest { server, agents, calls, params: json!({}) };
            assert_eq!(asks.sample(&asked).unwrap().await, Err(UNCLEAR.to_owned()));
        }
        for events in [&mut events, &mut their_events, &mut shared_events] {
            assert!(events.next().now_or_never().is_none());
        }
    }
}
