//! `sampling/createMessage`: a server requests a completion from the agent's model (B16, T11).
//!
//! The steps of every request: agent, rules, parameters ([`params`]), rate limit, user approval
//! ([`permission`]), model ([`prompt`], [`model`]), response ([`reply`]), audit ([`record`]). None
//! of our tools is ever called: tools in a request are the server's own, and calls of them go back
//! to the server.

mod allowed;
mod context;
mod limits;
mod model;
mod params;
mod permission;
mod prompt;
mod record;
mod refusal;
mod reply;

use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use openclaw_config::SamplingRule;
use openclaw_mcp_client::host::{Sampler, SamplingRequest};
use openclaw_tools::audit::Audit;
use serde_json::Value;

use crate::agents::Agents;
use crate::approvals::PendingApprovals;
use crate::callers::Callers;
use allowed::Allowed;
use context::SamplingContext;
use limits::{RecordedRejections, SamplingLimits};
use params::Params;
use record::SamplingRecord;
use refusal::SamplingRefusal;

/// The method name, as used in the audit log and in questions.
pub(crate) const METHOD: &str = "sampling/createMessage";

/// Answers sampling requests with the models of the gateway's agents.
#[derive(Debug)]
pub(crate) struct AgentSampler {
    /// Weak: they own the servers that send the requests.
    agents: Weak<Agents>,
    approvals: Arc<PendingApprovals>,
    callers: Arc<Callers>,
    audit: Audit,
    limits: SamplingLimits,
    rejections: RecordedRejections,
    /// Kept until the gateway stops.
    allowed: Allowed,
}

impl Sampler for AgentSampler {
    fn create_message(&self, request: SamplingRequest) -> BoxFuture<'_, Result<Value, String>> {
        Box::pin(async move {
            let Some(agents) = self.agents.upgrade() else {
                return Err("the gateway is starting or stopping".to_owned());
            };
            let mut record = SamplingRecord::new(&self.audit, &request);
            let answer = self.answer(&agents, &request, &mut record).await;
            match answer.is_ok() || self.rejections.check(&request.server) {
                true => record.finish(&answer),
                false => record.omit(),
            }
            answer.map_err(|refusal| refusal.to_string())
        })
    }
}

impl AgentSampler {
    pub(crate) fn new(
        agents: Weak<Agents>,
        approvals: Arc<PendingApprovals>,
        callers: Arc<Callers>,
        audit: Audit,
    ) -> Self {
        Self {
            agents,
            approvals,
            callers,
            audit,
            limits: SamplingLimits::default(),
            rejections: RecordedRejections::default(),
            allowed: Allowed::default(),
        }
    }

    async fn answer(
        &self,
        agents: &Agents,
        request: &SamplingRequest,
        record: &mut SamplingRecord,
    ) -> Result<Value, SamplingRefusal> {
        let context = SamplingContext::find(agents, request).ok_or(SamplingRefusal::NotAllowed)?;
        record.concerns(&context);
        let rule = match self.allowed.contains(&context) {
            true if context.sampling.allow == SamplingRule::Ask => SamplingRule::Always,
            _ => context.sampling.allow,
        };
        if rule == SamplingRule::Never {
            return Err(SamplingRefusal::NotAllowed);
        }
        let params = Params::read(&request.params).map_err(SamplingRefusal::Invalid)?;
        self.limits.check(&context)?;
        if rule == SamplingRule::Ask {
            // Outside a session, no user expects the question.
            let Some(session) = &context.session else { return Err(SamplingRefusal::Unasked) };
            if !self.callers.has_decider(session) {
                return Err(SamplingRefusal::Unanswered);
            }
            permission::ask(&self.approvals, &self.allowed, &context, &params).await?;
        }
        model::complete(&context, &params).await
    }
}
