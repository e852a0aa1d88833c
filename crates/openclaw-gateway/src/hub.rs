//! The hub in the gateway: which agents it offers, and whom servers ask during its calls (S6).

use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use openclaw_config::{ApprovalFallback, HubApprovals, SamplingRule};
use openclaw_mcp_client::host::{
    ElicitationAnswer, ElicitationRequest, Elicitor, Sampler, SamplingRequest,
};
use openclaw_mcp_server::hub::HubAgents;
use openclaw_mcp_server::hub::asks::Asks;
use openclaw_tools::Fallback;
use serde_json::Value;

use crate::agents::Agents;
use crate::elicitations::Elicitations;

/// The agents of the active configuration.
pub(crate) struct ActiveAgents(pub(crate) Arc<Agents>);

impl HubAgents for ActiveAgents {
    fn id_of(&self, name: Option<&str>) -> Option<String> {
        let active = self.0.active();
        active.config.agent(name).map(|agent| agent.id.to_string())
    }

    fn fallback(&self, id: &str) -> Option<Fallback> {
        let active = self.0.active();
        active.config.agent(Some(id)).map(|agent| match agent.approval.fallback {
            ApprovalFallback::Deny => Fallback::Deny,
            ApprovalFallback::Allow => Fallback::Allow,
        })
    }

    fn rate_limit(&self) -> Option<u32> {
        self.0.active().config.gateway.hub_rate_limit.map(std::num::NonZero::get)
    }

    fn lets_clients_approve(&self) -> bool {
        self.0.active().config.gateway.hub_approvals == HubApprovals::Once
    }
}

/// Asks the client of the hub that a call is made for, or else the connected clients.
pub(crate) struct HubElicitor {
    pub(crate) asks: Arc<Asks>,
    pub(crate) next: Arc<Elicitations>,
}

impl Elicitor for HubElicitor {
    fn ask(&self, question: ElicitationRequest) -> BoxFuture<'_, ElicitationAnswer> {
        match self.asks.elicit(&question) {
            Some(asked) => asked,
            None => self.next.ask(question),
        }
    }
}

/// Passes a sampling request to the client of the hub that a call is made for, or else to the
/// agent's model. Its server must be allowed to request completions in both cases; the client has
/// its own rules beyond that.
pub(crate) struct HubSampler<S> {
    pub(crate) asks: Arc<Asks>,
    /// Weak: they own the servers that send the requests.
    pub(crate) agents: Weak<Agents>,
    pub(crate) next: S,
}

impl<S: Sampler> Sampler for HubSampler<S> {
    fn create_message(&self, request: SamplingRequest) -> BoxFuture<'_, Result<Value, String>> {
        match self.asks.sample(&request) {
            Some(_) if !self.is_allowed(&request) => Box::pin(std::future::ready(Err(
                "sampling is not allowed for this server".to_owned(),
            ))),
            Some(asked) => asked,
            None => self.next.create_message(request),
        }
    }
}

impl<S> HubSampler<S> {
    fn is_allowed(&self, request: &SamplingRequest) -> bool {
        let Some(agents) = self.agents.upgrade() else { return false };
        let agent = request.calls.first().and_then(|call| agents.fleet().agent(&call.agent));
        let rules = agent.and_then(|agent| agent.sampling(&request.server));
        rules.is_some_and(|(sampling, _)| sampling.allow != SamplingRule::Never)
    }
}
