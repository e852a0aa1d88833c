//! Progress of calls, for callers that monitor it.

use std::time::Duration;

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

/// Sends what a server reports about a call. Only the latest is kept, so a server that reports faster
/// than the reader reads costs nothing.
#[derive(Debug, Clone)]
pub struct ProgressWatcher {
    reports: watch::Sender<Option<Progress>>,
    pauses: Option<watch::Sender<Option<Duration>>>,
}

impl ProgressWatcher {
    /// Creates a watcher. Its receiver has `None` until the first report.
    pub fn channel() -> (Self, watch::Receiver<Option<Progress>>) {
        let (reports, received) = watch::channel(None);
        (Self { reports, pauses: None }, received)
    }

    /// Receives pauses, too: how long the server wants to be left alone before it is asked for the
    /// rest of its response.
    pub fn receive_pauses(&mut self) -> watch::Receiver<Option<Duration>> {
        self.pauses.get_or_insert_with(|| watch::channel(None).0).subscribe()
    }

    /// Sends a report.
    pub fn report(&self, progress: Progress) {
        self.reports.send_replace(Some(progress));
    }

    /// Sends that the server has closed the stream of its response for now.
    pub fn pause(&self, retry: Duration) {
        if let Some(pauses) = &self.pauses {
            pauses.send_replace(Some(retry));
        }
    }
}

impl Progress {
    /// Returns the progress in percent, if known.
    pub fn percent(&self) -> Option<f64> {
        let total = self.total.filter(|total| total.is_finite() && *total > 0.0)?;
        let percent = self.done / total * 100.0;
        percent.is_finite().then(|| percent.clamp(0.0, 100.0))
    }
}
