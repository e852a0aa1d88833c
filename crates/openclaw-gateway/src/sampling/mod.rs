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

use crate::gateway::Gateway;
use allowed::Allowed;
use context::SamplingContext;
use limits::{RecordedRejections, SamplingLimits};
use params::Params;
use record::SamplingRecord;
use refusal::SamplingRefusal;

/// The method name, as used in the audit log and in questions.
pub(crate) const METHOD: &str = "sampling/createMessage";

/// State kept between requests until the gateway stops.
#[derive(Debug)]
pub(crate) struct SamplingState {
    audit: Audit,
    limits: SamplingLimits,
    rejections: RecordedRejections,
    allowed: Allowed,
}

impl SamplingState {
    pub(crate) fn new(audit: Audit) -> Self {
        let (limits, rejections) = (SamplingLimits::default(), RecordedRejections::default());
        Self { audit, limits, rejections, allowed: Allowed::default() }
    }
}

/// Answers sampling requests with the models of the gateway's agents.
#[derive(Debug)]
pub(crate) struct AgentModels(pub(crate) Weak<Gateway>);

impl Sampler for AgentModels {
    fn create_message(&self, request: SamplingRequest) -> BoxFuture<'_, Result<Value, String>> {
        Box::pin(async move {
            let Some(gateway) = self.0.upgrade() else {
                return Err("the gateway is starting or stopping".to_owned());
            };
            let mut record = SamplingRecord::new(&gateway.sampling.audit, &request);
            let answer = answer(&gateway, &request, &mut record).await;
            match answer.is_ok() || gateway.sampling.rejections.check(&request.server) {
                true => record.finish(&answer),
                false => record.omit(),
            }
            answer.map_err(|refusal| refusal.to_string())
        })
    }
}

async fn answer(
    gateway: &Arc<Gateway>,
    request: &SamplingRequest,
    record: &mut SamplingRecord,
) -> Result<Value, SamplingRefusal> {
    let context = SamplingContext::find(gateway, request).ok_or(SamplingRefusal::NotAllowed)?;
    record.concerns(&context);
    let rule = match gateway.sampling.allowed.contains(&context) {
        true if context.sampling.allow == SamplingRule::Ask => SamplingRule::Always,
        _ => context.sampling.allow,
    };
    if rule == SamplingRule::Never {
        return Err(SamplingRefusal::NotAllowed);
    }
    let params = Params::read(&request.params).map_err(SamplingRefusal::Invalid)?;
    gateway.sampling.limits.check(&context)?;
    if rule == SamplingRule::Ask {
        // Outside a session, no user expects the question.
        let Some(session) = &context.session else { return Err(SamplingRefusal::Unasked) };
        if !gateway.callers.has_decider(session) {
            return Err(SamplingRefusal::Unanswered);
        }
        permission::ask(gateway, &context, &params).await?;
    }
    model::complete(&context, &params).await
}
