//! On whose behalf a server sends a sampling request: the agent whose model is used, and its rules.

use std::sync::Arc;

use openclaw_config::{SamplingRule, SamplingSettings, Transport};
use openclaw_mcp_client::host::SamplingRequest;

use crate::agents::{AgentRuntime, Agents};

/// A server that sends a sampling request, and the agent it is sent for.
pub(super) struct SamplingContext {
    pub(super) server: String,
    pub(super) agent: Arc<AgentRuntime>,
    pub(super) session: Option<String>,
    pub(super) sampling: SamplingSettings,
    /// The server's identity: a permanent grant applies to this, not to another server with the
    /// same name.
    pub(super) identity: Transport,
}

impl SamplingContext {
    /// Uses the agent of the newest call in progress. The request does not tell which call it
    /// belongs to, so the strictest rule of all calls applies. Outside a call, the first agent that
    /// uses the server is used.
    pub(super) fn find(agents: &Agents, request: &SamplingRequest) -> Option<Self> {
        let active = agents.active();
        let server = request.server.as_str();
        let of_agent = |id: &str| {
            let agent = Arc::clone(active.agent(id)?);
            let (sampling, identity) = agents.fleet().agent(id)?.sampling(server)?;
            Some((agent, sampling, identity))
        };
        let Some(newest) = request.calls.first() else {
            let ids = active.config.agents.iter().map(|agent| agent.id.as_str());
            let mut users = ids.filter(|id| request.agents.iter().any(|user| user == id));
            let (agent, sampling, identity) = users.find_map(of_agent)?;
            let (server, session) = (server.to_owned(), None);
            return Some(Self { server, agent, session, sampling, identity });
        };
        let (agent, mut sampling, identity) = of_agent(&newest.agent)?;
        for call in &request.calls {
            let (_, other, _) = of_agent(&call.agent)?;
            sampling = stricter(sampling, other);
        }
        Some(Self {
            server: server.to_owned(),
            agent,
            session: newest.session.clone(),
            sampling,
            identity,
        })
    }

    pub(super) fn agent_id(&self) -> &str {
        self.agent.config.id.as_str()
    }
}

fn stricter(one: SamplingSettings, other: SamplingSettings) -> SamplingSettings {
    let strictness = |rule| match rule {
        SamplingRule::Never => 0,
        SamplingRule::Ask => 1,
        SamplingRule::Always => 2,
    };
    let allow =
        if strictness(other.allow) < strictness(one.allow) { other.allow } else { one.allow };
    SamplingSettings {
        allow,
        max_tokens: one.max_tokens.min(other.max_tokens),
        requests_per_minute: one.requests_per_minute.min(other.requests_per_minute),
    }
}
