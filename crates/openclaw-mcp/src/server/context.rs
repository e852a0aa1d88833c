//! What the servers of a fleet share.

use std::path::PathBuf;
use std::sync::Arc;

use openclaw_metrics::Metrics;
use tokio::sync::Semaphore;

use super::cache::Revision;
use super::dial::DialContext;
use super::events::EventChannel;

/// What all servers of a fleet share.
#[derive(Debug, Clone)]
pub(crate) struct SharedContext {
    pub(crate) context: DialContext,
    pub(crate) revision: Revision,
    /// Limits how many servers connect at the same time.
    pub(crate) turns: Arc<Semaphore>,
    pub(crate) folders: StorageFolders,
    /// Where state changes are sent.
    pub(crate) events: EventChannel,
    /// Whether servers that fail or are lost are retried.
    pub(crate) tries_again: bool,
    /// Which servers start immediately.
    pub(crate) start: StartMode,
    /// Where servers are counted.
    pub(crate) metrics: Metrics,
    /// Limits the connections of clients of the hub.
    pub(crate) places: Arc<Semaphore>,
}

/// Where caches and logs are stored; `None` disables them.
#[derive(Debug, Clone, Default)]
pub struct StorageFolders {
    /// Cached inventories and protocol versions.
    pub catalogue: Option<PathBuf>,
    /// Log files of servers.
    pub logs: Option<PathBuf>,
}

/// Which servers of a fleet start immediately. The others start on first use, and until then offer
/// the tools of their cached inventory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum StartMode {
    /// All except those that are configured as lazy.
    #[default]
    Eager,
    /// None.
    OnUse,
    /// Only the server with this name.
    Only(String),
}

impl StartMode {
    /// Whether a server starts on first use.
    pub(crate) fn waits(&self, name: &str, is_lazy: bool) -> bool {
        match self {
            Self::Eager => is_lazy,
            Self::OnUse => true,
            Self::Only(only) => only != name,
        }
    }
}
