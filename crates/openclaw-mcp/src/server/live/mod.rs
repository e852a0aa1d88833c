//! A server that is connected and listed: keeps its lists fresh (T10) and checks its health (L8).

mod pace;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use openclaw_backoff::Jitter;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep};

use crate::inventory::{EVERYTHING, Update};
use crate::server::cache::InventoryCache;
use crate::server::health::{self, HealthCheck};
use crate::server::shared_options::SharedOptions;
use crate::server::supervisor::{Live, ServerError};
use crate::store::memory::KnownProtocol;
use openclaw_mcp_client::connection::Connection;
use openclaw_mcp_client::host::Changes;
use openclaw_mcp_client::process::ShutdownTimeouts;
use openclaw_mcp_client::wire::{CallError, TimeLimits};

use pace::Pace;

/// The timeout of a ping.
const PING: TimeLimits =
    TimeLimits { timeout: Duration::from_secs(15), cap: Duration::from_secs(15) };

/// How long to wait before the inventory is written to disk, so that it does not delay the start of
/// other servers.
const SETTLED: Duration = Duration::from_secs(1);

/// A server that is connected and listed.
#[derive(Debug)]
pub struct LiveConnection {
    connection: Connection,
    cache: Arc<InventoryCache>,
    upkeep: watch::Receiver<SharedOptions>,
    limits: TimeLimits,
    since: Instant,
    is_given_up: AtomicBool,
    is_remembered: AtomicBool,
    heard: ListChanges,
    /// Serializes listing, so that an older result never replaces a newer one.
    turn: Mutex<()>,
}

/// A version of a resource, for servers that notify about its changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceVersion {
    /// When the connection was made: versions of another connection are never equal.
    since: Instant,
    changes: u64,
}

/// Subscription to `list_changed` notifications, with the state before the lists were read.
#[derive(Debug, Clone)]
pub(crate) struct ListChanges {
    changes: watch::Receiver<Changes>,
    known: Changes,
}

impl ListChanges {
    /// Subscribes. Call it before the lists are read, so that no change is missed.
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
        upkeep: watch::Receiver<SharedOptions>,
        limits: TimeLimits,
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

    /// Marks the connection as given up. Returns whether the caller is the first to do so.
    pub(crate) fn gives_up_first(&self) -> bool {
        !self.is_given_up.swap(true, Ordering::Relaxed)
    }

    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Returns the version of a resource: while it stays the same, so does the resource. `None` if
    /// the server does not notify about changes.
    pub fn edition_of(&self, uri: &str) -> Option<ResourceVersion> {
        let changes = self.connection.changes_of(uri)?;
        Some(ResourceVersion { since: self.since, changes })
    }

    /// The time since it was connected.
    pub fn uptime(&self) -> Duration {
        self.since.elapsed()
    }

    /// Writes the inventory to disk for the next run.
    async fn remember(&self) {
        self.is_remembered.store(true, Ordering::Relaxed);
        let manner = KnownProtocol::new(self.connection.era(), self.connection.flavour());
        self.cache.remember(manner).await;
    }

    /// Like `remember`, in the background and only if it was not done yet.
    async fn remember_in_time(&self) {
        sleep(SETTLED).await;
        self.remember_at_last().await;
    }

    async fn remember_at_last(&self) {
        if !self.is_remembered.load(Ordering::Relaxed) {
            self.remember().await;
        }
    }

    /// Lists again after notifications and at the configured interval.
    async fn keep_fresh(&self) {
        let ListChanges { mut changes, mut known } = self.heard.clone();
        let mut pace = Pace::new(Jitter::random(), Instant::now());
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
                    let SharedOptions { resources, log_level, .. } = upkeep.borrow().clone();
                    self.connection.follow_these(resources).await;
                    self.connection.set_log_level(log_level).await;
                    continue;
                }
            };
            let _ = self.list_again(changed).await;
        }
    }

    /// Lists again what has changed, and updates the cache.
    ///
    /// # Errors
    /// If a list cannot be read: the old one stays.
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
            // A lost connection is detected elsewhere.
            Err(error) => {
                tracing::warn!(%server, %error, "cannot refresh the lists");
                Err(error)
            }
        }
    }
}

impl HealthCheck for LiveConnection {
    async fn ping(&self) -> Result<(), CallError> {
        self.connection.ping(PING).await
    }

    fn is_busy(&self) -> bool {
        self.connection.in_flight() > 0
    }

    fn last_activity(&self) -> Duration {
        self.connection.last_activity()
    }
}

async fn sleep_or_never(duration: Option<Duration>) {
    match duration {
        Some(duration) => sleep(duration).await,
        None => std::future::pending().await,
    }
}

impl Live for LiveConnection {
    async fn lost(&self) -> ServerError {
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
        ServerError { message, hint: None, last_lines, gist }
    }

    async fn close(&self) {
        // In parallel: a single command waits for both.
        let closed = self.connection.close(ShutdownTimeouts::default());
        tokio::join!(closed, self.remember_at_last());
    }
}
