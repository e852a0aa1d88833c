//! The tasks of a connection. They end with it.

use std::sync::{Mutex, PoisonError};

use tokio::task::{AbortHandle, JoinSet};

/// The tasks of a connection, until it has ended.
#[derive(Debug)]
pub(super) struct Tasks(Mutex<Option<JoinSet<()>>>);

impl Default for Tasks {
    fn default() -> Self {
        Self(Mutex::new(Some(JoinSet::new())))
    }
}

impl Tasks {
    /// Starts a task, unless all is over.
    pub(super) fn spawn(
        &self,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> Option<AbortHandle> {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tasks = tasks.as_mut()?;
        // What has ended is cleared away here: nobody waits for it.
        while tasks.try_join_next().is_some() {}
        Some(tasks.spawn(task))
    }

    fn take(&self) -> Option<JoinSet<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Ends all of them, now and for good. When this returns, none is left.
    pub(super) async fn end(&self) {
        if let Some(mut tasks) = self.take() {
            tasks.shutdown().await;
        }
    }

    /// The same without waiting.
    pub(super) fn abort(&self) {
        drop(self.take());
    }
}
