//! How far a call has got, for callers that want to watch it.

use tokio::sync::watch;

/// How far a call has got, in the words of its server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    /// How much is done.
    pub done: f64,
    /// Of how much, where the server knows.
    pub total: Option<f64>,
    /// What it is doing: one clean line. From outside: not for a model.
    pub message: Option<String>,
}

/// Where progress is reported; nothing until there is some. Only the latest is kept, so that a server that
/// reports more than anybody reads costs nothing.
pub type Watcher = watch::Sender<Option<Progress>>;

impl Progress {
    /// How much is done, of a hundred, where that can be told.
    pub fn percent(&self) -> Option<f64> {
        let total = self.total.filter(|total| total.is_finite() && *total > 0.0)?;
        let percent = self.done / total * 100.0;
        percent.is_finite().then(|| percent.clamp(0.0, 100.0))
    }
}
