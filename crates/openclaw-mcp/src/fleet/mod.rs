//! All servers of all agents. Agents with the same connection settings for a server share the
//! connection, even if they treat the server differently (L7). A server that fails affects no other
//! (L1).

pub mod agent;
mod library;
mod notices;
mod reload;
pub mod toolset;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use openclaw_config::{AgentId, Config, ConfigChanges};
use openclaw_metrics::Metrics;
use openclaw_tools::Pipeline;
use openclaw_tools::audit::Audit;
use tokio::sync::{Semaphore, broadcast, watch};
use tokio_util::task::TaskTracker;

use crate::fleet::agent::AgentTools;
use crate::fleet::reload::{EndingServer, ReloadPlan};
use crate::server::cache::Revision;
use crate::server::dial::DialContext;
use crate::server::events::{EventChannel, ServerEvent};
use crate::server::live::LiveConnection;
use crate::server::per_client;
use crate::server::status::ServerState;
use crate::server::supervisor::ServerSnapshot;
use crate::server::{Ended, Server, SharedContext, StartMode, StorageFolders};
use crate::services::CallServices;
use crate::store::pins::Pins;

/// All servers of all agents. Dropping it stops them; [`Fleet::stop`] also waits until they have
/// stopped.
#[derive(Debug)]
pub struct Fleet {
    common: SharedContext,
    services: Arc<CallServices>,
    /// If set, only this agent's servers are started.
    only: Option<String>,
    agents: ArcSwap<BTreeMap<AgentId, Arc<AgentTools>>>,
    /// Serializes configuration changes.
    applied: Mutex<Applied>,
    /// Tasks that stop servers which are no longer used.
    ending: TaskTracker,
}

/// The configuration in force.
#[derive(Debug)]
struct Applied {
    config: Config,
    /// Servers that were told to stop and may still be running.
    leaving: Vec<EndingServer>,
    /// Set by `stop`: no configuration is applied any more.
    is_closed: bool,
}

/// The result of applying a configuration.
#[derive(Debug)]
pub struct Reloaded {
    /// The changes that were applied: which servers were started, stopped, restarted or kept.
    pub changes: ConfigChanges,
    leaving: Vec<Ended>,
}

impl Reloaded {
    /// Waits until the servers that were replaced or removed have stopped. The new configuration is
    /// in force already, so waiting is optional.
    pub async fn settled(self) {
        join_all(self.leaving.into_iter().map(Ended::wait)).await;
    }
}

/// What a fleet needs besides the configuration.
#[derive(Debug)]
pub struct FleetSetup {
    /// The context for connecting to servers.
    pub context: DialContext,
    /// Where caches and logs are stored.
    pub folders: StorageFolders,
    /// Approvals, audit log and other services used by calls.
    pub services: CallServices,
    /// Whether servers that fail or are lost are retried; false for a single command.
    pub tries_again: bool,
    /// Which servers start immediately.
    pub start: StartMode,
    /// If set, only the servers of this agent are started.
    pub agent: Option<String>,
}

impl FleetSetup {
    /// Returns the setup of a fleet that starts all servers, retries them, and stores nothing.
    pub fn new(context: DialContext) -> Self {
        Self {
            context,
            folders: StorageFolders::default(),
            services: CallServices::none(),
            tries_again: true,
            start: StartMode::Eager,
            agent: None,
        }
    }
}

/// The result of a start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tried {
    /// The number of servers that are ready, or idle until their first use.
    pub ready: usize,
    /// The total number of servers.
    pub of: usize,
    /// The required servers that are not ready.
    pub missing: Vec<String>,
}

