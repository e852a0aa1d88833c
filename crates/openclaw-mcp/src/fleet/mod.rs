//! All servers of all agents. Agents that connect to a server in the same way share the connection, however
//! each of them treats it (L7); one server that fails harms no other (L1).

pub mod agent;
pub mod catalogue;
pub mod events;
pub(crate) mod member;
pub mod naming;
mod notices;
mod reload;
pub(crate) mod shared_treatment;
pub mod toolset;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use openclaw_config::{AgentId, Changes, Config};
use openclaw_tools::Pipeline;
use tokio::sync::{Semaphore, broadcast, watch};
use tokio_util::task::TaskTracker;

use crate::call::bridge::CallServices;
use crate::fleet::agent::AgentTools;
use crate::fleet::events::{Events, FleetEvent};
use crate::fleet::reload::{EndingServer, ReloadPlan};
use crate::inventory::cache::Revision;
use crate::server::dial::Surroundings;
use crate::server::live::LiveConnection;
use crate::server::status::ServerState;
use crate::server::supervisor::Snapshot;
use crate::server::{Common, Ended, Folders, Server};

/// All servers of all agents. When it is dropped, they are ended; [`Fleet::stop`] waits for that.
#[derive(Debug)]
pub struct Fleet {
    common: Common,
    services: Arc<CallServices>,
    /// Only this agent's servers are there.
    only: Option<String>,
    agents: ArcSwap<BTreeMap<AgentId, Arc<AgentTools>>>,
    /// One change at a time.
    applied: Mutex<Applied>,
    /// Servers that are being ended, beside those that serve.
    ending: TaskTracker,
}

/// What was applied last.
#[derive(Debug)]
struct Applied {
    config: Config,
    /// Servers that were told to end, and may not have ended yet.
    leaving: Vec<EndingServer>,
    /// Nothing is applied any more.
    is_closed: bool,
}

/// What another configuration changed.
#[derive(Debug)]
pub struct Reloaded {
    /// What was applied: for each server whether it was started, ended, started anew, or kept.
    pub changes: Changes,
    leaving: Vec<Ended>,
}

impl Reloaded {
    /// Waits until the servers have ended that were replaced or removed. The new rules are in force
    /// already; whoever does not wait loses nothing.
    pub async fn settled(self) {
        join_all(self.leaving.into_iter().map(Ended::wait)).await;
    }
}

/// What a fleet is started with, besides the configuration.
#[derive(Debug)]
pub struct Setup {
    /// What all servers are connected to with.
    pub surroundings: Surroundings,
    /// Where things are kept from one run to the next.
    pub folders: Folders,
    /// What watches over calls.
    pub services: CallServices,
    /// Whether servers that fail or are lost are tried again. Not so for a single command.
    pub tries_again: bool,
    /// Which servers start at once.
    pub start: StartMode,
    /// Only the servers of this agent; of all agents, if none is named.
    pub agent: Option<String>,
}

/// Which servers of a fleet start at once. The others start when they are used, and until then show the tools
/// that they had when they last ran.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum StartMode {
    /// All but those that are configured as lazy.
    #[default]
    Eager,
    /// None.
    OnUse,
    /// The server of this name.
    Only(String),
}

impl StartMode {
    /// Whether a server of this name, which may be configured as lazy, waits for its first use.
    pub(crate) fn waits(&self, name: &str, is_lazy: bool) -> bool {
        match self {
            Self::Eager => is_lazy,
            Self::OnUse => true,
            Self::Only(only) => only != name,
        }
    }
}

/// How a start went.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tried {
    /// How many servers are ready, or wait for their first use.
    pub ready: usize,
    /// Of how many.
    pub of: usize,
    /// The servers that the program must not start without, and that are not ready.
    pub missing: Vec<String>,
}

