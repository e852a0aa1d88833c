//! Every call leaves a trace: a line for debugging with its timing, and one in the audit log (N3).

use std::time::{Duration, Instant, SystemTime};

use openclaw_tools::{Failure, ToolOutcome};

use crate::agent::AgentTools;
use crate::audit::{AuditOutcome, CallRecord};
use crate::bridge::Call;

/// A call that is being recorded: also one whose caller goes away.
pub(crate) struct Recorder<'a> {
    tools: &'a AgentTools,
    call: Call<'a>,
    /// The server; empty if there is none.
    server: &'a str,
    /// What the server calls the tool, or the address of a resource.
    raw_tool: &'a str,
    started: Instant,
    is_written: bool,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(
        tools: &'a AgentTools,
        call: Call<'a>,
        server: &'a str,
        raw_tool: &'a str,
    ) -> Self {
        let started = Instant::now();
        Self { tools, call, server, raw_tool, started, is_written: false }
    }

    /// The call is over.
    pub(crate) fn write(mut self, mut outcome: ToolOutcome) -> ToolOutcome {
        self.is_written = true;
        outcome.details.duration = self.started.elapsed();
        let chars = if self.tools.office.audit.is_on() { outcome.content_chars() } else { 0 };
        self.record(AuditOutcome::of(&outcome), outcome.details.duration, chars);
        outcome
    }

    /// The call is not made.
    pub(crate) fn refused(mut self, why: Failure) {
        self.is_written = true;
        self.record(AuditOutcome::Failed(why), self.started.elapsed(), 0);
    }

    fn record(&self, ending: AuditOutcome, duration: Duration, result_chars: usize) {
        tracing::debug!(
            server = self.server,
            tool = ?self.raw_tool,
            outcome = ending.name(),
            duration_ms = duration.as_secs_f64() * 1_000.0,
            "call"
        );
        if !self.tools.office.audit.is_on() {
            return;
        }
        self.tools.office.audit.record(&CallRecord {
            at: SystemTime::now(),
            who: self.call.who,
            agent: Some(self.tools.id().as_str()),
            session: self.call.session,
            server: self.server,
            tool: self.call.name,
            raw_tool: self.raw_tool,
            arguments: self.call.arguments,
            outcome: ending,
            duration,
            result_chars,
        });
    }
}

impl Drop for Recorder<'_> {
    fn drop(&mut self) {
        if !self.is_written {
            self.record(AuditOutcome::Cancelled, self.started.elapsed(), 0);
        }
    }
}
