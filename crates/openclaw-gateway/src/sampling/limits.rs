//! Rate limits of sampling requests.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use openclaw_mcp::server::limiter::Limiter;

use super::applicant::SamplingContext;
use super::refusal::Refusal;

/// One rate limiter per server and agent.
#[derive(Debug, Default)]
pub(super) struct Limits(Mutex<BTreeMap<(String, String), Limited>>);

#[derive(Debug)]
struct Limited {
    requests_per_minute: u32,
    limiter: Limiter,
}

impl Limits {
    /// Counts a request, or rejects it.
    pub(super) fn check(&self, applicant: &SamplingContext) -> Result<(), Refusal> {
        let limit = applicant.sampling.requests_per_minute.get();
        let key = (applicant.agent_id().to_owned(), applicant.server.clone());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || Limited { requests_per_minute: limit, limiter: Limiter::new(Some(limit)) };
        let limited = all.entry(key).or_insert_with(fresh);
        if limited.requests_per_minute != limit {
            *limited = fresh();
        }
        limited
            .limiter
            .check(tokio::time::Instant::now())
            .map_err(|wait| Refusal::RateLimited { limit, after: wait.after })
    }
}
