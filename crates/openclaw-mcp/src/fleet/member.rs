//! A server as one agent uses it: the connection may be shared, the treatment is the agent's own (L7, L10).

use std::sync::Arc;

use openclaw_config::{AgentConfig, Treatment};
use openclaw_tools::{Policy, Rules};

use crate::server::Server;
use crate::server::status::ServerStatus;
use crate::wire::Limits;

/// A server as one agent uses it. It never changes: another treatment is another member, and a call that
/// has begun keeps the one it began with.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) server: Arc<Server>,
    pub(crate) treatment: Treatment,
    /// A server's tools may be ruled out by the agent's policy, and by its own.
    pub(crate) policy: Policy,
    /// How long a call may take.
    pub(crate) limits: Limits,
}

impl Member {
    pub(crate) fn new(server: Arc<Server>, treatment: &Treatment, agent: &AgentConfig) -> Self {
        let timeout = treatment.tool_timeout;
        let tools = &treatment.tools;
        let allow = tools.allow.as_deref();
        Self {
            server,
            policy: compile([Rules { place: "server's tools", allow, deny: &tools.deny }]),
            limits: Limits { timeout, cap: agent.mcp.settings.call_timeout_cap.max(timeout) },
            treatment: treatment.clone(),
        }
    }

    /// What stands for the server in the names of its tools.
    pub(crate) fn prefix(&self) -> &str {
        self.treatment.tool_prefix.as_deref().unwrap_or(self.server.name().as_str())
    }

    /// The server's status, with the agent's own settings of it.
    pub(crate) fn status(&self) -> ServerStatus {
        let Treatment { lazy, required, .. } = self.treatment;
        ServerStatus { lazy, required, ..self.server.status() }
    }
}

/// Patterns were checked when the configuration was read; should one be none, nothing is allowed.
pub(crate) fn compile<'a>(rules: impl IntoIterator<Item = Rules<'a>>) -> Policy {
    Policy::new(rules).unwrap_or_else(|error| {
        tracing::error!(%error, "no tool is allowed");
        Policy::nothing()
    })
}
