//! The hub: the MCP servers of an agent as one MCP server, for other programs (S6).
//!
//! It is the reverse of a connection to a server. A tool call takes the fast lane: its arguments and its
//! result stay JSON text, and it goes through the same pipeline as the calls of the agent (policy,
//! approval, schema, audit). Everything else goes to `rmcp`'s server ([`handler`]), through the front of
//! all our servers ([lines](lines): stdio), or `rmcp`'s own over [HTTP](http).
//!
//! One fleet serves all clients. Each belongs to a [`Principal`], and so do its sessions and its calls.
//! What a server asks or reports during a call goes to the client that the call is made for ([`asks`]).

mod approver;
pub mod asks;
mod call;
mod clean;
mod client;
mod handler;
pub mod http;
mod introduction;
pub mod lines;
mod listen;
mod options;
pub mod relay;
mod search;
mod shape;
mod skills;
mod view;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use openclaw_budget::ByteBudget;
use openclaw_mcp::fleet::Fleet;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_protocol::Principal;
use openclaw_tools::Fallback;
use tokio::io::{AsyncRead, AsyncWrite};

use asks::Asks;
use client::HubClient;
pub use options::{BadOption, HubClientOptions};
use view::OwnNames;

use crate::front::memory::LOCAL;
use crate::front::running::WaitingCalls;

/// The standard streams of this process, for [`lines::serve`].
pub fn stdio() -> (impl AsyncRead + Unpin + Send, impl AsyncWrite + Unpin + Send) {
    rmcp::transport::stdio_pipes()
}

/// The agents of the active configuration.
pub trait HubAgents: Send + Sync + 'static {
    /// Returns the id of an agent; that of the default agent if `name` is `None`.
    fn id_of(&self, name: Option<&str>) -> Option<String>;

    /// Returns what to do with calls that need an approval if the client of an agent cannot ask its
    /// user; `None` if there is no such agent.
    fn fallback(&self, id: &str) -> Option<Fallback>;

    /// Returns how many calls per minute each client may make; `None` for no limit.
    fn rate_limit(&self) -> Option<u32>;

    /// Whether a client without the scope for approvals may approve its own calls, each once.
    fn lets_clients_approve(&self) -> bool;
}

/// Who makes requests, and the memory that they may take.
#[derive(Debug, Clone)]
pub struct HubCaller {
    /// Who it is.
    pub principal: Principal,
    /// The memory of the principal.
    pub budget: Arc<ByteBudget>,
}

impl HubCaller {
    /// The operator, in their own process.
    #[must_use]
    pub fn local() -> Self {
        Self { principal: Principal::Operator, budget: ByteBudget::new(LOCAL) }
    }
}

/// Offers the servers of agents to clients of other programs.
pub struct Hub {
    fleet: Arc<Fleet>,
    agents: Arc<dyn HubAgents>,
    asks: Arc<Asks>,
    /// The calls of all clients that wait for input.
    waiting: WaitingCalls<HubClient>,
    next_client: AtomicU64,
    /// By the id of the agent.
    own_names: Mutex<HashMap<String, Arc<OwnNames>>>,
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}

/// Why a client cannot be served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HubError {
    /// There is no such agent.
    #[error("unknown agent `{0}`")]
    UnknownAgent(String),
    /// The agent has no such server.
    #[error("agent `{agent}` has no MCP server `{server}`")]
    UnknownServer {
        /// The agent.
        agent: String,
        /// The server.
        server: String,
    },
}

impl Hub {
    /// Creates a hub. `asks` must be the one that the fleet was started with.
    pub fn new(fleet: Arc<Fleet>, agents: Arc<dyn HubAgents>, asks: Arc<Asks>) -> Arc<Self> {
        asks.separates_by(&fleet);
        Arc::new(Self {
            fleet,
            agents,
            asks,
            waiting: WaitingCalls::default(),
            next_client: AtomicU64::new(1),
            own_names: Mutex::default(),
        })
    }

    /// Checks that a client with these options can be served.
    ///
    /// # Errors
    /// If there is no such agent, or it has no such server.
    pub fn check(&self, options: &HubClientOptions) -> Result<(), HubError> {
        self.agent_for(options).map(drop)
    }

    /// Returns a new client: one program, which makes itself known with a handshake.
    ///
    /// # Errors
    /// If there is no such agent, or it has no such server.
    fn client(
        self: &Arc<Self>,
        caller: HubCaller,
        options: HubClientOptions,
    ) -> Result<Arc<HubClient>, HubError> {
        self.new_client(caller, options, false)
    }

    /// Returns a new client that several programs of a principal may be behind.
    ///
    /// # Errors
    /// If there is no such agent, or it has no such server.
    fn shared_client(
        self: &Arc<Self>,
        caller: HubCaller,
        options: HubClientOptions,
    ) -> Result<Arc<HubClient>, HubError> {
        self.new_client(caller, options, true)
    }

    fn new_client(
        self: &Arc<Self>,
        caller: HubCaller,
        options: HubClientOptions,
        is_shared: bool,
    ) -> Result<Arc<HubClient>, HubError> {
        let agent = self.agent_for(&options)?;
        let number = self.next_client.fetch_add(1, Ordering::Relaxed);
        let hub = Arc::clone(self);
        Ok(Arc::new(HubClient::new(hub, caller, agent, options, number, is_shared)))
    }

    /// Returns the id of the agent of a client.
    fn agent_for(&self, options: &HubClientOptions) -> Result<String, HubError> {
        let wanted = options.agent.as_deref();
        let unknown = || HubError::UnknownAgent(wanted.unwrap_or_default().to_owned());
        let agent = self.agents.id_of(wanted).ok_or_else(unknown)?;
        let tools = self.fleet.agent(&agent).ok_or_else(unknown)?;
        let is_known = |name: &&String| tools.statuses().iter().any(|it| it.name == **name);
        match options.servers.iter().find(|name| !is_known(name)) {
            Some(server) => Err(HubError::UnknownServer { agent, server: server.clone() }),
            None => Ok(agent),
        }
    }

    /// Returns the servers' own names for what clients of an agent have been offered.
    fn own_names(&self, agent: &str) -> Arc<OwnNames> {
        let mut all = self.own_names.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(agent.to_owned()).or_default())
    }

    fn agent_tools(&self, id: &str) -> Option<Arc<AgentTools>> {
        self.fleet.agent(id)
    }
}