impl Fleet {
    /// Starts the servers of all agents in parallel, without waiting for them.
    pub fn start(config: &Config, setup: FleetSetup) -> Arc<Self> {
        let at_once = config.agents.iter().map(|agent| agent.mcp.settings.max_concurrent_servers);
        let at_once = at_once.max().unwrap_or(1).clamp(1, Semaphore::MAX_PERMITS);
        let common = SharedContext {
            context: setup.context,
            revision: Revision::default(),
            turns: Arc::new(Semaphore::new(at_once)),
            folders: setup.folders,
            events: EventChannel::default(),
            tries_again: setup.tries_again,
            start: setup.start,
            metrics: setup.services.metrics.clone(),
            places: per_client::places(),
        };
        let services = Arc::new(setup.services);
        let only = setup.agent;
        let config = of_agent(config, only.as_deref());
        let crew = ReloadPlan::first(&config, &common, &services);
        let fleet = Arc::new(Self {
            common,
            services,
            only,
            agents: ArcSwap::from_pointee(crew.agents),
            applied: Mutex::new(Applied { config, leaving: Vec::new(), is_closed: false }),
            ending: TaskTracker::new(),
        });
        tokio::spawn(report(fleet.begun()));
        fleet
    }

    /// Applies another configuration (C9, L10). Only the difference is applied: a server whose
    /// options change keeps its connection and its calls; one whose connection settings change is
    /// restarted, after the old one has stopped.
    ///
    /// When this returns, no call begins under the old configuration any more. Servers that were
    /// removed or replaced are stopped in the background; [`Reloaded::settled`] waits for them.
    pub fn apply(&self, config: &Config) -> Reloaded {
        let mut applied = self.applied();
        if applied.is_closed {
            return Reloaded { changes: applied.config.diff(&applied.config), leaving: Vec::new() };
        }
        // Removing a server also removes its approvals, possibly in another program.
        if let Some(pins) = &self.services.pins {
            pins.look_again();
        }
        let config = of_agent(config, self.only.as_deref());
        let changes = applied.config.diff(&config);
        applied.leaving.retain(|leaving| !leaving.ended.is_over());
        let before = self.agents.load_full();
        let crew = ReloadPlan::next(
            &config,
            &changes,
            &before,
            &applied.leaving,
            &self.common,
            &self.services,
        );
        let ReloadPlan { agents, go } = crew;
        self.agents.store(Arc::new(agents));
        self.common.revision.bump();
        let mut leaving = Vec::new();
        for server in go {
            leaving.push(server.ended());
            applied.leaving.push(EndingServer::new(&server));
            self.ending.spawn(async move { server.stop().await });
        }
        applied.config = config;
        Reloaded { changes, leaving }
    }

    fn applied(&self) -> MutexGuard<'_, Applied> {
        self.applied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the tools of an agent.
    pub fn agent(&self, id: &str) -> Option<Arc<AgentTools>> {
        let agents = self.agents.load();
        agents.iter().find(|(agent, _)| agent.as_str() == id).map(|(_, tools)| Arc::clone(tools))
    }

    /// The seen and approved tools of its servers, if they are stored.
    pub fn pins(&self) -> Option<&Arc<Pins>> {
        self.services.pins.as_ref()
    }

    /// Where calls and servers are counted.
    pub fn metrics(&self) -> &Metrics {
        &self.services.metrics
    }

    /// The audit log.
    pub fn audit(&self) -> &Audit {
        &self.services.audit
    }

    /// The pipeline that runs the calls and writes the audit log.
    pub fn pipeline(&self) -> Pipeline {
        self.services.pipeline()
    }

    /// Whether servers start on first use, as for a single command.
    pub fn starts_on_use(&self) -> bool {
        self.common.start == StartMode::OnUse
    }

    /// Subscribes to the state changes of all servers (L6). A receiver that lags loses the oldest
    /// events and learns how many it lost.
    pub fn events(&self) -> broadcast::Receiver<ServerEvent> {
        self.common.events.hear()
    }

    /// Counts the changes of the lists of all servers, and of the configuration.
    pub fn revision(&self) -> &Revision {
        &self.common.revision
    }

    /// Returns all running servers, each once.
    pub fn servers(&self) -> Vec<Arc<Server>> {
        reload::servers(&self.agents.load())
    }

