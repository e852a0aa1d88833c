//! Rate limits of sampling requests.

use std::collections::BTreeMap;

use openclaw_mcp_client::limiter::Limiter;
use parking_lot::Mutex;

use super::context::SamplingContext;
use super::refusal::SamplingRefusal;

/// Maximum number of rejected requests of a server that are recorded per minute: the audit log has
/// a limited size, and a server could fill it with requests that are not allowed.
const RECORDED_REJECTIONS: u32 = 60;

/// One rate limiter per server, for the record of its rejected requests.
#[derive(Debug, Default)]
pub(super) struct RecordedRejections(Mutex<BTreeMap<String, Limiter>>);

impl RecordedRejections {
    /// Returns whether a rejected request is to be recorded.
    pub(super) fn check(&self, server: &str) -> bool {
        let mut all = self.0.lock();
        if !all.contains_key(server) {
            all.insert(server.to_owned(), Limiter::new(Some(RECORDED_REJECTIONS)));
        }
        all.get(server).is_none_or(|it| it.check(tokio::time::Instant::now()).is_ok())
    }
}

/// One rate limiter per server and agent.
#[derive(Debug, Default)]
pub(super) struct SamplingLimits(Mutex<BTreeMap<(String, String), Limited>>);

#[derive(Debug)]
struct Limited {
    requests_per_minute: u32,
    limiter: Limiter,
}

impl SamplingLimits {
    /// Counts a request, or rejects it.
    pub(super) fn check(&self, context: &SamplingContext) -> Result<(), SamplingRefusal> {
        let limit = context.sampling.requests_per_minute.get();
        let key = (context.agent_id().to_owned(), context.server.clone());
        let mut all = self.0.lock();
        let fresh = || Limited { requests_per_minute: limit, limiter: Limiter::new(Some(limit)) };
        let limited = all.entry(key).or_insert_with(fresh);
        if limited.requests_per_minute != limit {
            *limited = fresh();
        }
        limited
            .limiter
            .check(tokio::time::Instant::now())
            .map_err(|wait| SamplingRefusal::RateLimited { limit, after: wait.after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_cannot_fill_the_audit_log_with_rejected_requests() {
        let rejections = RecordedRejections::default();
        let recorded = (0..10_000).filter(|_| rejections.check("x")).count();
        assert_eq!(recorded, usize::try_from(RECORDED_REJECTIONS).unwrap());
        assert!(rejections.check("y"), "each server has its own limit");
        tokio::time::advance(std::time::Duration::from_secs(60)).await;
        assert!(rejections.check("x"));
    }
}
