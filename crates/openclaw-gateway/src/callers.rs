//! Who is connected, what each wants to hear, and each one's end of the gateway.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::TryFutureExt as _;
use futures_util::future::BoxFuture;
use openclaw_protocol::connect::caps;
use openclaw_protocol::{
    AskError, ErrorShape, Event, EventReceiver, EventSender, Request, Response, Scope, Surface,
};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::gateway::Gateway;
use crate::methods::{self, RequestContext};
use crate::socket::{Caller, Endpoint};

/// How many events wait for a caller that is slow. What is lost is told.
const EVENTS: usize = 512;
/// How many sessions a caller follows one by one; with more it hears of all.
const FOLLOWED: usize = 256;

/// Everybody who is connected.
#[derive(Debug, Default)]
pub(crate) struct Callers {
    connected: Mutex<BTreeMap<u64, Arc<Connected>>>,
    next: AtomicU64,
    /// Counts comings and goings.
    moves: watch::Sender<u64>,
}

/// Somebody who is connected.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) id: u64,
    pub(crate) who: Caller,
    events: EventSender,
    follows: Mutex<BTreeSet<String>>,
    follows_all: AtomicBool,
}

impl Connected {
    /// From now on it hears of this session.
    pub(crate) fn follow(&self, session: &str) {
        let mut follows = self.follows.lock().unwrap_or_else(PoisonError::into_inner);
        if follows.len() >= FOLLOWED {
            self.follow_all();
        } else {
            follows.insert(session.to_owned());
        }
    }

    /// From now on it hears of all sessions.
    pub(crate) fn follow_all(&self) {
        self.follows_all.store(true, Ordering::Relaxed);
    }

    fn hears_of(&self, session: &str) -> bool {
        self.follows_all.load(Ordering::Relaxed)
            || self.follows.lock().unwrap_or_else(PoisonError::into_inner).contains(session)
    }

    /// Whether it can be asked about calls.
    pub(crate) fn decides(&self) -> bool {
        Scope::Approvals.is_in(&self.who.scopes)
    }

    /// Whether somebody there answers what servers ask for the sake of one of these sessions.
    fn answers_for(&self, sessions: &[String]) -> bool {
        self.can_be_asked() && sessions.iter().any(|session| self.hears_of(session))
    }

    /// Whether servers may ask it.
    pub(crate) fn can_be_asked(&self) -> bool {
        self.decides() && self.who.caps.iter().any(|cap| cap == caps::ELICITATION)
    }

    /// The key of a conversation that is this caller's alone, for calls that belong to no other.
    pub(crate) fn own_session(&self) -> String {
        format!("caller:{}", self.id)
    }

    /// Tells it something.
    pub(crate) fn tell<T: Serialize>(&self, name: &'static str, payload: &T) {
        match Event::new(name, payload) {
            Ok(event) => self.events.tell(event),
            Err(error) => tracing::error!(event = name, %error, "an event cannot be written"),
        }
    }

    /// What to call it in the audit.
    pub(crate) fn name(&self) -> String {
        let name = self.who.client.display_name.clone();
        name.unwrap_or_else(|| format!("{:?}", self.who.client.id).to_lowercase())
    }
}

