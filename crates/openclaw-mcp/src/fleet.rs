//! All servers of all agents. Two agents with the very same entry share one connection (L7); one server
//! that fails harms no other (L1).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use openclaw_config::{AgentConfig, AgentId, Config, ServerConfig, ServerName};
use openclaw_tools::Pipeline;
use tokio::sync::{Mutex, Semaphore, broadcast, watch};

use crate::agent::AgentTools;
use crate::attached::Attached;
use crate::bridge::Office;
use crate::dial::Surroundings;
use crate::events::{Events, FleetEvent};
use crate::server::{Common, Folders, Server, Upkeep};
use crate::shelf::Revision;
use crate::supervisor::{Snapshot, State};

/// All servers of all agents. When it is dropped, they are ended; [`Fleet::stop`] waits for that.
#[derive(Debug)]
pub struct Fleet {
    common: Common,
    office: Arc<Office>,
    /// Only this agent's servers are there.
    only: Option<String>,
    agents: ArcSwap<BTreeMap<AgentId, Arc<AgentTools>>>,
    /// One change at a time; none once it is closed.
    is_closed: Mutex<bool>,
}

/// What a fleet is started with, besides the configuration.
#[derive(Debug)]
pub struct Setup {
    /// What all servers are connected to with.
    pub surroundings: Surroundings,
    /// Where things are kept from one run to the next.
    pub folders: Folders,
    /// What watches over calls.
    pub office: Office,
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

/// A server by what makes it one: agents whose entries agree in all of it share it.
struct Wanted<'a> {
    name: &'a ServerName,
    config: &'a ServerConfig,
    upkeep: Upkeep,
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
        let agents = ArcSwap::default();
        let (office, only, is_closed) = (Arc::new(setup.office), setup.agent, Mutex::new(false));
        let fleet = Self { common, office, only, agents, is_closed };
        fleet.agents.store(Arc::new(fleet.crew(config, &[])));
        let fleet = Arc::new(fleet);
        tokio::spawn(report(fleet.begun()));
        fleet
    }

    /// Puts another configuration in force (C9): what has not changed keeps its connection, what is
    /// gone is ended.
    pub async fn apply(&self, config: &Config) {
        let is_closed = self.is_closed.lock().await;
        if *is_closed {
            return;
        }
        // What goes ends before what comes begins: both may want the same port, or the same file.
        let (stay, go): (Vec<_>, Vec<_>) = self
            .servers()
            .into_iter()
            .partition(|server| config.agents.iter().any(|agent| wants(agent, server)));
        join_all(go.iter().map(|server| server.stop())).await;
        self.agents.store(Arc::new(self.crew(config, &stay)));
        self.common.revision.bump();
    }

    /// The agents' tools; servers that are there already are taken over.
    fn crew(&self, config: &Config, there: &[Arc<Server>]) -> BTreeMap<AgentId, Arc<AgentTools>> {
        let mut servers: Vec<Arc<Server>> = there.to_vec();
        servers.iter().for_each(|server| server.users().clear());
        let before = self.agents.load();
        let mut crew = BTreeMap::new();
        let is_here = |agent: &&AgentConfig| {
            self.only.as_deref().is_none_or(|only| agent.id.as_str() == only)
        };
        for agent in config.agents.iter().filter(is_here) {
            let own = self.servers_of(agent, &mut servers);
            own.iter().for_each(|server| server.users().add(&agent.id));
            let told = before.get(&agent.id).map(|tools| tools.told().clone());
            let (revision, told) = (self.common.revision.clone(), told.unwrap_or_default());
            let tools = AgentTools::new(agent, config, own, revision, &self.office, told);
            crew.insert(agent.id.clone(), Arc::new(tools));
        }
        crew
    }

    fn servers_of(&self, agent: &AgentConfig, servers: &mut Vec<Arc<Server>>) -> Vec<Arc<Server>> {
        let upkeep = upkeep(agent);
        let enabled = agent.mcp.servers.iter().filter(|(_, config)| config.enabled);
        enabled
            .map(|(name, config)| {
                let wanted = Wanted { name, config, upkeep };
                if let Some(server) = servers.iter().find(|server| wanted.is(server)) {
                    return Arc::clone(server);
                }
                let server = Server::start(name.clone(), config.clone(), upkeep, &self.common);
                let server = Arc::new(server);
                servers.push(Arc::clone(&server));
                server
            })
            .collect()
    }

    /// The tools of an agent.
    pub fn agent(&self, id: &str) -> Option<Arc<AgentTools>> {
        let agents = self.agents.load();
        agents.iter().find(|(agent, _)| agent.as_str() == id).map(|(_, tools)| Arc::clone(tools))
    }

    /// How tools are called: every call is in the audit log.
    pub fn pipeline(&self) -> Pipeline {
        Pipeline::new(self.office.audit.clone())
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
        let mut servers: Vec<Arc<Server>> = Vec::new();
        for tools in self.agents.load().values() {
            for server in tools.servers() {
                if !servers.iter().any(|known| Arc::ptr_eq(known, server)) {
                    servers.push(Arc::clone(server));
                }
            }
        }
        servers
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
        let mut is_closed = self.is_closed.lock().await;
        *is_closed = true;
        let servers = self.servers();
        join_all(servers.iter().map(|server| server.stop())).await;
        self.office.close().await;
    }
}

impl Wanted<'_> {
    fn is(&self, server: &Server) -> bool {
        let same = self.name == server.name() && self.config == server.config();
        same && self.upkeep == server.upkeep()
    }
}

fn upkeep(agent: &AgentConfig) -> Upkeep {
    let settings = &agent.mcp.settings;
    Upkeep { list_every: settings.tool_discovery_interval, call_cap: settings.call_timeout_cap }
}

/// Whether an agent wants this very server.
fn wants(agent: &AgentConfig, server: &Server) -> bool {
    let upkeep = upkeep(agent);
    let mut enabled = agent.mcp.servers.iter().filter(|(_, config)| config.enabled);
    enabled.any(|(name, config)| Wanted { name, config, upkeep }.is(server))
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
    snapshots: watch::Receiver<Snapshot<Attached>>,
}

impl Start {
    pub(crate) fn of(servers: &[Arc<Server>], held_back: BTreeSet<String>) -> Self {
        let starting = servers.iter().map(|server| Starting {
            name: server.name().to_string(),
            required: server.config().treatment.required,
            snapshots: server.snapshots(),
        });
        Self { servers: starting.collect(), held_back }
    }

    pub(crate) async fn tried(self) -> Tried {
        let Self { servers, held_back } = self;
        let mut missing = held_back;
        let mut tried = Tried { of: servers.len(), ..Tried::default() };
        for mut server in servers {
            let is_tried = |snapshot: &Snapshot<Attached>| snapshot.state != State::Connecting;
            let state = match server.snapshots.wait_for(is_tried).await {
                Ok(snapshot) => snapshot.state,
                Err(_) => State::Closed,
            };
            match state {
                State::Ready | State::Idle => tried.ready += 1,
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
