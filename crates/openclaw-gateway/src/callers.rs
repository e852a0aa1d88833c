//! The connected callers, and the events that each of them subscribes to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use openclaw_protocol::chat::ChatEvent;
use openclaw_protocol::connect::caps;
use openclaw_protocol::sessions::ChangedEvent;
use openclaw_protocol::socket::Backlog;
use openclaw_protocol::{Event, EventPayload, EventReceiver, EventSender, Scope};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::socket::Caller;

/// Events buffered for a slow caller. Lost events are reported to it.
const EVENTS: usize = 512;
/// Sessions a caller follows individually; beyond that it follows all.
const FOLLOWED: usize = 256;
/// The beginning of the keys of callers' own sessions. The keys of all others name an agent.
const OWN_SESSION: &str = "caller:";

/// All connected callers.
#[derive(Debug, Default)]
pub(crate) struct Callers {
    connected: Mutex<BTreeMap<u64, Arc<Connected>>>,
    next: AtomicU64,
    /// Incremented when a caller connects or disconnects, or cannot answer a question.
    moves: watch::Sender<u64>,
}

/// A connected caller.
#[derive(Debug)]
pub(crate) struct Connected {
    id: u64,
    caller: Caller,
    events: EventSender,
    /// What waits in its socket, if it has one.
    backlog: OnceLock<Arc<Backlog>>,
    follows: Mutex<BTreeSet<String>>,
    follows_all: AtomicBool,
    /// Cancelled when it has disconnected.
    gone: CancellationToken,
}

impl Connected {
    /// Identifies the connection.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Who has connected.
    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Counts what waits in its socket as not received.
    pub(crate) fn sends_through(&self, backlog: Arc<Backlog>) {
        let _ = self.backlog.set(backlog);
    }

    /// Subscribes to the events of a session.
    pub(crate) fn follow(&self, session: &str) {
        let mut follows = self.follows.lock();
        if follows.len() >= FOLLOWED {
            self.follow_all();
        } else {
            follows.insert(session.to_owned());
        }
    }

    /// Unsubscribes from the events of a session.
    pub(crate) fn unfollow(&self, session: &str) {
        self.follows.lock().remove(session);
    }

    /// Subscribes to the events of all sessions.
    pub(crate) fn follow_all(&self) {
        self.follows_all.store(true, Ordering::Relaxed);
    }

    fn is_following(&self, session: &str) -> bool {
        self.follows_all.load(Ordering::Relaxed) || self.follows.lock().contains(session)
    }

    /// What cancels a run that it starts.
    pub(crate) fn cancels_run(&self) -> CancellationToken {
        match self.has(caps::ENDS_RUNS) {
            true => self.gone.child_token(),
            false => CancellationToken::new(),
        }
    }

    /// Whether it may approve calls.
    pub(crate) fn decides(&self) -> bool {
        Scope::Approvals.is_in(&self.caller.scopes)
    }

    /// Whether it shows requests for approval in this session, and may answer them.
    pub(crate) fn decides_in(&self, session: Option<&str>) -> bool {
        let sees =
            || !self.has(caps::OWN_APPROVALS) || session.is_some_and(|it| self.is_following(it));
        self.decides() && sees()
    }

    /// Whether it shows servers' questions in this session.
    fn sees_questions_of(&self, session: &str) -> bool {
        let sees_all = || self.has(caps::ALL_QUESTIONS) && !session.starts_with(OWN_SESSION);
        self.is_following(session) || sees_all()
    }

    /// Whether it answers servers' elicitations for one of these sessions.
    pub(crate) fn answers_for(&self, sessions: &[String]) -> bool {
        self.can_be_asked() && sessions.iter().any(|session| self.sees_questions_of(session))
    }

    /// Whether it supports elicitations.
    pub(crate) fn can_be_asked(&self) -> bool {
        self.decides() && self.has(caps::ELICITATION)
    }

    fn follows_chat(&self, session: &str, assembles: bool) -> bool {
        self.has(caps::DELTA_TEXT) == assembles && self.is_following(session)
    }

    fn has(&self, capability: &str) -> bool {
        self.caller.caps.iter().any(|cap| cap == capability)
    }

    /// The key of a session that belongs to this caller alone, for calls outside any other session.
    pub(crate) fn own_session(&self) -> String {
        format!("{OWN_SESSION}{}", self.id)
    }

    /// Subscribes to its events.
    pub(crate) fn events(&self) -> EventReceiver {
        self.events.listen()
    }

    /// Sends it an event.
    pub(crate) fn tell(&self, payload: impl EventPayload) {
        self.events.tell(Event::new(payload));
    }

    /// Its name in the audit log.
    pub(crate) fn name(&self) -> String {
        let name = self.caller.client.display_name.clone();
        name.unwrap_or_else(|| format!("{:?}", self.caller.client.id).to_lowercase())
    }
}

