//! The lane for everything but calls: `rmcp`'s `Transport`.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::Closed;
use super::deliver::Message;
use super::greeting::Greeting;
use super::queue::Queue;

/// What `rmcp` sends and receives through. It owns the connection: with it, both lanes end.
pub struct SlowLane {
    queue: Arc<Queue>,
    from_server: mpsc::Receiver<Message>,
    tasks: [JoinHandle<()>; 2],
    greeting: Option<Greeting>,
    /// The answer to a greeting, on its way to `rmcp`.
    answer: Option<Message>,
}

impl SlowLane {
    pub(super) fn new(
        queue: Arc<Queue>,
        from_server: mpsc::Receiver<Message>,
        tasks: [JoinHandle<()>; 2],
    ) -> Self {
        Self { queue, from_server, tasks, greeting: None, answer: None }
    }

    /// What the server said to a greeting is told to `rmcp` when it says the same, so that the server
    /// is greeted once.
    pub(crate) fn greeted(mut self, greeting: Option<Greeting>) -> Self {
        self.greeting = greeting;
        self
    }

    /// Whether a message of `rmcp` is the greeting that the server has answered already.
    fn is_answered(&mut self, message: &TxJsonRpcMessage<RoleClient>) -> bool {
        let JsonRpcMessage::Request(request) = message else { return false };
        let method = request.request.method();
        let Some(greeting) = self.greeting.take_if(|greeting| greeting.method == method) else {
            return false;
        };
        let id = serde_json::to_string(&request.id).unwrap_or_default();
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, greeting.result);
        self.answer = serde_json::from_str(&line).ok();
        self.answer.is_some()
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
        let is_answered = self.is_answered(&message);
        let queue = Arc::clone(&self.queue);
        async move {
            if is_answered {
                return Ok(());
            }
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
        self.queue.is_rmcp_there.store(true, Ordering::Relaxed);
        match self.answer.take() {
            Some(answer) => Some(answer),
            None => self.from_server.recv().await,
        }
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
