//! Progress of calls, for callers that monitor it.

use tokio::sync::watch;

/// Progress of a call, as reported by its server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    /// Progress so far.
    pub done: f64,
    /// Total, if known to the server.
    pub total: Option<f64>,
    /// Progress message, one sanitized line. Untrusted: not for a model.
    pub message: Option<String>,
}

/// Channel for progress reports; `None` until the first one. Only the latest is kept, so a server
/// that reports faster than the reader reads costs nothing.
pub type ProgressWatcher = watch::Sender<Option<Progress>>;

impl Progress {
    /// Returns the progress in percent, if known.
    pub fn percent(&self) -> Option<f64> {
        let total = self.total.filter(|total| total.is_finite() && *total > 0.0)?;
        let percent = self.done / total * 100.0;
        percent.is_finite().then(|| percent.clamp(0.0, 100.0))
    }
}
