//! Options for starting a gateway.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use openclaw_config::{Config, Loaded};
use openclaw_mcp::fleet;
use openclaw_secrets::Environment;
use openclaw_sessions::StoreError;

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
