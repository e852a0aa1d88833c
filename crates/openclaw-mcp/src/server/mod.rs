//! One server, for all agents that connect to it in the same way: its supervisor, the cache of its inventory, its limits, its
//! figures.

pub mod backoff;
pub mod dial;
mod health;
pub mod latency;
pub mod limiter;
pub mod live;
pub mod log;
pub mod status;
pub mod supervisor;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use openclaw_backoff::Jitter;
use openclaw_config::{Connection, HttpFlavour, ServerName, Transport};
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use crate::connection::remote::{self, Flavour, RemoteError};
use crate::fleet::StartMode;
use crate::fleet::events::{Events, Users};
use crate::fleet::shared_treatment::Upkeep;
use crate::inventory::cache::{InventoryCache, Revision};
use crate::inventory::{EVERYTHING, Inventory};
use crate::server::backoff::{Backoff, RestartLimit};
use crate::server::dial::{ServerDial, Surroundings};
use crate::server::latency::CallStats;
use crate::server::limiter::Limiter;
use crate::server::live::LiveConnection;
use crate::server::log::ServerLog;
use crate::server::status::ServerState;
use crate::server::status::{AuthKind, ServerStatus, TransportKind};
use crate::server::supervisor::{Snapshot, Supervisor, Trouble};
use crate::store::memory::{Memory, Remembered};

/// A server that is being looked after. When it is dropped, it is ended.
#[derive(Debug)]
pub struct Server {
    name: ServerName,
    connection: Connection,
    cache: Arc<InventoryCache>,
    pub(crate) stats: CallStats,
    pub(crate) limiter: Limiter,
    /// How it is kept for all agents that use it.
    upkeep: watch::Sender<Upkeep>,
    restart_limit: RestartLimit,
    start: StartMode,
    /// Whether it takes one call at a time, and whose turn it is then.
    one_at_a_time: AtomicBool,
    turn: Semaphore,
    users: Users,
    /// A call was answered with 401, and none has gone well since.
    was_refused: AtomicBool,
    supervisor: Supervisor<LiveConnection>,
    snapshots: watch::Receiver<Snapshot<LiveConnection>>,
}

/// What all servers of a fleet have in common.
#[derive(Debug, Clone)]
pub(crate) struct Common {
    pub(crate) surroundings: Surroundings,
    pub(crate) revision: Revision,
    /// How many may connect at once.
    pub(crate) turns: Arc<Semaphore>,
    pub(crate) folders: Folders,
    /// Where changes of state are told.
    pub(crate) events: Events,
    /// Whether servers that fail or are lost are tried again.
    pub(crate) tries_again: bool,
    /// Which servers start at once.
    pub(crate) start: StartMode,
}

/// Where things are kept from one run to the next; nothing is kept where there is no folder.
#[derive(Debug, Clone, Default)]
pub struct Folders {
    /// What was learnt about servers.
    pub catalogue: Option<std::path::PathBuf>,
    /// What servers wrote.
    pub logs: Option<std::path::PathBuf>,
}

/// The end of a server.
pub(crate) type Ended = supervisor::Ended<LiveConnection>;

/// The servers whose place a new one takes.
#[derive(Debug, Default)]
pub(crate) struct Predecessors {
    /// It is connected to after these have ended.
    pub(crate) ended: Vec<Ended>,
    /// What is shown until it has been listed, so that calls wait for it instead of finding nothing.
    pub(crate) inventory: Option<Arc<Inventory>>,
}

/// Why a server cannot be used now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("MCP server '{server}' is not available: {}", self.reason())]
pub struct Unavailable {
    /// Its name.
    pub server: String,
    /// Its state.
    pub state: ServerState,
    /// What went wrong.
    pub trouble: Option<Trouble>,
}

fn words(state: ServerState) -> &'static str {
    match state {
        ServerState::Disabled => "disabled",
        ServerState::Idle => "not started yet",
        ServerState::Connecting => "still connecting",
        ServerState::Ready => "connection lost",
        ServerState::NeedsAuth => "login required",
        ServerState::Restarting => "restarting",
        ServerState::Failed => "failed",
        ServerState::Closed => "closed",
    }
}

impl Unavailable {
    /// The same for a model: what went wrong may quote the server, and is for people only.
    pub fn for_model(&self) -> String {
        format!("MCP server '{}' is not available: {}.", self.server, words(self.state))
    }