impl Callers {
    pub(crate) fn add(&self, caller: Caller) -> Arc<Connected> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let connected = Arc::new(Connected {
            id,
            caller,
            events: EventSender::new(EVENTS),
            backlog: OnceLock::new(),
            follows: Mutex::default(),
            follows_all: AtomicBool::new(false),
            gone: CancellationToken::new(),
        });
        self.connected.lock().insert(id, Arc::clone(&connected));
        self.changed();
        connected
    }

    pub(crate) fn remove(&self, id: u64) {
        if let Some(caller) = self.connected.lock().remove(&id) {
            caller.gone.cancel();
        }
        self.changed();
    }

    /// Has those who wait for a change of the callers look again.
    pub(crate) fn changed(&self) {
        self.moves.send_modify(|moves| *moves += 1);
    }

    /// Waits until no caller for which `decides` holds has been connected for some time.
    pub(crate) async fn without_deciders(
        &self,
        decides: impl Fn(&Connected) -> bool,
        for_long: impl Fn() -> Duration,
    ) {
        let some_decide = |_: &u64| self.connected.lock().values().any(|caller| decides(caller));
        let mut moves = self.moves.subscribe();
        loop {
            // The sender is owned by `self` and cannot be dropped.
            let _ = moves.wait_for(|moves| !some_decide(moves)).await;
            if timeout(for_long(), moves.wait_for(some_decide)).await.is_err() {
                return;
            }
        }
    }

    /// Number of messages that the slowest caller has not received yet, and how long the oldest one
    /// has waited, of all callers.
    pub(crate) fn behind(&self) -> (usize, Duration) {
        let callers = self.connected.lock();
        let of_each = callers.values().map(|caller| {
            let backlog = caller.backlog.get();
            let queued = backlog.map_or(0, |backlog| backlog.messages());
            (caller.events.waiting() + queued, backlog.map_or(Duration::ZERO, |it| it.age()))
        });
        of_each.fold((0, Duration::ZERO), |most, one| (most.0.max(one.0), most.1.max(one.1)))
    }

    /// The connected callers.
    pub(crate) fn all(&self) -> Vec<Arc<Connected>> {
        self.connected.lock().values().map(Arc::clone).collect()
    }

    /// Number of connected callers.
    pub(crate) fn count(&self) -> usize {
        self.connected.lock().len()
    }

    /// Sends an event to all callers that may read.
    pub(crate) fn tell_all(&self, payload: impl EventPayload) {
        self.tell(payload, |caller| Scope::Read.is_in(&caller.caller.scopes));
    }

    /// Sends an event to the callers that follow a session, except one.
    pub(crate) fn send_to_followers(
        &self,
        session: &str,
        except: Option<u64>,
        payload: impl EventPayload,
    ) {
        let is_meant = |it: &Connected| Some(it.id) != except && it.is_following(session);
        self.tell(payload, is_meant);
    }

    /// Sends a chat event to the callers that follow a session and assemble deltas, or to those that
    /// do not.
    pub(crate) fn send_chat(&self, session: &str, assembles: bool, event: ChatEvent) {
        self.tell(event, |caller| caller.follows_chat(session, assembles));
    }

    /// Whether there is a caller for [`send_chat`](Self::send_chat).
    pub(crate) fn has_chat_follower(&self, session: &str, assembles: bool) -> bool {
        self.connected.lock().values().any(|caller| caller.follows_chat(session, assembles))
    }

    /// Tells the callers that follow a session, and do not ask for its row themselves, that it has
    /// changed.
    pub(crate) fn send_changed(&self, session: &str, event: ChangedEvent) {
        self.tell(event, |it| it.follows_chat(session, false));
    }

    /// Sends an event to the callers that show approvals of a session. Returns their number.
    pub(crate) fn send_to_approvers(
        &self,
        session: Option<&str>,
        payload: impl EventPayload,
    ) -> usize {
        let asked =
            self.connected.lock().values().filter(|caller| caller.decides_in(session)).count();
        if asked > 0 {
            self.tell(payload, |caller| caller.decides_in(session));
        }
        asked
    }

    /// Whether a caller that may approve calls shows servers' questions in a session.
    pub(crate) fn has_decider(&self, session: &str) -> bool {
        self.connected
            .lock()
            .values()
            .any(|caller| caller.decides() && caller.sees_questions_of(session))
    }

    /// Ids of the callers that answer elicitations for one of these sessions.
    pub(crate) fn who_answers_for(&self, sessions: &[String]) -> BTreeSet<u64> {
        let connected = self.connected.lock();
        let meant = connected.values().filter(|caller| caller.answers_for(sessions));
        meant.map(|caller| caller.id).collect()
    }

    /// Sends an event to the callers with these ids.
    pub(crate) fn send_to_these(&self, these: &BTreeSet<u64>, payload: impl EventPayload) {
        self.tell(payload, |caller| these.contains(&caller.id));
    }

    /// Waits until none of these callers is connected.
    pub(crate) async fn all_left(&self, these: &BTreeSet<u64>) {
        let none_left = |_: &u64| !self.connected.lock().keys().any(|id| these.contains(id));
        // The sender is owned by `self` and cannot be dropped.
        let _ = self.moves.subscribe().wait_for(none_left).await;
    }

    /// Sends an event to one caller. Returns whether it is still connected.
    pub(crate) fn send_to_one(&self, id: u64, payload: impl EventPayload) -> bool {
        let is_there = self.connected.lock().contains_key(&id);
        self.tell(payload, |caller| caller.id == id);
        is_there
    }

    fn tell(&self, payload: impl EventPayload, is_meant: impl Fn(&Connected) -> bool) {
        let meant: Vec<Arc<Connected>> = self
            .connected
            .lock()
            .values()
            .filter(|caller| is_meant(caller))
            .map(Arc::clone)
            .collect();
        if meant.is_empty() {
            return;
        }
        let event = Event::new(payload);
        meant.iter().for_each(|caller| caller.events.tell(event.clone()));
    }
}
