//! The tasks of a session.

use tokio::time::{Duration, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Starts the tasks of a session, and ends them with it.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionTasks {
    running: TaskTracker,
    ended: CancellationToken,
}

impl SessionTasks {
    /// Runs a task until it is done, or the session ends.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let ended = self.ended.clone();
        self.running.spawn(async move {
            tokio::select! {
                () = ended.cancelled() => {}
                () = task => {}
            }
        });
    }

    /// Runs a task until it is done, also if the session ends.
    pub(crate) fn spawn_to_completion(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.running.spawn(task);
    }

    /// Cancelled when the session is closed.
    pub(crate) fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Ends the tasks.
    pub(crate) fn end(&self) {
        self.ended.cancel();
        self.running.close();
    }

    /// Waits until the tasks have ended, with a limit.
    pub(crate) async fn finished(&self, limit: Duration) {
        let _ = timeout(limit, self.running.wait()).await;
    }
}
