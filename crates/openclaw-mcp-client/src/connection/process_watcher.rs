//! Watches the process of a local server, so that its exit is noticed immediately (L3), even if a
//! descendant holds its output open.
//!
//! The exit of the spawned process counts as the exit of the server. A launcher that leaves its
//! server behind on the same pipes would look like a crash, but none is known: `npx`, `uvx`,
//! `docker run` and similar wait for their child or replace themselves with it, and a process that
//! a shell leaves behind (`server &`) has no input.

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::process::{ServerProcess, ShutdownTimeouts};
use crate::wire::FastLane;

/// The task that waits for the process. Dropping this kills the process and its descendants.
#[derive(Debug)]
pub(crate) struct ProcessWatcher {
    orders: Option<oneshot::Sender<ShutdownTimeouts>>,
    task: JoinHandle<()>,
}

impl ProcessWatcher {
    /// Starts to watch. When the process exits, the connection of `lane` is closed.
    pub(crate) fn watch(process: ServerProcess, lane: FastLane) -> Self {
        let (orders, ordered) = oneshot::channel();
        Self { orders: Some(orders), task: tokio::spawn(watch(process, lane, ordered)) }
    }

    /// Terminates the process and its descendants. When this returns, they are gone.
    pub(crate) async fn shut_down(mut self, patience: ShutdownTimeouts) {
        if let Some(orders) = self.orders.take() {
            let _ = orders.send(patience);
        }
        let _ = (&mut self.task).await;
    }
}

impl Drop for ProcessWatcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn watch(
    mut process: ServerProcess,
    lane: FastLane,
    mut ordered: oneshot::Receiver<ShutdownTimeouts>,
) {
    let orders = tokio::select! {
        orders = &mut ordered => orders,
        // `shut_down` waits for the process again, and gets the same status.
        Ok(status) = process.ended() => {
            lane.server_ended(status);
            ordered.await
        }
    };
    if let Ok(patience) = orders {
        process.shut_down(None, patience).await;
    }
}
