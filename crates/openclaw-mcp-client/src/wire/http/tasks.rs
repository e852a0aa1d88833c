//! The background tasks of a connection, which are aborted with it.

use std::sync::{Mutex, PoisonError};

use tokio::task::{AbortHandle, JoinSet};

/// The tasks of a connection; `None` once it is closed.
#[derive(Debug)]
pub(super) struct Tasks(Mutex<Option<JoinSet<()>>>);

impl Default for Tasks {
    fn default() -> Self {
        Self(Mutex::new(Some(JoinSet::new())))
    }
}

impl Tasks {
    /// Spawns a task, unless the connection is closed.
    pub(super) fn spawn(
        &self,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> Option<AbortHandle> {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tasks = tasks.as_mut()?;
        // Finished tasks are removed here, because nothing joins them.
        while tasks.try_join_next().is_some() {}
        Some(tasks.spawn(task))
    }

    fn take(&self) -> Option<JoinSet<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Aborts all tasks, rejects new ones, and waits until they have stopped.
    pub(super) async fn end(&self) {
        if let Some(mut tasks) = self.take() {
            tasks.shutdown().await;
        }
    }

    /// Like [`end`](Self::end), but without waiting.
    pub(super) fn abort(&self) {
        drop(self.take());
    }
}
