//! One server, shared by all agents that connect to it in the same way: its supervisor, cached
//! inventory, limits and statistics.

pub mod backoff;
pub mod cache;
mod context;
pub mod dial;
pub mod events;
mod follow;
mod health;
pub mod last_error;
pub mod live;
pub(crate) mod per_client;
pub(crate) mod shared_options;
pub mod status;
pub mod supervisor;
mod unavailable;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use openclaw_backoff::Jitter;
use openclaw_config::{ServerConnection, ServerName, Transport};
use openclaw_metrics::latency::CallStats;
use openclaw_metrics::{ServerInstance, ServerSeries};
use openclaw_oauth::authorizer::Authorizer;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use crate::inventory::{EVERYTHING, Inventory};
use crate::server::backoff::{Backoff, RestartLimit};
use crate::server::cache::InventoryCache;
use crate::server::dial::{DialContext, ServerDial};
use crate::server::follow::Followed;
use crate::server::live::LiveConnection;
use crate::server::per_client::ClientConnections;
use crate::server::shared_options::SharedOptions;
use crate::server::status::ServerState;
use crate::server::supervisor::{ServerError, ServerSnapshot, StateChange, Supervisor};
use crate::store::memory::{Memory, Remembered};
pub(crate) use context::SharedContext;
pub use context::{StartMode, StorageFolders};
use openclaw_mcp_client::connection::ServerIntroduction;
use openclaw_mcp_client::connection::remote::{self, Network, RemoteError};
use openclaw_mcp_client::host::Users;
use openclaw_mcp_client::limiter::Limiter;
use openclaw_mcp_client::log::ServerLog;
pub use unavailable::Unavailable;

/// A supervised server. Dropping it stops it.
#[derive(Debug)]
pub struct Server {
    name: ServerName,
    connection: ServerConnection,
    context: DialContext,
    cache: Arc<InventoryCache>,
    pub(crate) stats: CallStats,
    pub(crate) limiter: Limiter,
    /// The settings merged from all agents that use it, and the resources in `followed`.
    upkeep: watch::Sender<SharedOptions>,
    /// Resources that clients of the hub have subscribed to, with the number of subscriptions.
    followed: Followed,
    restart_limit: RestartLimit,
    start: StartMode,
    /// Whether calls are serialized with `turn`.
    one_at_a_time: AtomicBool,
    turn: Arc<Semaphore>,
    users: Users,
    series: Option<Arc<ServerSeries>>,
    /// A call was answered with 401, and none has succeeded since.
    was_refused: AtomicBool,
    /// The connections of clients of the hub that do not use this one.
    clients: ClientConnections,
    supervisor: Supervisor<LiveConnection>,
    snapshots: watch::Receiver<ServerSnapshot<LiveConnection>>,
}

/// A handle to wait until a server has stopped.
pub(crate) type Ended = supervisor::SupervisorEnded<LiveConnection>;

/// The servers that a new one replaces.
#[derive(Debug, Default)]
pub(crate) struct Predecessors {
    /// Connecting waits until these have stopped.
    pub(crate) ended: Vec<Ended>,
    /// Offered until the new server is listed, so that calls wait for it instead of failing.
    pub(crate) inventory: Option<Arc<Inventory>>,
}

impl Server {
    /// Starts supervising a server.
    pub(crate) fn start(
        name: ServerName,
        connection: ServerConnection,
        upkeep: SharedOptions,
        predecessors: Predecessors,
        common: &SharedContext,
    ) -> Self {
        Self::start_for(name, connection, upkeep, predecessors, common, &Users::default())
    }

