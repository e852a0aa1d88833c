//! The lane for everything but calls: `rmcp`'s `Transport`.

use std::io;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::Closed;
use super::deliver::Message;
use super::queue::Queue;

/// What `rmcp` sends and receives through. It owns the connection: with it, both lanes end.
pub struct SlowLane {
    queue: Arc<Queue>,
    from_server: mpsc::Receiver<Message>,
    tasks: [JoinHandle<()>; 2],
}

impl SlowLane {
    pub(super) fn new(
        queue: Arc<Queue>,
        from_server: mpsc::Receiver<Message>,
        tasks: [JoinHandle<()>; 2],
    ) -> Self {
        Self { queue, from_server, tasks }
    }
}

impl std::fmt::Debug for SlowLane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SlowLane").field("closed", &self.queue.closed()).finish_non_exhaustive()
    }
}

impl Transport<RoleClient> for SlowLane {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let queue = Arc::clone(&self.queue);
        async move {
            queue.room().await.map_err(io::Error::other)?;
            let line = serde_json::to_vec(&message)?;
            queue.push(|state| {
                state.out.extend_from_slice(&line);
                state.out.push(b'\n');
            });
            Ok(())
        }
    }

    // Safe to cancel: a message that was not received stays in the channel.
    async fn receive(&mut self) -> Option<Message> {
        self.from_server.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.queue.close(Closed::ByUs);
        Ok(())
    }
}

impl Drop for SlowLane {
    fn drop(&mut self) {
        self.queue.close(Closed::ByUs);
        // The writer ends by itself once it has written what waits; the reader would wait for the
        // server.
        self.tasks[1].abort();
    }
}
