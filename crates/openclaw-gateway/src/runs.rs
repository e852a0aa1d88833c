//! Registry of turns that run, wait or are over. Turns of a session run one at a time, in the order
//! in which they were sent.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Weak};

use futures_util::FutureExt as _;
use openclaw_budget::{BytePermit, ClientBudgets};
use openclaw_protocol::chat::SendStatus;
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;

/// Maximum number of running and waiting turns: in total, and per session.
const MAX_RUNS: usize = 1_024;
const MAX_OF_SESSION: usize = 32;
/// The memory of messages whose turns run or wait: in total, and of a caller.
const MAX_MESSAGES: usize = 256 * 1024 * 1024;
const MAX_OF_CALLER: usize = 128 * 1024 * 1024;
/// Number of finished turns kept to recognize a message that is sent twice.
const REMEMBERED: usize = 2_048;

/// Registry of turns that run, wait or are over.
#[derive(Debug)]
pub(crate) struct Runs {
    table: Mutex<Table>,
    is_idle: Notify,
    /// The memory of messages whose turns run or wait, by the name of the caller.
    messages: ClientBudgets<String>,
    /// Cancelled when no run may begin any more.
    ending: CancellationToken,
}

/// Identifies a run. Ids are chosen by callers, so the same id may occur in two sessions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Name {
    session: String,
    id: String,
}

#[derive(Debug, Default)]
struct Table {
    active: HashMap<Name, Active>,
    over: HashMap<Name, SendStatus>,
    order: VecDeque<Name>,
    /// Serializes the turns of a session. Entries of idle sessions are removed.
    turns: HashMap<String, Weak<tokio::sync::Mutex<()>>>,
}

#[derive(Debug)]
struct Active {
    cancel: CancellationToken,
    /// Only the notification about its end is left.
    is_over: bool,
}

/// The result of starting a run.
pub(crate) enum RunAdmission {
    /// The run was registered.
    New(RegisteredRun),
    /// A run with this id was registered before.
    Known(SendStatus),
    /// The run is rejected for now.
    NotNow(&'static str),
}

/// A registered turn. Dropping it unregisters it.
pub(crate) struct RegisteredRun {
    runs: Arc<Runs>,
    pub(crate) id: String,
    pub(crate) session: String,
    pub(crate) cancel: CancellationToken,
    place: QueuePlace,
    _message: BytePermit,
    /// How it ended. While this is `None`, the message can be sent again as if it were new.
    ended: Option<SendStatus>,
}

/// A place in a session's queue.
enum QueuePlace {
    Waiting(Pin<Box<dyn Future<Output = OwnedMutexGuard<()>> + Send + Sync>>),
    First(OwnedMutexGuard<()>),
    Left,
}

impl QueuePlace {
    /// Joins the queue immediately: spawned tasks may start in any order.
    fn take(turn: Arc<tokio::sync::Mutex<()>>) -> Self {
        let mut waiting = Box::pin(tokio::task::unconstrained(turn.lock_owned()));
        match waiting.as_mut().now_or_never() {
            Some(turn) => Self::First(turn),
            None => Self::Waiting(waiting),
        }
    }
}

impl Runs {
    pub(crate) fn new(ending: CancellationToken) -> Self {
        let messages = ClientBudgets::new(MAX_MESSAGES, MAX_OF_CALLER);
        Self { table: Mutex::default(), is_idle: Notify::default(), messages, ending }
    }

    /// Registers a run for a message of a caller with this many bytes, which `cancel` aborts.
    pub(crate) fn begin(
        self: &Arc<Self>,
        id: &str,
        session: &str,
        (caller, bytes): (&String, usize),
        cancel: CancellationToken,
    ) -> RunAdmission {
        let mut table = self.table.lock();
        // Checked under the lock: a gateway that stops sees this run, or no run starts after it
        // looked.
        if self.ending.is_cancelled() {
            return RunAdmission::NotNow("the gateway is stopping");
        }
        let name = Name { session: session.to_owned(), id: id.to_owned() };
        if let Some(status) = table.over.get(&name) {
            return RunAdmission::Known(*status);
        }
        if table.active.contains_key(&name) {
            return RunAdmission::Known(SendStatus::InFlight);
        }
        if table.active.len() >= MAX_RUNS {
            return RunAdmission::NotNow("too many turns are running; retry later");
        }
        if table.active.keys().filter(|run| run.session == session).count() >= MAX_OF_SESSION {
            return RunAdmission::NotNow("too many messages are queued in this session");
        }
        let Ok(message) = self.messages.of(caller).hold(bytes) else {
            return RunAdmission::NotNow("too many bytes of messages are queued; retry later");
        };
        table.active.insert(name, Active { cancel: cancel.clone(), is_over: false });
        let turn = table.turns.get(session).and_then(Weak::upgrade).unwrap_or_default();
        table.turns.insert(session.to_owned(), Arc::downgrade(&turn));
        RunAdmission::New(RegisteredRun {
            runs: Arc::clone(self),
            id: id.to_owned(),
            session: session.to_owned(),
            cancel,
            place: QueuePlace::take(turn),
            _message: message,
            ended: None,
        })
    }

