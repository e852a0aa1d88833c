//! What a gateway is started with.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use openclaw_config::{Config, Loaded};
use openclaw_mcp::fleet;
use openclaw_secrets::Environment;
use openclaw_sessions::StoreError;

/// What a gateway is started with.
pub struct Setup {
    /// The configuration in force.
    pub config: Config,
    /// Where it is read from.
    pub config_file: PathBuf,
    /// Reads it again.
    pub load: Arc<dyn Fn() -> Loaded + Send + Sync>,
    /// Where things are kept.
    pub state: PathBuf,
    /// What the servers are started with.
    pub fleet: fleet::Setup,
    /// The program's environment.
    pub environment: Environment,
    /// The program's version.
    pub version: String,
    /// Whether servers may ask whoever is connected and can answer (T11). They are told so when they are
    /// connected to, before anybody is there.
    pub people: bool,
    /// When conversations and agents are set up.
    pub prepare: Prepare,
}

/// When a gateway sets up its conversations and its agents (their own tools, their models).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prepare {
    /// At the start; what cannot be used is told then.
    AtStart,
    /// When a request needs them: for a single command, which mostly does not.
    OnUse,
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup").field("state", &self.state).finish_non_exhaustive()
    }
}

/// Why a gateway cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Conversations cannot be kept.
    #[error("cannot open the database of conversations")]
    Store(#[from] StoreError),
}
