//! Counts the bytes of the messages from and to a server (N4).

use std::sync::Arc;

use openclaw_metrics::ServerSeries;

/// Counts bytes; nothing by default. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct Traffic(Option<Arc<ServerSeries>>);

impl Traffic {
    /// Counts in these series.
    pub fn new(series: Option<Arc<ServerSeries>>) -> Self {
        Self(series)
    }

    pub(super) fn received(&self, bytes: usize) {
        if let Some(series) = &self.0 {
            series.received.add(bytes as u64);
        }
    }

    pub(super) fn sent(&self, bytes: usize) {
        if let Some(series) = &self.0 {
            series.sent.add(bytes as u64);
        }
    }
}
