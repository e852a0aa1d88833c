//! The turns that run, wait, or are over: one at a time for each session, in the order in which they
//! came.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures_util::FutureExt as _;
use openclaw_protocol::chat::SendStatus;
use tokio::sync::{Notify, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;

use crate::gateway::Gateway;

/// So many turns may run and wait, in all and for one session.
const MAX_RUNS: usize = 1_024;
const MAX_OF_SESSION: usize = 32;
/// So many that are over are remembered, to recognise a message that is sent twice.
const REMEMBERED: usize = 2_048;

/// The turns that run, wait, or are over.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    table: Mutex<Table>,
    is_idle: Notify,
}

/// What tells a run from all others. Ids are made by callers, and two of them that talk in different
/// sessions may come upon the same.
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
    /// One turn at a time. Those of sessions in which nothing happens are gone.
    turns: HashMap<String, Weak<tokio::sync::Mutex<()>>>,
}

#[derive(Debug)]
struct Active {
    cancel: CancellationToken,
    /// All that is left is to tell its end.
    is_over: bool,
}

/// What becomes of a message.
pub(crate) enum Begun {
    /// It is to be run.
    New(Run),
    /// It was sent before.
    Known(SendStatus),
    /// It cannot be run now.
    NotNow(&'static str),
}

/// A turn, from the moment that it is wanted. When it is dropped, it is over.
pub(crate) struct Run {
    gateway: Arc<Gateway>,
    pub(crate) id: String,
    pub(crate) session: String,
    pub(crate) cancel: CancellationToken,
    place: Place,
    /// How it ended; as long as there is nothing, it may be sent again as if it had never been there.
    pub(crate) ended: Option<SendStatus>,
}

/// A place in the row of those who want to speak in a session.
enum Place {
    Waiting(Pin<Box<dyn Future<Output = OwnedMutexGuard<()>> + Send + Sync>>),
    First(OwnedMutexGuard<()>),
    Left,
}

impl Place {
    /// Goes to the end of the row, now: tasks begin in any order.
    fn take(turn: Arc<tokio::sync::Mutex<()>>) -> Self {
        let mut waiting = Box::pin(tokio::task::unconstrained(turn.lock_owned()));
        match waiting.as_mut().now_or_never() {
            Some(turn) => Self::First(turn),
            None => Self::Waiting(waiting),
        }
    }
}

impl Runs {
    fn lock(&self) -> std::sync::MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(gateway: &Arc<Gateway>, id: &str, session: &str) -> Begun {
        let mut table = gateway.runs.lock();
        // Looked at under the lock: whoever stops sees either this run or none to come.
        if gateway.ending.is_cancelled() {
            return Begun::NotNow("the gateway is stopping");
        }
        let name = Name { session: session.to_owned(), id: id.to_owned() };
        if let Some(status) = table.over.get(&name) {
            return Begun::Known(*status);
        }
        if table.active.contains_key(&name) {
            return Begun::Known(SendStatus::InFlight);
        }
        if table.active.len() >= MAX_RUNS {
            return Begun::NotNow("too many turns are running; retry later");
        }
        if table.active.keys().filter(|run| run.session == session).count() >= MAX_OF_SESSION {
            return Begun::NotNow("too many messages are queued in this session");
        }
        let cancel = CancellationToken::new();
        table.active.insert(name, Active { cancel: cancel.clone(), is_over: false });
        let turn = table.turns.get(session).and_then(Weak::upgrade).unwrap_or_default();
        table.turns.insert(session.to_owned(), Arc::downgrade(&turn));
        Begun::New(Run {
            gateway: Arc::clone(gateway),
            id: id.to_owned(),
            session: session.to_owned(),
            cancel,
            place: Place::take(turn),
            ended: None,
        })
    }

    /// Ends the turns of a session, or one of them; which they were.
    pub(crate) fn cancel(&self, session: &str, id: Option<&str>) -> Vec<String> {
        let table = self.lock();
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
        self.lock().active.values().for_each(|run| run.cancel.cancel());
    }

    /// Whether a turn of this session runs or waits.
    pub(crate) fn is_active(&self, session: &str) -> bool {
        self.lock().active.iter().any(|(run, active)| run.session == session && !active.is_over)
    }

    /// How many run or wait.
    pub(crate) fn count(&self) -> usize {
        self.lock().active.len()
    }

    /// Waits until none runs.
    pub(crate) async fn drained(&self) {
        loop {
            let idle = self.is_idle.notified();
            if self.count() == 0 {
                return;
            }
            idle.await;
        }
    }

    fn remember(&self, run: &Run) {
        let mut table = self.lock();
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

impl Run {
    fn name(&self) -> Name {
        Name { session: self.session.clone(), id: self.id.clone() }
    }

    /// Waits for its turn in the session; none if it was cancelled before.
    pub(crate) async fn turn(&mut self) -> Option<OwnedMutexGuard<()>> {
        match std::mem::replace(&mut self.place, Place::Left) {
            _ if self.cancel.is_cancelled() => None,
            Place::Left => None,
            Place::First(turn) => Some(turn),
            Place::Waiting(waiting) => tokio::select! {
                biased;
                () = self.cancel.cancelled() => None,
                turn = waiting => Some(turn),
            },
        }
    }

    /// Nothing more will happen. Before its end is told: whoever hears of it finds it so.
    pub(crate) fn over(&mut self, ended: SendStatus) {
        self.ended = Some(ended);
        self.gateway.runs.remember(self);
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let runs = &self.gateway.runs;
        runs.remember(self);
        self.place = Place::Left;
        let mut table = runs.lock();
        table.active.remove(&self.name());
        table.turns.retain(|_, turn| turn.strong_count() > 0);
        drop(table);
        runs.is_idle.notify_waiters();
    }
}