    /// Cancels the turns of a session, or one of them. Returns their ids.
    pub(crate) fn cancel(&self, session: &str, id: Option<&str>) -> Vec<String> {
        let table = self.table.lock();
        let is_meant = |run: &Name| run.session == session && id.is_none_or(|id| id == run.id);
        let meant = table.active.iter().filter(|(run, _)| is_meant(run));
        meant
            .map(|(run, active)| {
                active.cancel.cancel();
                run.id.clone()
            })
            .collect()
    }

    pub(crate) fn cancel_all(&self) {
        self.table.lock().active.values().for_each(|run| run.cancel.cancel());
    }

    /// Whether a turn of this session runs or waits.
    pub(crate) fn is_active(&self, session: &str) -> bool {
        self.table
            .lock()
            .active
            .iter()
            .any(|(run, active)| run.session == session && !active.is_over)
    }

    /// Ids of the turns of a session that run or wait, in no particular order.
    pub(crate) fn active(&self, session: &str) -> Vec<String> {
        let table = self.table.lock();
        let active = table.active.iter().filter(|(run, it)| run.session == session && !it.is_over);
        active.map(|(run, _)| run.id.clone()).collect()
    }

    /// Waits until a run is over. Never returns for an unknown one.
    pub(crate) async fn ended(&self, id: &str) -> SendStatus {
        loop {
            let mut change = std::pin::pin!(self.is_idle.notified());
            change.as_mut().enable();
            let status = {
                let table = self.table.lock();
                let is_active = table.active.keys().any(|run| run.id == id);
                let over = table.over.iter().find(|(run, _)| run.id == id);
                over.filter(|_| !is_active).map(|(_, status)| *status)
            };
            if let Some(status) = status {
                return status;
            }
            change.await;
        }
    }

    /// Number of turns that run or wait.
    pub(crate) fn count(&self) -> usize {
        self.table.lock().active.len()
    }

    /// Number of sessions with a turn that runs or waits, and of turns that wait for another one.
    pub(crate) fn queue(&self) -> (usize, usize) {
        let table = self.table.lock();
        let sessions: BTreeSet<&str> =
            table.active.keys().map(|run| run.session.as_str()).collect();
        (sessions.len(), table.active.len() - sessions.len())
    }

    /// Waits until no turn runs or waits.
    pub(crate) async fn drained(&self) {
        loop {
            let idle = self.is_idle.notified();
            if self.count() == 0 {
                return;
            }
            idle.await;
        }
    }

    fn remember(&self, run: &RegisteredRun) {
        let mut table = self.table.lock();
        let name = run.name();
        if let Some(active) = table.active.get_mut(&name) {
            active.is_over = true;
        }
        let Some(status) = run.ended else { return };
        if table.over.insert(name.clone(), status).is_none() {
            table.order.push_back(name);
        }
        while table.order.len() > REMEMBERED {
            if let Some(oldest) = table.order.pop_front() {
                table.over.remove(&oldest);
            }
        }
    }
}

impl RegisteredRun {
    fn name(&self) -> Name {
        Name { session: self.session.clone(), id: self.id.clone() }
    }

    /// Waits for its turn in the session. Returns `None` if it is cancelled before.
    pub(crate) async fn turn(&mut self) -> Option<OwnedMutexGuard<()>> {
        match std::mem::replace(&mut self.place, QueuePlace::Left) {
            _ if self.cancel.is_cancelled() => None,
            QueuePlace::Left => None,
            QueuePlace::First(turn) => Some(turn),
            QueuePlace::Waiting(waiting) => tokio::select! {
                biased;
                () = self.cancel.cancelled() => None,
                turn = waiting => Some(turn),
            },
        }
    }

    /// Sets how it has ended if it is dropped before [`over`](Self::over).
    pub(crate) fn ends_with(&mut self, status: SendStatus) {
        self.ended = Some(status);
    }

    /// Marks the turn as over. Must be called before its end is reported, so that observers of the
    /// event find it over.
    pub(crate) fn over(&mut self, ended: SendStatus) {
        self.ended = Some(ended);
        self.runs.remember(self);
    }
}

impl Drop for RegisteredRun {
    fn drop(&mut self) {
        let runs = Arc::clone(&self.runs);
        runs.remember(self);
        self.place = QueuePlace::Left;
        let mut table = runs.table.lock();
        table.active.remove(&self.name());
        table.turns.retain(|_, turn| turn.strong_count() > 0);
        drop(table);
        runs.is_idle.notify_waiters();
    }
}