    /// Its state and what went wrong, in words for people.
    pub fn reason(&self) -> String {
        match &self.trouble {
            Some(trouble) => format!("{} ({})", words(self.state), trouble.message),
            None => words(self.state).to_owned(),
        }
    }
}

impl Server {
    /// Begins to look after a server.
    pub(crate) fn start(
        name: ServerName,
        connection: Connection,
        upkeep: Upkeep,
        predecessors: Predecessors,
        common: &Common,
    ) -> Self {
        let users = Users::default();
        let key = name.as_str();
        let memory = match &common.folders.catalogue {
            Some(folder) => Memory::of(folder, key, &connection),
            None => Memory::none(),
        };
        let log = match &common.folders.logs {
            Some(folder) => ServerLog::at(folder, key),
            None => ServerLog::none(),
        };
        let log = log.without_secrets(common.surroundings.resolver.redactor().clone());
        let Predecessors { ended, inventory } = predecessors;
        let lazy = common.start.waits(key, upkeep.lazy);
        // Only the tools of a lazy one are shown before it runs, and those of one that is replaced.
        let Remembered { manner, inventory } = match lazy {
            true => memory.recall(),
            false => Remembered {
                manner: memory.recall_manner(),
                inventory: inventory.map(|it| Inventory::clone(&it)).unwrap_or_default(),
            },
        };
        let cache = InventoryCache::new(key, inventory, common.revision.clone(), memory);
        let cache = Arc::new(cache);
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
            surroundings: common.surroundings.clone(),
            users: users.clone(),
            turns: Arc::clone(&common.turns),
            cache: Arc::clone(&cache),
            log: log.clone(),
            known_era: manner.era,
            known_flavour: manner.flavour,
            offer: None,
            tried_older: false,
            stays: common.tries_again,
        };
        let teller = common.events.teller(key, &users);
        let supervisor =
            Supervisor::start_observed(key.to_owned(), dial, backoff, lazy, log, teller);
        let snapshots = supervisor.snapshots();
        Self {
            limiter,
            upkeep,
            restart_limit,
            start: common.start.clone(),
            one_at_a_time,
            turn: Semaphore::new(1),
            stats: CallStats::default(),
            users,
            was_refused: AtomicBool::new(false),
            name,
            connection,
            cache,
            supervisor,
            snapshots,
        }
    }

    /// Its name.
    pub fn name(&self) -> &ServerName {
        &self.name
    }

    /// How it is connected to. How it is treated is a matter of each agent that uses it.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Whether it is connected to when it is first used.
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

    /// Keeps it in another way from now on, without touching the connection and the calls in flight.
    pub(crate) fn keep(&self, upkeep: Upkeep) {
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

    /// Tries once more to connect to a server that is given up, or about to be tried again (L3).
    pub(crate) fn revive(&self) {
        if matches!(self.snapshots.borrow().state, ServerState::Failed | ServerState::Restarting) {
            self.supervisor.revive();
        }
    }

    /// A turn at a server that takes one call at a time; none at another. Who waits too long gets none.
    pub(crate) async fn turn(
        &self,
        patience: Duration,
    ) -> Result<Option<SemaphorePermit<'_>>, Elapsed> {
        if !self.one_at_a_time.load(Ordering::Relaxed) {
            return Ok(None);
        }
        // It is never closed.
        timeout(patience, self.turn.acquire()).await.map(Result::ok)
    }

    /// Its end, to be waited for.
    pub(crate) fn ended(&self) -> Ended {
        self.supervisor.ended()
    }

    /// What it has.
    pub fn cache(&self) -> &InventoryCache {
        &self.cache
    }

    /// Its state, now and from now on.
    pub fn snapshots(&self) -> watch::Receiver<Snapshot<LiveConnection>> {
        self.snapshots.clone()
    }

    /// The server, ready for use. A lazy one is started, one that is on its way is waited for; one that
    /// is in trouble is not.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub async fn ready(&self) -> Result<Arc<LiveConnection>, Unavailable> {
        match self.connected() {
            Some(live) => Ok(live),
            None => self.until_ready().await,
        }
    }

    /// The connection, if there is one now. Nearly always there is: nothing is waited for, and nothing is
    /// cloned but the way to the server.
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
        // Connecting has a time-out of its own; this one is for servers that wait for their turn.
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

    /// Reads the lists of a server that is ready anew, and connects to one that is not; waits for what
    /// comes of it.
    ///
    /// # Errors
    /// Why it cannot be used, or does not list what it has.
    pub async fn refresh(&self) -> Result<(), Unavailable> {
        let live = self.snapshots.borrow().connection.clone();
        let Some(live) = live else {
            let mut snapshots = self.snapshots.clone();
            snapshots.borrow_and_update();
            self.supervisor.refresh().await;
            // Until it has begun, the state is that of before.
            let _ = timeout(self.connect_timeout(), snapshots.changed()).await;
            return self.ready().await.map(|_| ());
        };
        live.list_again(EVERYTHING).await.map_err(|error| Unavailable {
            server: self.name.to_string(),
            state: ServerState::Ready,
            trouble: Some(Trouble::new(format!("listing failed: {error}"))),
        })
    }

    /// A call was answered with 401. If this is still the connection (others may have given it up already),
    /// it is the last thing it was used for: a key that is kept elsewhere may be another one by now, and
    /// is tried once; otherwise somebody must log in.
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
        self.supervisor.needs_auth(Trouble::from(error)).await;
    }

    /// A call went well.
    pub(crate) fn was_let_in(&self) {
        if self.was_refused.load(Ordering::Relaxed) {
            self.was_refused.store(false, Ordering::Relaxed);
        }
    }

    /// Whether nothing is known about it: it never ran, and its tools cannot be seen.
    pub fn is_unknown(&self) -> bool {
        let is_idle = self.snapshots.borrow().state == ServerState::Idle;
        is_idle && self.cache.inventory().tools.is_empty()
    }

    /// Connects to a lazy server before it is used.
    pub fn wake(&self) {
        self.supervisor.wake();
    }

    /// Connects anew, whatever the state.
    pub async fn reconnect(&self) {
        self.supervisor.refresh().await;
    }

    /// Ends the server, and waits until it is gone (L5).
    pub async fn stop(&self) {
        self.supervisor.stop().await;
    }

    /// All that is to be known about it (L9).
    pub fn status(&self) -> ServerStatus {
        let snapshot = self.snapshots.borrow().clone();
        let live = snapshot.connection.as_deref();
        let connection = live.map(LiveConnection::connection);
        let inventory = self.cache.inventory();
        let (configured, target) = reached_by(&self.connection);
        let transport = match connection.and_then(|connection| connection.flavour()) {
            Some(Flavour::Streamable) => TransportKind::Http,
            Some(Flavour::Sse) => TransportKind::Sse,
            None => configured,
        };
        let name = self.name.to_string();
        ServerStatus {
            lazy: self.is_lazy(),
            required: self.is_required(),
            pid: connection.and_then(|connection| connection.pid()),
            session_id: connection.and_then(|connection| connection.session_id()),
            protocol_version: connection.and_then(|connection| connection.about().version.clone()),
            program: connection.and_then(|connection| connection.about().program.clone()),
            uptime_ms: live.map(|live| milliseconds(live.uptime())),
            last_answer_age_ms: connection.map(|connection| milliseconds(connection.last_heard())),
            restarts: snapshot.restarts,
            tools: inventory.tools.len(),
            resources: inventory.resources.len() + inventory.templates.len(),
            prompts: inventory.prompts.len(),
            calls: self.stats.calls(),
            errors: self.stats.errors(),
            p50_ms: self.stats.latency().p50().map(in_milliseconds),
            p95_ms: self.stats.latency().p95().map(in_milliseconds),
            last_error: snapshot.last_error,
            ..ServerStatus::new(name, snapshot.state, transport, target, auth(&self.connection))
        }
    }
}

/// How a server is reached, and at what, as it may be shown.
pub(crate) fn reached_by(connection: &Connection) -> (TransportKind, String) {
    let kind = match &connection.transport {
        Transport::Stdio(_) => TransportKind::Stdio,
        Transport::Http(http) => match http.flavour {
            HttpFlavour::Streamable => TransportKind::Http,
            HttpFlavour::Sse => TransportKind::Sse,
        },
    };
    (kind, connection.gist())
}

pub(crate) fn auth(connection: &Connection) -> AuthKind {
    match &connection.transport {
        Transport::Stdio(_) => AuthKind::None,
        Transport::Http(http) if http.api_key.is_some() => AuthKind::ApiKey,
        Transport::Http(http) => {
            let is_login = |name: &String| name.eq_ignore_ascii_case("authorization");
            let has_header = http.headers.keys().any(is_login) || remote::userinfo::counts(http);
            if has_header { AuthKind::Header } else { AuthKind::None }
        }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// To a hundredth: more would be noise.
fn in_milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 100_000.0).round() / 100.0
}
