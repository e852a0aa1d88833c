//! Servers that the user has allowed permanently, until the gateway stops.

use std::sync::{Mutex, MutexGuard, PoisonError};

use openclaw_config::Transport;

use super::applicant::SamplingContext;

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
    fn is_for(&self, applicant: &SamplingContext) -> bool {
        self.agent == applicant.agent_id()
            && self.server == applicant.server
            && self.identity == applicant.identity
    }
}

impl Allowed {
    pub(super) fn contains(&self, applicant: &SamplingContext) -> bool {
        self.lock().iter().any(|grant| grant.is_for(applicant))
    }

    pub(super) fn add(&self, applicant: &SamplingContext) {
        let mut grants = self.lock();
        // A server has one entry at a time: earlier grants are void.
        grants.retain(|it| it.agent != applicant.agent_id() || it.server != applicant.server);
        grants.push(Grant {
            agent: applicant.agent_id().to_owned(),
            server: applicant.server.clone(),
            identity: applicant.identity.clone(),
        });
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Grant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
