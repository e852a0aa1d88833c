//! Servers that the user has allowed permanently, until the gateway stops.

use openclaw_config::Transport;
use parking_lot::Mutex;

use super::context::SamplingContext;

/// Servers that the user has allowed permanently: each for one agent, and as long as its entry has
/// the same command or URL.
#[derive(Debug, Default)]
pub(super) struct Allowed(Mutex<Vec<Grant>>);

#[derive(Debug)]
struct Grant {
    agent: String,
    server: String,
    identity: Transport,
}

impl Grant {
    fn is_for(&self, context: &SamplingContext) -> bool {
        self.agent == context.agent_id()
            && self.server == context.server
            && self.identity == context.identity
    }
}

impl Allowed {
    pub(super) fn contains(&self, context: &SamplingContext) -> bool {
        self.0.lock().iter().any(|grant| grant.is_for(context))
    }

    pub(super) fn add(&self, context: &SamplingContext) {
        let mut grants = self.0.lock();
        // A server has one entry at a time: earlier grants are void.
        grants.retain(|it| it.agent != context.agent_id() || it.server != context.server);
        grants.push(Grant {
            agent: context.agent_id().to_owned(),
            server: context.server.clone(),
            identity: context.identity.clone(),
        });
    }
}
