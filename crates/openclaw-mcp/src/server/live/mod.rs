//! A server that is connected and listed, for as long as it lives: its lists are kept fresh (T10), and
//! its health is watched (L8).

mod pace;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use openclaw_backoff::Jitter;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep};

use crate::connection::Connection;
use crate::connection::client::Changes;
use crate::fleet::shared_treatment::Upkeep;
use crate::inventory::cache::InventoryCache;
use crate::inventory::{EVERYTHING, Update};
use crate::process::Patience;
use crate::server::health::{self, Patient};
use crate::server::supervisor::{Live, Trouble};
use crate::store::memory::KnownProtocol;
use crate::wire::{CallError, Limits};

use pace::Pace;

/// How long a sign of life may take.
const PING: Limits = Limits { timeout: Duration::from_secs(15), cap: Duration::from_secs(15) };

/// When a server has run for so long, others have started, too, and there is time to write down what it
/// has.
const SETTLED: Duration = Duration::from_secs(1);

/// A server that is connected and listed.
#[derive(Debug)]
pub struct LiveConnection {
    connection: Connection,
    cache: Arc<InventoryCache>,
    upkeep: watch::Receiver<Upkeep>,
    limits: Limits,
    since: Instant,
    is_given_up: AtomicBool,
    is_remembered: AtomicBool,
    heard: ListChanges,
    /// For one reading of the lists at a time: an older one never replaces a newer one.
    turn: Mutex<()>,
}

/// A state of a resource, of a server that tells when it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edition {
    /// The connection: what another one told counts for nothing.
    since: Instant,
    changes: u64,
}

/// What a server said about changes of its lists before they were read.
#[derive(Debug, Clone)]
pub(crate) struct ListChanges {
    changes: watch::Receiver<Changes>,
    known: Changes,
}

impl ListChanges {
    /// Begins to listen. Whoever does so before the lists are read misses no change.
    pub(crate) fn so_far(connection: &Connection) -> Self {
        let mut changes = connection.client().changes();
        let known = *changes.borrow_and_update();
        Self { changes, known }
    }
}

impl LiveConnection {
    pub(crate) fn new(
        connection: Connection,
        cache: Arc<InventoryCache>,
        upkeep: watch::Receiver<Upkeep>,
        limits: Limits,
        heard: ListChanges,
    ) -> Self {
        Self {
            connection,
            cache,
            upkeep,
            limits,
            since: Instant::now(),
            is_given_up: AtomicBool::new(false),
            is_remembered: AtomicBool::new(false),
            heard,
            turn: Mutex::new(()),
        }
    }

    /// Whether the caller is the first to give it up.
    pub(crate) fn gives_up_first(&self) -> bool {
        !self.is_given_up.swap(true, Ordering::Relaxed)
    }

    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// What a resource looked like: as long as this stays the same, so does the resource. None if the
    /// server does not tell when it changes.
    pub fn edition_of(&self, uri: &str) -> Option<Edition> {
        let changes = self.connection.changes_of(uri)?;
        Some(Edition { since: self.since, changes })
    }

    /// For how long it has been connected.
    pub fn uptime(&self) -> Duration {
        self.since.elapsed()
    }

    /// Remembers what it has for the next run.
    async fn remember(&self) {
        self.is_remembered.store(true, Ordering::Relaxed);
        let manner = KnownProtocol::new(self.connection.era(), self.connection.flavour());
        self.cache.remember(manner).await;
    }

    /// The same if it was not done, once there is time for it: nobody waits for that.
    async fn remember_in_time(&self) {
        sleep(SETTLED).await;
        self.remember_at_last().await;
    }

    async fn remember_at_last(&self) {
        if !self.is_remembered.load(Ordering::Relaxed) {
            self.remember().await;
        }
    }

    /// Keeps the lists fresh.
    async fn keep_fresh(&self) {
        let ListChanges { mut changes, mut known } = self.heard.clone();
        let mut pace = Pace::new(Jitter::random());
        let mut upkeep = self.upkeep.clone();
        loop {
            let every = upkeep.borrow_and_update().list_every;
            let changed = tokio::select! {
                told = changes.changed() => {
                    if told.is_err() {
                        return;
                    }
                    sleep(pace.wait(Instant::now())).await;
                    let now = *changes.borrow_and_update();
                    let changed = now.since(known);
                    known = now;
                    changed
                }
                () = sleep_or_never(every) => EVERYTHING,
                Ok(()) = upkeep.changed() => {
                    let resources = upkeep.borrow().resources.clone();
                    self.connection.follow_these(resources).await;
                    continue;
                }
            };
            let _ = self.list_again(changed).await;
            pace.read(Instant::now());
        }
    }

    /// Lists anew what has changed, and updates the cache.
    ///
    /// # Errors
    /// If they cannot be read: the old ones stay.
    pub(crate) async fn list_again(&self, changed: Changes) -> Result<(), CallError> {
        let _turn = self.turn.lock().await;
        let server = self.cache.server();
        match Update::list(server, &self.connection, changed, self.limits).await {
            Ok(update) => {
                if self.cache.update(update) {
                    self.remember().await;
                }
                Ok(())
            }
            // If the connection is lost, that is found out elsewhere.
            Err(error) => {
                tracing::warn!(%server, %error, "its lists cannot be read again");
                Err(error)
            }
        }
    }
}

impl Patient for LiveConnection {
    async fn ping(&self) -> Result<(), CallError> {
        self.connection.ping(PING).await
    }

    fn is_busy(&self) -> bool {
        self.connection.in_flight() > 0
    }

    fn last_heard(&self) -> Duration {
        self.connection.last_heard()
    }
}

async fn sleep_or_never(duration: Option<Duration>) {
    match duration {
        Some(duration) => sleep(duration).await,
        None => std::future::pending().await,
    }
}

impl Live for LiveConnection {
    async fn lost(&self) -> Trouble {
        let keep_fresh = async {
            tokio::join!(self.remember_in_time(), self.keep_fresh(), self.connection.listen());
            std::future::pending::<String>().await
        };
        let message = tokio::select! {
            cause = self.connection.until_closed() => cause,
            cause = health::watch(self) => cause,
            never = keep_fresh => never,
        };
        let last_lines = self.connection.last_words().await;
        let gist = Some("the connection was lost");
        Trouble { message, hint: None, last_lines, gist }
    }

    async fn close(&self) {
        // Side by side: a single command waits for both.
        let closed = self.connection.close(Patience::default());
        tokio::join!(closed, self.remember_at_last());
    }
}
