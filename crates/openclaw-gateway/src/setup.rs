//! Options for starting a gateway.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use openclaw_config::{Config, Loaded};
use openclaw_mcp::fleet;
use openclaw_secrets::{Environment, ResolveError};
use openclaw_sessions::StoreError;

use crate::socket::ListenError;
use crate::state::ClaimError;

/// Options for starting a gateway.
pub struct GatewaySetup {
    /// The initial configuration.
    pub config: Config,
    /// The configuration file.
    pub config_file: PathBuf,
    /// Loads the configuration again.
    pub load: Arc<dyn Fn() -> Loaded + Send + Sync>,
    /// The state folder.
    pub state: PathBuf,
    /// Options for the MCP servers.
    pub fleet: fleet::FleetSetup,
    /// The environment of this process.
    pub environment: Environment,
    /// The version of this program.
    pub version: String,
    /// When the session store and the agents are set up.
    pub prepare: Prepare,
    /// The workspace of agents that have none of their own; `None` for a folder in the state
    /// directory.
    pub workspace: Option<PathBuf>,
}

/// When a gateway sets up its session store and its agents (native tools, models).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prepare {
    /// At startup, so that problems are reported then.
    AtStart,
    /// On first use: for a single command, which mostly needs neither.
    OnUse,
}

impl fmt::Debug for GatewaySetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup").field("state", &self.state).finish_non_exhaustive()
    }
}

/// Why a gateway cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The session store cannot be opened.
    #[error("cannot open the session database")]
    Store(#[from] StoreError),
}

/// Why a gateway cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another gateway uses the state folder.
    #[error(transparent)]
    Claimed(#[from] ClaimError),
    /// The port cannot be bound.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The gateway cannot start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The token cannot be read or created, or the address cannot be published.
    #[error("cannot use the state folder")]
    State(#[from] std::io::Error),
    /// A configured token cannot be resolved.
    #[error("cannot resolve `{0}`: {1}")]
    Token(&'static str, String),
}

/// The error of a setting whose secret cannot be resolved.
pub(crate) fn unresolved(setting: &'static str) -> impl Fn(ResolveError) -> ServeError {
    move |error| ServeError::Token(setting, error.to_string())
}
