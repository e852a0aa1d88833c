//! What all calls share: the audit log, stores, approvals, metrics and spans.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use openclaw_metrics::Metrics;
use openclaw_tools::Pipeline;
use openclaw_tools::audit::Audit;
use openclaw_trace::Tracer;
use tokio::time::timeout;

use crate::store::pins::{Pins, Unsaved};
use crate::store::spill::Spill;

/// How long to wait at shutdown until approvals are saved.
const SAVING: Duration = Duration::from_secs(10);

/// The services used by calls.
#[derive(Debug, Clone)]
pub struct CallServices {
    /// The audit log.
    pub audit: Audit,
    /// The store for large results.
    pub spill: Option<Arc<Spill>>,
    /// The approved tools.
    pub pins: Option<Arc<Pins>>,
    /// Where calls and servers are counted.
    pub metrics: Metrics,
    /// Records the spans of calls.
    pub tracer: Tracer,
}

impl CallServices {
    /// No audit log, no storage, no approvals, no metrics, no spans.
    pub fn none() -> Self {
        Self {
            audit: Audit::none(),
            spill: None,
            pins: None,
            metrics: Metrics::off(),
            tracer: Tracer::off(),
        }
    }

    /// Returns the pipeline of the calls that use these services.
    pub(crate) fn pipeline(&self) -> Pipeline {
        let pipeline = Pipeline::new(self.audit.clone());
        pipeline.counted_in(self.metrics.clone()).traced(self.tracer.clone())
    }

    /// Waits until approvals and the audit log are written, with a timeout in case the disk hangs.
    pub(crate) async fn close(&self) {
        // The error was logged.
        let _ = self.approvals_saved().await;
        self.audit.flush().await;
    }

    /// Waits until approvals are saved, with a timeout in case the disk hangs.
    pub(crate) async fn approvals_saved(&self) -> Result<(), Unsaved> {
        let Some(pins) = &self.pins else { return Ok(()) };
        let saved = timeout(SAVING, pins.saved()).await;
        saved.unwrap_or_else(|_| Err(pins.not_saved(io::ErrorKind::TimedOut)))
    }
}
