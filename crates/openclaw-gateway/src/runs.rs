//! The turns that run, wait, or are over: one at a time for each session, in the order in which they
//! came.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use openclaw_protocol::chat::SendStatus;
use tokio::sync::{Notify, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;

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

#[derive(Debug, Default)]
struct Table {
    active: HashMap<String, Active>,
    over: HashMap<String, SendStatus>,
    order: VecDeque<String>,
    /// One turn at a time.
    turns: HashMap<String, Arc<tokio::sync::Mutex<()>>>,
}

#[derive(Debug)]
struct Active {
    session: String,
    cancel: CancellationToken,
}

/// What becomes of a message.
#[derive(Debug)]
pub(crate) enum Begun {
    /// It is to be run.
    New(Run),
    /// It was sent before.
    Known(SendStatus),
    /// There are too many.
    TooMany(&'static str),
}

/// A turn, from the moment that it is wanted. When it is dropped, it is over.
#[derive(Debug)]
pub(crate) struct Run {
    runs: Arc<RunsHandle>,
    pub(crate) id: String,
    pub(crate) session: String,
    pub(crate) cancel: CancellationToken,
    turn: Arc<tokio::sync::Mutex<()>>,
    pub(crate) ended: SendStatus,
}

/// How a run finds back to its table.
type RunsHandle = crate::gateway::Gateway;

impl Runs {
    fn lock(&self) -> std::sync::MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(gateway: &Arc<crate::gateway::Gateway>, id: &str, session: &str) -> Begun {
        let mut table = gateway.runs.lock();
        if table.active.contains_key(id) {
            return Begun::Known(SendStatus::InFlight);
        }
        if let Some(status) = table.over.get(id) {
            return Begun::Known(*status);
        }
        if table.active.len() >= MAX_RUNS {
            return Begun::TooMany("too many turns run at once; try again later");
        }
        if table.active.values().filter(|run| run.session == session).count() >= MAX_OF_SESSION {
            return Begun::TooMany("too many messages wait in this session");
        }
        let cancel = CancellationToken::new();
        let active = Active { session: session.to_owned(), cancel: cancel.clone() };
        table.active.insert(id.to_owned(), active);
        let turn = Arc::clone(table.turns.entry(session.to_owned()).or_default());
        Begun::New(Run {
            runs: Arc::clone(gateway),
            id: id.to_owned(),
            session: session.to_owned(),
            cancel,
            turn,
            ended: SendStatus::Error,
        })
    }

    /// Ends the turns of a session, or one of them; which they were.
    pub(crate) fn cancel(&self, session: &str, id: Option<&str>) -> Vec<String> {
        let table = self.lock();
        let meant = table.active.iter().filter(|(run, active)| {
            active.session == session && id.is_none_or(|id| id == run.as_str())
        });
        meant
            .map(|(run, active)| {
                active.cancel.cancel();
                run.clone()
            })
            .collect()
    }

    pub(crate) fn cancel_all(&self) {
        self.lock().active.values().for_each(|run| run.cancel.cancel());
    }

    /// Whether a turn of this session runs or waits.
    pub(crate) fn is_active(&self, session: &str) -> bool {
        self.lock().active.values().any(|run| run.session == session)
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

    fn end(&self, run: &Run) {
        let mut table = self.lock();
        table.active.remove(&run.id);
        table.over.insert(run.id.clone(), run.ended);
        table.order.push_back(run.id.clone());
        while table.order.len() > REMEMBERED {
            if let Some(oldest) = table.order.pop_front() {
                table.over.remove(&oldest);
            }
        }
        // Nobody else holds it: the table, and this run.
        if Arc::strong_count(&run.turn) <= 2 {
            table.turns.remove(&run.session);
        }
        drop(table);
        self.is_idle.notify_waiters();
    }
}

impl Run {
    /// Waits for its turn in the session.
    pub(crate) async fn turn(&self) -> Option<OwnedMutexGuard<()>> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => None,
            turn = Arc::clone(&self.turn).lock_owned() => Some(turn),
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.runs.runs.end(self);
    }
}
