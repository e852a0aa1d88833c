//! The process of a local server, watched beside its connection: its end is noticed at once (L3), even
//! where a descendant holds its output open.
//!
//! When the process that was started ends, so does its server. A launcher that leaves its server behind on
//! the same pipes would look like a crash, but none is known: `npx`, `uvx`, `docker run` and the like wait
//! for what they start or become it, and what a shell leaves behind (`server &`) has no input to read.

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::process::{Patience, Process};
use crate::wire::FastLane;

/// The task that waits for the process. Dropping this kills the process and its descendants.
#[derive(Debug)]
pub(crate) struct Leader {
    orders: Option<oneshot::Sender<Patience>>,
    task: JoinHandle<()>,
}

impl Leader {
    /// Begins to wait. Whoever waits for an answer on this lane learns of the end.
    pub(crate) fn watch(process: Process, lane: FastLane) -> Self {
        let (orders, ordered) = oneshot::channel();
        Self { orders: Some(orders), task: tokio::spawn(watch(process, lane, ordered)) }
    }

    /// Ends the process and its descendants. When this returns, they are gone.
    pub(crate) async fn shut_down(mut self, patience: Patience) {
        if let Some(orders) = self.orders.take() {
            let _ = orders.send(patience);
        }
        let _ = (&mut self.task).await;
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn watch(mut process: Process, lane: FastLane, mut ordered: oneshot::Receiver<Patience>) {
    let orders = tokio::select! {
        orders = &mut ordered => orders,
        // Who shuts down asks once more, and gets the same status.
        Ok(status) = process.ended() => {
            lane.server_ended(status);
            ordered.await
        }
    };
    if let Ok(patience) = orders {
        process.shut_down(None, patience).await;
    }
}
