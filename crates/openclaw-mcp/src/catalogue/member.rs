//! A server with one agent's options: the connection may be shared, the options are not (L7, L10).

use std::sync::Arc;

use openclaw_config::{AgentConfig, ServerOptions};
use openclaw_tools::{Policy, Rules};

use crate::server::Server;
use crate::server::status::ServerStatus;
use crate::store::identity::ServerIdentity;
use crate::store::pins::ServerKey;
use openclaw_mcp_client::wire::TimeLimits;

/// A server with one agent's options. Immutable: changed options make a new member, and a call in
/// flight keeps the one that it started with.
#[derive(Debug)]
pub(crate) struct FleetMember {
    pub(crate) server: Arc<Server>,
    /// What approvals of its tools are stored under.
    pub(crate) key: ServerKey,
    pub(crate) options: ServerOptions,
    /// The server's own tool policy. The agent's policy applies as well.
    pub(crate) policy: Policy,
    /// The timeouts of a call.
    pub(crate) limits: TimeLimits,
}

impl FleetMember {
    pub(crate) fn new(server: Arc<Server>, options: &ServerOptions, agent: &AgentConfig) -> Self {
        let timeout = options.tool_timeout;
        let tools = &options.tools;
        let allow = tools.allow.as_deref();
        let place = format!("mcp.servers.{}.tools", server.name());
        let key = ServerKey {
            agent: agent.id.to_string(),
            server: server.name().to_string(),
            identity: ServerIdentity::of(server.connection()),
        };
        Self {
            server,
            key,
            policy: compile([Rules { place: &place, allow, deny: &tools.deny }]),
            limits: TimeLimits { timeout, cap: agent.mcp.settings.call_timeout_cap.max(timeout) },
            options: options.clone(),
        }
    }

    /// The prefix that stands for the server in tool names.
    pub(crate) fn prefix(&self) -> &str {
        self.options.tool_prefix.as_deref().unwrap_or(self.server.name().as_str())
    }

    /// The server's status, with this agent's settings.
    pub(crate) fn status(&self) -> ServerStatus {
        let ServerOptions { lazy, required, .. } = self.options;
        ServerStatus { lazy, required, ..self.server.status() }
    }
}

/// Patterns are validated when the configuration is read. If one is invalid anyway, nothing is
/// allowed.
pub(crate) fn compile<'a>(rules: impl IntoIterator<Item = Rules<'a>>) -> Policy {
    Policy::new(rules).unwrap_or_else(|error| {
        tracing::error!(%error, "invalid tool policy; no tool is allowed");
        Policy::nothing()
    })
}
