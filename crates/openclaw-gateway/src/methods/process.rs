//! The process that runs the gateway.

use std::path::PathBuf;
use std::time::Instant;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The process that runs the gateway.
pub(crate) struct ProcessInfo {
    pub(crate) version: String,
    pub(crate) started: Instant,
    /// Startup notes for the user.
    pub(crate) notes: Vec<String>,
    /// Directory of the logs.
    pub(crate) logs: Option<PathBuf>,
    /// Whether it listens.
    pub(crate) is_served: bool,
    /// Tasks that outlive a request.
    pub(crate) tasks: TaskTracker,
    /// Cancelled when a client has requested that it stops.
    pub(crate) stop_requested: CancellationToken,
}

impl ProcessInfo {
    pub(crate) fn uptime_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