    /// Like [`start`](Self::start), for these agents.
    fn start_for(
        name: ServerName,
        connection: ServerConnection,
        upkeep: SharedOptions,
        predecessors: Predecessors,
        common: &SharedContext,
        users: &Users,
    ) -> Self {
        let users = users.clone();
        let clients = ClientConnections::new(common, upkeep.per_client);
        let key = name.as_str();
        let memory = match &common.folders.catalogue {
            Some(folder) => Memory::of(folder, key, &connection),
            None => Memory::none(),
        };
        let log = match &common.folders.logs {
            Some(folder) => ServerLog::at(folder, key),
            None => ServerLog::none(),
        };
        let log = log.without_secrets(common.context.resolver.redactor().clone());
        let Predecessors { ended, inventory } = predecessors;
        let lazy = common.start.waits(key, upkeep.lazy);
        // Before its first connection, only a lazy server offers tools (from the cache on disk), or
        // one that replaces another (from its predecessor).
        let Remembered { manner, inventory } = if lazy {
            memory.recall()
        } else {
            // Clients of the hub get it before the server has started.
            let introduced = || match common.context.host.downstream {
                Some(_) => memory.recall_introduction(),
                None => ServerIntroduction::default(),
            };
            let inventory = match inventory {
                Some(predecessors) => Inventory::clone(&predecessors),
                None => Inventory { introduction: introduced(), ..Inventory::default() },
            };
            Remembered { manner: memory.recall_manner(), inventory }
        };
        let trouble = memory.trouble();
        let series = common.metrics.server(key);
        let cache = InventoryCache::new(key, inventory, lazy, common.revision.clone(), memory);
        let cache = Arc::new(cache.counted_in(series.clone()));
        let restart_limit = RestartLimit::new(upkeep.restarts);
        let jitter = Jitter::random();
        let backoff = match &connection.transport {
            _ if !common.tries_again => Backoff::process(RestartLimit::new(0), jitter),
            Transport::Stdio(_) => Backoff::process(restart_limit.clone(), jitter),
            Transport::Http(_) => Backoff::remote(jitter),
        };
        let one_at_a_time = AtomicBool::new(upkeep.one_at_a_time);
        let limiter = Limiter::new(upkeep.rate_limit.map(std::num::NonZero::get));
        let upkeep = watch::Sender::new(upkeep);
        let dial = ServerDial {
            name: key.to_owned(),
            connection: connection.clone(),
            upkeep: upkeep.subscribe(),
            after: ended,
            context: common.context.clone(),
            users: users.clone(),
            turns: Arc::clone(&common.turns),
            cache: Arc::clone(&cache),
            log: log.clone(),
            known_era: manner.era,
            known_flavour: manner.flavour,
            offer: None,
            tried_older: false,
            stays: common.tries_again,
            grant: None,
            series: series.clone(),
        };
        let teller = common.events.teller(key, &users);
        let first = if lazy { ServerState::Idle } else { ServerState::Connecting };
        let instance = series.clone().map(|series| ServerInstance::new(series, first.into()));
        let teller = move |change: StateChange<'_>| {
            trouble.note(change);
            if let Some(instance) = &instance {
                instance.becomes(change.state.into());
            }
            teller(change);
        };
        let supervisor = Supervisor::start(key.to_owned(), dial, backoff, lazy, log, teller);
        let snapshots = supervisor.snapshots();
        Self {
            limiter,
            upkeep,
            followed: Followed::default(),
            restart_limit,
            start: common.start.clone(),
            one_at_a_time,
            turn: Arc::new(Semaphore::new(1)),
            stats: CallStats::default(),
            users,
            series,
            was_refused: AtomicBool::new(false),
            name,
            connection,
            context: common.context.clone(),
            cache,
            clients,
            supervisor,
            snapshots,
        }
    }

    /// Creates the authorizer of a remote server, for a login or a logout. It shares its grant with
    /// the connection through the store. `None` for servers without logins.
    ///
    /// # Errors
    /// If a secret or a setting of the server is invalid.
    pub async fn authorizer(&self) -> Result<Option<Authorizer>, ServerError> {
        let DialContext { resolver, environment, auth, .. } = &self.context;
        let (Transport::Http(http), Some(auth)) = (&self.connection.transport, auth) else {
            return Ok(None);
        };
        let network = Network::of(environment);
        let series = self.series.as_ref();
        let made = remote::authorizer(self.name.as_str(), http, auth, resolver, &network, series);
        Ok(made.await?)
    }

    /// Its name.
    pub fn name(&self) -> &ServerName {
        &self.name
    }

    /// Its connection settings. The options are per agent.
    pub fn connection(&self) -> &ServerConnection {
        &self.connection
    }

    /// Whether it is connected on first use.
    pub fn is_lazy(&self) -> bool {
        self.upkeep.borrow().lazy
    }

    pub(crate) fn is_required(&self) -> bool {
        self.upkeep.borrow().required
    }

    /// The agents that use it.
    pub(crate) fn users(&self) -> &Users {
        &self.users
    }

    /// Applies other settings without touching the connection or the calls in flight.
    pub(crate) fn keep(&self, mut upkeep: SharedOptions) {
        self.keep_clients(&upkeep);
        upkeep.resources.extend(self.followed.resources());
        self.limiter.set(upkeep.rate_limit.map(std::num::NonZero::get));
        self.restart_limit.set(upkeep.restarts);
        self.one_at_a_time.store(upkeep.one_at_a_time, Ordering::Relaxed);
        if !self.start.waits(self.name.as_str(), upkeep.lazy) {
            self.supervisor.wake();
        }
        self.upkeep.send_if_modified(|kept| {
            let is_other = *kept != upkeep;
            *kept = upkeep;
            is_other
        });
    }

    /// Retries immediately if the server has failed or is waiting to be retried (L3).
    pub(crate) fn revive(&self) {
        if matches!(self.snapshots.borrow().state, ServerState::Failed | ServerState::Restarting) {
            self.supervisor.revive();
        }
    }

    /// Returns whether it takes one call at a time.
    pub(crate) fn takes_turns(&self) -> bool {
        self.one_at_a_time.load(Ordering::Relaxed)
    }

    /// Waits for the turn of a call if the server takes one call at a time; `None` if it does not.
    pub(crate) async fn turn(
        &self,
        patience: Duration,
    ) -> Result<Option<OwnedSemaphorePermit>, Elapsed> {
        if !self.takes_turns() {
            return Ok(None);
        }
        // The semaphore is never closed.
        timeout(patience, Arc::clone(&self.turn).acquire_owned()).await.map(Result::ok)
    }

    /// Returns a handle to wait until it has stopped.
    pub(crate) fn ended(&self) -> Ended {
        self.supervisor.ended()
    }

    /// Its cached inventory.
    pub fn cache(&self) -> &InventoryCache {
        &self.cache
    }

    /// Subscribes to its state.
    pub fn snapshots(&self) -> watch::Receiver<ServerSnapshot<LiveConnection>> {
        self.snapshots.clone()
    }

    /// Returns the connection. Starts a lazy server and waits for one that is connecting; fails
    /// immediately for one that is restarting or has failed.
    ///
    /// # Errors
    /// Why it is not available.
    pub async fn ready(&self) -> Result<Arc<LiveConnection>, Unavailable> {
        match self.connected() {
            Some(live) => Ok(live),
            None => self.until_ready().await,
        }
    }

    /// Returns the connection if there is one. The fast path of nearly every call: it does not
    /// wait, and clones only an `Arc`.
    pub(crate) fn connected(&self) -> Option<Arc<LiveConnection>> {
        self.snapshots.borrow().connection.as_ref().map(Arc::clone)
    }

    async fn until_ready(&self) -> Result<Arc<LiveConnection>, Unavailable> {
        let mut snapshots = self.snapshots.clone();
        if snapshots.borrow().state == ServerState::Idle {
            self.supervisor.wake();
        }
        let decided = snapshots.wait_for(|snapshot| {
            !matches!(snapshot.state, ServerState::Idle | ServerState::Connecting)
        });
        // Connecting has its own timeout; this one also covers servers that wait for a permit to
        // connect.
        let waited = timeout(self.connect_timeout().saturating_mul(2), decided).await;
        let snapshot = match waited {
            Ok(Ok(snapshot)) => snapshot.clone(),
            _ => self.snapshots.borrow().clone(),
        };
        snapshot.connection.ok_or_else(|| Unavailable {
            server: self.name.to_string(),
            state: snapshot.state,
            trouble: snapshot.last_error,
        })
    }

    fn connect_timeout(&self) -> Duration {
        self.upkeep.borrow().timeout
    }

    /// Lists a server that is ready again, or connects to one that is not, and waits for the
    /// result.
    ///
    /// # Errors
    /// Why it is not available or cannot be listed.
    pub async fn refresh(&self) -> Result<(), Unavailable> {
        let live = self.snapshots.borrow().connection.clone();
        let Some(live) = live else {
            let mut snapshots = self.snapshots.clone();
            snapshots.borrow_and_update();
            self.supervisor.refresh().await;
            // The state is stale until the supervisor has handled the command.
            let _ = timeout(self.connect_timeout(), snapshots.changed()).await;
            return self.ready().await.map(|_| ());
        };
        live.list_again(EVERYTHING).await.map_err(|error| Unavailable {
            server: self.name.to_string(),
            state: ServerState::Ready,
            trouble: Some(ServerError::new(format!("listing failed: {error}"))),
        })
    }

    /// Handles a 401 response. Does nothing unless `live` is still the current connection and this
    /// is the first caller to give it up. A key that comes from a secret reference may have
    /// changed, so the server is reconnected once; after that a login is required.
    pub(crate) async fn wants_login(&self, live: &Arc<LiveConnection>, challenge: Option<&str>) {
        let is_current = |now: &Arc<LiveConnection>| Arc::ptr_eq(now, live);
        let is_current = self.snapshots.borrow().connection.as_ref().is_some_and(is_current);
        if !is_current || !live.gives_up_first() {
            return;
        }
        let Transport::Http(http) = &self.connection.transport else { return };
        if remote::key_is_kept_elsewhere(http) && !self.was_refused.swap(true, Ordering::Relaxed) {
            return self.supervisor.refresh().await;
        }
        let error = RemoteError::needs_auth(self.name.to_string(), http, challenge);
        self.supervisor.needs_auth(ServerError::from(error)).await;
    }

    /// Records that a call succeeded.
    pub(crate) fn was_let_in(&self) {
        if self.was_refused.load(Ordering::Relaxed) {
            self.was_refused.store(false, Ordering::Relaxed);
        }
    }

    /// Whether nothing is known about it: it is idle and has no cached tools.
    pub fn is_unknown(&self) -> bool {
        let is_idle = self.snapshots.borrow().state == ServerState::Idle;
        is_idle && self.cache.inventory().tools.is_empty()
    }

    /// Connects to a lazy server before its first use.
    pub fn wake(&self) {
        self.supervisor.wake();
    }

    /// Reconnects, whatever the state.
    pub async fn reconnect(&self) {
        self.supervisor.refresh().await;
    }

    /// Stops the server and waits until it is gone (L5).
    pub async fn stop(&self) {
        tokio::join!(self.supervisor.stop(), self.stop_clients());
    }
}
