//! The hub: the MCP servers of an agent as one MCP server, for other programs (S6).
//!
//! It is the reverse of a connection to a server. A tool call takes the fast lane: its arguments and its
//! result stay JSON text, and it goes through the same pipeline as the calls of the agent (policy,
//! approval, schema, audit). Everything else goes to `rmcp`'s server ([`handler`]), through a
//! transport of our own over [lines](lines) (stdio), or `rmcp`'s own over [HTTP](http).
//!
//! One fleet serves all clients. Each belongs to a [`Principal`], and so do its sessions and its calls.
//! What a server asks or reports during a call goes to the client that the call is made for ([`asks`]).

pub(crate) mod answers;
pub(crate) mod approver;
pub mod asks;
mod call;
mod client;
mod handler;
pub mod http;
mod incoming;
pub mod lines;
mod listen;
pub mod memory;
mod options;
mod outbox;
pub(crate) mod parked;
mod reply;
pub(crate) mod replying;
mod running;
mod search;
mod segments;
mod slow_lane;
mod view;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use openclaw_budget::ByteBudget;
use openclaw_mcp::fleet::Fleet;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_protocol::Principal;
use openclaw_tools::Fallback;
use tokio::io::{AsyncRead, AsyncWrite};

use asks::Asks;
use client::HubClient;
pub use options::{BadOption, HubClientOptions};
use parked::Parked;

/// The standard streams of this process, for [`lines::serve`].
pub fn stdio() -> (impl AsyncRead + Unpin + Send, impl AsyncWrite + Unpin + Send) {
    rmcp::transport::stdio_pipes()
}

/// The agents of the active configuration.
pub trait Agents: Send + Sync + 'static {
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

/// Offers the servers of agents to clients of other programs.
pub struct Hub {
    fleet: Arc<Fleet>,
    agents: Arc<dyn Agents>,
    asks: Arc<Asks>,
    parked: Parked<running::RunningCall>,
    next_client: AtomicU64,
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
    pub fn new(fleet: Arc<Fleet>, agents: Arc<dyn Agents>, asks: Arc<Asks>) -> Arc<Self> {
        let (parked, next_client) = (Parked::default(), AtomicU64::new(1));
        asks.separates_by(&fleet);
        Arc::new(Self { fleet, agents, asks, parked, next_client })
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
        principal: Principal,
        options: HubClientOptions,
        budget: &Arc<ByteBudget>,
    ) -> Result<Arc<HubClient>, HubError> {
        self.new_client(principal, options, budget, false)
    }

    /// Returns a new client that several programs of a principal may be behind.
    ///
    /// # Errors
    /// If there is no such agent, or it has no such server.
    fn shared_client(
        self: &Arc<Self>,
        principal: Principal,
        options: HubClientOptions,
        budget: &Arc<ByteBudget>,
    ) -> Result<Arc<HubClient>, HubError> {
        self.new_client(principal, options, budget, true)
    }

    fn new_client(
        self: &Arc<Self>,
        principal: Principal,
        options: HubClientOptions,
        budget: &Arc<ByteBudget>,
        is_shared: bool,
    ) -> Result<Arc<HubClient>, HubError> {
        let agent = self.agent_for(&options)?;
        let number = self.next_client.fetch_add(1, Ordering::Relaxed);
        let (hub, budget) = (Arc::clone(self), Arc::clone(budget));
        let client = HubClient::new(hub, principal, agent, options, number, budget, is_shared);
        Ok(Arc::new(client))
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

    fn agent_tools(&self, id: &str) -> Option<Arc<AgentTools>> {
        self.fleet.agent(id)
    }
}
