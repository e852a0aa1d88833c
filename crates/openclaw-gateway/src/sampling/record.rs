//! One audit line and one log line for every sampling request (N3).

use std::time::Instant;

use openclaw_mcp_client::host::SamplingRequest;
use openclaw_tools::audit::{Audit, AuditOutcome, CallRecord};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::context::SamplingContext;
use super::refusal::SamplingRefusal;
use super::{METHOD, reply};

/// The caller in the audit log: not a user.
const WHO: &str = "mcp-server";

/// Records a request, even if the server or the end of its call cancels it.
pub(super) struct SamplingRecord {
    audit: Audit,
    server: String,
    agent: Option<String>,
    session: Option<String>,
    params: Box<RawValue>,
    started: Instant,
    is_written: bool,
}

impl SamplingRecord {
    pub(super) fn new(audit: &Audit, request: &SamplingRequest) -> Self {
        Self {
            audit: audit.clone(),
            server: request.server.clone(),
            agent: None,
            session: None,
            params: to_raw_value(&request.params).unwrap_or_default(),
            started: Instant::now(),
            is_written: false,
        }
    }

    /// Sets the agent and the session.
    pub(super) fn concerns(&mut self, context: &SamplingContext) {
        self.agent = Some(context.agent_id().to_owned());
        self.session.clone_from(&context.session);
    }

    /// Records the result.
    pub(super) fn finish(mut self, answer: &Result<Value, SamplingRefusal>) {
        self.is_written = true;
        match answer {
            Ok(result) => self.write(AuditOutcome::Ok, reply::chars(result), None),
            Err(refusal) => self.write(refusal.outcome(), 0, Some(refusal)),
        }
    }

    /// Records nothing.
    pub(super) fn omit(mut self) {
        self.is_written = true;
    }

    fn write(&self, outcome: AuditOutcome, result_chars: usize, refusal: Option<&SamplingRefusal>) {
        let (server, agent, session) =
            (&self.server, self.agent.as_deref(), self.session.as_deref());
        let duration = self.started.elapsed();
        tracing::info!(
            %server,
            agent,
            session,
            outcome = outcome.name(),
            reason = refusal.map(tracing::field::display),
            duration_ms = duration.as_secs_f64() * 1_000.0,
            "sampling"
        );
        self.audit.record(&CallRecord {
            ended: Instant::now(),
            who: WHO,
            agent,
            session,
            source: "mcp",
            server,
            tool: METHOD,
            raw_tool: METHOD,
            arguments: self.params.get(),
            outcome,
            refused: None,
            duration,
            result_chars,
            trace: None,
        });
    }
}

impl Drop for SamplingRecord {
    fn drop(&mut self) {
        if !self.is_written {
            self.write(AuditOutcome::Cancelled, 0, None);
        }
    }
}