impl Fleet {
    /// Starts the servers of all agents, side by side, and waits for none of them.
    pub fn start(config: &Config, setup: Setup) -> Arc<Self> {
        let at_once = config.agents.iter().map(|agent| agent.mcp.settings.max_concurrent_servers);
        let at_once = at_once.max().unwrap_or(1).clamp(1, Semaphore::MAX_PERMITS);
        let common = Common {
            surroundings: setup.surroundings,
            revision: Revision::default(),
            turns: Arc::new(Semaphore::new(at_once)),
            folders: setup.folders,
            events: Events::default(),
            tries_again: setup.tries_again,
            start: setup.start,
        };
        let (services, only) = (Arc::new(setup.services), setup.agent);
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

    /// Puts another configuration in force (C9, L10). What is applied is the difference to the one before:
    /// a server that is only treated differently keeps its connection and its calls; one that is
    /// connected to differently is started anew, after the old one has ended.
    ///
    /// When this returns, no call begins under the old rules any more. It waits for no server: those that
    /// go are ended beside, and [`Reloaded::settled`] waits for them.
    pub fn apply(&self, config: &Config) -> Reloaded {
        let mut applied = self.applied();
        if applied.is_closed {
            return Reloaded { changes: applied.config.diff(&applied.config), leaving: Vec::new() };
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
        let mut leaving = Vec::new();
        for server in go {
            leaving.push(server.ended());
            applied.leaving.push(EndingServer::of(&server));
            self.ending.spawn(async move { server.stop().await });
        }
        applied.config = config;
        Reloaded { changes, leaving }
    }

    fn applied(&self) -> MutexGuard<'_, Applied> {
        self.applied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tools of an agent.
    pub fn agent(&self, id: &str) -> Option<Arc<AgentTools>> {
        let agents = self.agents.load();
        agents.iter().find(|(agent, _)| agent.as_str() == id).map(|(_, tools)| Arc::clone(tools))
    }

    /// How tools are called: every call is in the audit log.
    pub fn pipeline(&self) -> Pipeline {
        Pipeline::new(self.services.audit.clone())
    }

    /// Whether servers start when they are used, as for a single command.
    pub fn starts_on_use(&self) -> bool {
        self.common.start == StartMode::OnUse
    }

    /// The changes of state of all servers, from now on (L6). Who does not take them for long misses the
    /// oldest, and learns how many.
    pub fn events(&self) -> broadcast::Receiver<FleetEvent> {
        self.common.events.hear()
    }

    /// All servers that run, each once.
    pub fn servers(&self) -> Vec<Arc<Server>> {
        reload::servers(&self.agents.load())
    }

    /// Connects once to lazy servers about which nothing is known: otherwise nobody would ever see their
    /// tools, and use them (L2).
    pub fn learn(&self) {
        self.servers().iter().filter(|server| server.is_unknown()).for_each(|server| server.wake());
    }

    /// Waits until every server was tried once.
    pub async fn tried(&self) -> Tried {
        self.begun().tried().await
    }

    /// Waits until every server was tried that must be there, and names those that are not (C3). Where none
    /// must, there is nothing to wait for.
    pub async fn missing(&self) -> Vec<String> {
        let mut start = self.begun();
        start.servers.retain(|server| server.required);
        start.tried().await.missing
    }

    fn begun(&self) -> Start {
        let agents = self.agents.load();
        let held_back = agents.values().flat_map(|tools| tools.required_and_held_back());
        Start::of(&self.servers(), held_back.map(ToString::to_string).collect())
    }

    /// Ends all servers, side by side, and waits until they are gone.
    pub async fn stop(&self) {
        self.applied().is_closed = true;
        let servers = self.servers();
        join_all(servers.iter().map(|server| server.stop())).await;
        self.ending.close();
        self.ending.wait().await;
        self.services.close().await;
    }
}

/// A configuration with one agent only, or as it is.
fn of_agent(config: &Config, only: Option<&str>) -> Config {
    let mut config = config.clone();
    if let Some(only) = only {
        config.agents.retain(|agent| agent.id.as_str() == only);
    }
    config
}

/// A start that is being waited for. It holds no server: a fleet that is dropped meanwhile ends.
pub(crate) struct Start {
    servers: Vec<Starting>,
    /// Those that are required, and cannot even be tried.
    held_back: BTreeSet<String>,
}

struct Starting {
    name: String,
    required: bool,
    snapshots: watch::Receiver<Snapshot<LiveConnection>>,
}

impl Start {
    pub(crate) fn of(servers: &[Arc<Server>], held_back: BTreeSet<String>) -> Self {
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
            let is_tried =
                |snapshot: &Snapshot<LiveConnection>| snapshot.state != ServerState::Connecting;
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

/// Says once how the start went (L1).
async fn report(start: Start) {
    let tried = start.tried().await;
    if tried.of > 0 {
        tracing::info!("{} of {} MCP servers are ready", tried.ready, tried.of);
    }
}