impl Callers {
    pub(crate) fn add(&self, who: Caller) -> Arc<Connected> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let connected = Arc::new(Connected {
            id,
            who,
            events: EventSender::new(EVENTS),
            follows: Mutex::default(),
            follows_all: AtomicBool::new(false),
        });
        self.lock().insert(id, Arc::clone(&connected));
        self.moves.send_modify(|moves| *moves += 1);
        connected
    }

    fn remove(&self, id: u64) {
        self.lock().remove(&id);
        self.moves.send_modify(|moves| *moves += 1);
    }

    /// Waits until nobody who may decide has been there for so long.
    pub(crate) async fn without_deciders(&self, for_long: Duration) {
        let some_decide = |_: &u64| self.lock().values().any(|caller| caller.decides());
        let mut moves = self.moves.subscribe();
        loop {
            // The sender is ours: it cannot be gone.
            let _ = moves.wait_for(|moves| !some_decide(moves)).await;
            if timeout(for_long, moves.wait_for(some_decide)).await.is_err() {
                return;
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Arc<Connected>>> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Tells everybody.
    pub(crate) fn tell_all(&self, name: &'static str, payload: &impl Serialize) {
        self.tell(name, payload, |_| true);
    }

    /// Tells those who follow a session.
    pub(crate) fn tell_followers(
        &self,
        session: &str,
        name: &'static str,
        payload: &impl Serialize,
    ) {
        self.tell(name, payload, |caller| caller.hears_of(session));
    }

    /// Tells those who may decide about calls; how many there are.
    pub(crate) fn tell_deciders(&self, name: &'static str, payload: &impl Serialize) -> usize {
        let asked = self.lock().values().filter(|caller| caller.decides()).count();
        if asked > 0 {
            self.tell(name, payload, Connected::decides);
        }
        asked
    }

    /// Whether somebody who may decide about calls follows a session.
    pub(crate) fn has_decider(&self, session: &str) -> bool {
        self.lock().values().any(|caller| caller.decides() && caller.hears_of(session))
    }

    /// Those who answer what servers ask for the sake of one of these sessions.
    pub(crate) fn who_answers_for(&self, sessions: &[String]) -> BTreeSet<u64> {
        let connected = self.lock();
        let meant = connected.values().filter(|caller| caller.answers_for(sessions));
        meant.map(|caller| caller.id).collect()
    }

    /// Tells these.
    pub(crate) fn tell_these(
        &self,
        these: &BTreeSet<u64>,
        name: &'static str,
        payload: &impl Serialize,
    ) {
        self.tell(name, payload, |caller| these.contains(&caller.id));
    }

    /// Waits until none of these is there any more.
    pub(crate) async fn all_left(&self, these: &BTreeSet<u64>) {
        let none_left = |_: &u64| !self.lock().keys().any(|id| these.contains(id));
        // The sender is ours: it cannot be gone.
        let _ = self.moves.subscribe().wait_for(none_left).await;
    }

    /// Tells one; whether it is still there.
    pub(crate) fn tell_one(&self, id: u64, name: &'static str, payload: &impl Serialize) -> bool {
        let is_there = self.lock().contains_key(&id);
        self.tell(name, payload, |caller| caller.id == id);
        is_there
    }

    fn tell(
        &self,
        name: &'static str,
        payload: &impl Serialize,
        is_meant: impl Fn(&Connected) -> bool,
    ) {
        let meant: Vec<Arc<Connected>> =
            self.lock().values().filter(|caller| is_meant(caller)).map(Arc::clone).collect();
        if meant.is_empty() {
            return;
        }
        match Event::new(name, payload) {
            Ok(event) => meant.iter().for_each(|caller| caller.events.tell(event.clone())),
            Err(error) => tracing::error!(event = name, %error, "an event cannot be written"),
        }
    }
}

/// A caller's end of the gateway. When it is dropped, what belongs to the caller goes.
#[derive(Debug)]
pub(crate) struct CallerSurface {
    gateway: Arc<Gateway>,
    caller: Arc<Connected>,
}

impl CallerSurface {
    pub(crate) fn new(gateway: Arc<Gateway>, who: Caller) -> Self {
        let caller = gateway.callers.add(who);
        Self { gateway, caller }
    }

    fn asked(&self) -> RequestContext<'_> {
        RequestContext { gateway: &self.gateway, caller: &self.caller }
    }
}

impl Drop for CallerSurface {
    fn drop(&mut self) {
        self.gateway.callers.remove(self.caller.id);
        self.gateway.lent.take_back(self.caller.id);
    }
}

impl Surface for CallerSurface {
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Response, AskError>> {
        let answer = methods::answer(self.asked(), request);
        Box::pin(answer.map_err(AskError::Refused))
    }

    fn events(&self) -> EventReceiver {
        self.caller.events.listen()
    }
}

impl Endpoint for CallerSurface {
    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Option<Box<RawValue>>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, ErrorShape>> {
        Box::pin(methods::answer_json(self.asked(), method, params))
    }

    fn events(&self) -> EventReceiver {
        self.caller.events.listen()
    }
}
