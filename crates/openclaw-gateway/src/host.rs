//! What agents get from the host.

use std::path::PathBuf;

use openclaw_metrics::Metrics;
use openclaw_process::Guard;
use openclaw_secrets::{Environment, Resolver};
use openclaw_tools::native;

/// Everything that does not depend on the configuration.
#[derive(Debug, Clone)]
pub(crate) struct HostContext {
    pub(crate) resolver: Resolver,
    pub(crate) environment: Environment,
    pub(crate) state: PathBuf,
    /// The workspace of agents that have none of their own, if it is not in the state folder.
    pub(crate) workspace: Option<PathBuf>,
    pub(crate) native_approvals: native::Approvals,
    /// Terminates child processes if this process is killed.
    pub(crate) guard: Guard,
    /// Where turns and requests to models are counted.
    pub(crate) metrics: Metrics,
}

impl HostContext {
    /// The workspace of agents that have none of their own.
    pub(crate) fn default_workspace(&self) -> PathBuf {
        self.workspace.clone().unwrap_or_else(|| self.state.join("workspace"))
    }
}