    /// Gives each client of the hub a connection of its own to the local servers of this name. Returns
    /// whether that is new.
    pub fn separate_clients(&self, server: &str) -> bool {
        let servers = self.servers().into_iter().filter(|it| it.name().as_str() == server);
        servers.filter(|it| it.separate_clients()).count() > 0
    }

    /// Ends the connections of a client of the hub that is gone.
    pub fn end_client(&self, client: u64) {
        // Outside a runtime, dropping them ends them.
        let is_running = tokio::runtime::Handle::try_current().is_ok();
        for own in self.servers().iter().filter_map(|server| server.take_client(client)) {
            if is_running {
                self.ending.spawn(async move { own.stop().await });
            }
        }
    }

    /// Connects to lazy servers that have no cached inventory: otherwise an agent would never see
    /// their tools, and never use them (L2).
    pub fn learn(&self) {
        self.servers().iter().filter(|server| server.is_unknown()).for_each(|server| server.wake());
    }

    /// Waits until every server was tried once.
    pub async fn tried(&self) -> Tried {
        self.begun().tried().await
    }

    /// Waits until every required server was tried once and returns the names of those that are not
    /// ready (C3). Returns immediately if none is required.
    pub async fn missing(&self) -> Vec<String> {
        let mut start = self.begun();
        start.servers.retain(|server| server.required);
        start.tried().await.missing
    }

    fn begun(&self) -> FleetStart {
        let agents = self.agents.load();
        let held_back = agents.values().flat_map(|tools| tools.required_and_held_back());
        FleetStart::new(&self.servers(), held_back.map(ToString::to_string).collect())
    }

    /// Stops all servers in parallel and waits until they are gone, and no token is being renewed.
    pub async fn stop(&self) {
        self.applied().is_closed = true;
        let servers = self.servers();
        join_all(servers.iter().map(|server| server.stop())).await;
        self.ending.close();
        self.ending.wait().await;
        if let Some(auth) = &self.common.context.auth {
            auth.renewals.finished().await;
        }
        self.services.close().await;
    }
}

/// Returns the configuration, restricted to one agent if `only` is set.
fn of_agent(config: &Config, only: Option<&str>) -> Config {
    let mut config = config.clone();
    if let Some(only) = only {
        config.agents.retain(|agent| agent.id.as_str() == only);
    }
    config
}

/// A start in progress. It holds no server, so it does not keep a dropped fleet alive.
pub(crate) struct FleetStart {
    servers: Vec<Starting>,
    /// Required servers that cannot start because their entry is incomplete.
    held_back: BTreeSet<String>,
}

struct Starting {
    name: String,
    required: bool,
    snapshots: watch::Receiver<ServerSnapshot<LiveConnection>>,
}

impl FleetStart {
    pub(crate) fn new(servers: &[Arc<Server>], held_back: BTreeSet<String>) -> Self {
        let starting = servers.iter().map(|server| Starting {
            name: server.name().to_string(),
            required: server.is_required(),
            snapshots: server.snapshots(),
        });
        Self { servers: starting.collect(), held_back }
    }

    pub(crate) async fn tried(self) -> Tried {
        let Self { servers, held_back } = self;
        let mut missing = held_back;
        let mut tried = Tried { of: servers.len(), ..Tried::default() };
        for mut server in servers {
            let is_tried = |snapshot: &ServerSnapshot<LiveConnection>| {
                snapshot.state != ServerState::Connecting
            };
            let state = match server.snapshots.wait_for(is_tried).await {
                Ok(snapshot) => snapshot.state,
                Err(_) => ServerState::Closed,
            };
            match state {
                ServerState::Ready | ServerState::Idle => tried.ready += 1,
                _ if server.required => drop(missing.insert(server.name)),
                _ => {}
            }
        }
        tried.missing = missing.into_iter().collect();
        tried
    }
}

/// Logs the result of the start once (L1).
async fn report(start: FleetStart) {
    let tried = start.tried().await;
    if tried.of > 0 {
        tracing::info!("{} of {} MCP servers are ready", tried.ready, tried.of);
    }
}
