//! The lane for everything but calls: `rmcp`'s `Transport`.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ErrorCode, ErrorData, JsonRpcMessage};
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::Closed;
use super::handshake_response::{HandshakeResponse, Replay};
use super::inbox::{ClientRoleMessage, Queued};
use super::pending_requests::{HeldRequest, QueuedMessage, TakeOutcome};
use super::queue::WriteQueue;

/// How long a request waits while too many others are pending. Meanwhile no other message is
/// received, and eventually reading stops; a request that the user must answer can take minutes.
const BUSY: Duration = Duration::from_secs(1);

/// The transport of `rmcp`. It owns the connection: dropping it closes both lanes.
pub struct RmcpPipe {
    queue: Arc<WriteQueue>,
    from_server: mpsc::Receiver<Queued>,
    tasks: [JoinHandle<()>; 3],
    replay: Replay,
    /// A request that is not admitted yet, and its deadline.
    held: Option<(HeldRequest, Instant)>,
    /// The last request reached its deadline.
    is_stuck: bool,
}

impl RmcpPipe {
    pub(super) fn new(
        queue: Arc<WriteQueue>,
        from_server: mpsc::Receiver<Queued>,
        tasks: [JoinHandle<()>; 3],
    ) -> Self {
        let replay = Replay::default();
        Self { queue, from_server, tasks, replay, held: None, is_stuck: false }
    }

    /// Replays a handshake response when `rmcp` sends the same request, so that the server receives
    /// it only once.
    pub(crate) fn with_handshake(mut self, handshake: Option<HandshakeResponse>) -> Self {
        self.replay = Replay::new(handshake);
        self
    }

    /// Returns the held request once it is admitted. `rmcp` spawns a task for each request, which
    /// blocks while the server does not read. Safe to cancel.
    async fn admit(&mut self) -> Option<ClientRoleMessage> {
        let (HeldRequest { id, bytes, .. }, until) = self.held.as_ref()?;
        // There must be room for its response. If there is none for too long, the writer closes the
        // connection.
        if self.queue.room().await.is_err() {
            self.held = None;
            return None;
        }
        match self.queue.asked.take(id, *bytes) {
            TakeOutcome::Taken => {
                self.is_stuck = false;
                self.held.take().map(|(held, _)| held.request)
            }
            TakeOutcome::Twice => {
                self.held = None;
                None
            }
            TakeOutcome::TooMany => {
                let room = self.queue.asked.room(*bytes);
                if self.is_stuck || timeout_at(*until, room).await.is_err() {
                    let words = "too many pending requests";
                    let error = ErrorData::new(ErrorCode(-32000), words, None);
                    let refusal = JsonRpcMessage::error(error, Some(id.clone()));
                    let _ = push(&self.queue, &refusal);
                    (self.held, self.is_stuck) = (None, true);
                }
                None
            }
        }
    }
}

/// Queues a message.
fn push(queue: &WriteQueue, message: &TxJsonRpcMessage<RoleClient>) -> serde_json::Result<()> {
    let line = serde_json::to_vec(message)?;
    queue.push(|state| {
        state.out.extend_from_slice(&line);
        state.out.push(b'\n');
    });
    Ok(())
}

impl std::fmt::Debug for RmcpPipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RmcpPipe").field("closed", &self.queue.closed()).finish_non_exhaustive()
    }
}

impl Transport<RoleClient> for RmcpPipe {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let is_answered = self.replay.answers(&message, self.queue.skipped.redactor());
        let answering = self.queue.asked.sending(&message);
        let queue = Arc::clone(&self.queue);
        async move {
            if is_answered {
                return Ok(());
            }
            let sent = queue.room().await.map_err(io::Error::other);
            let sent = sent.and_then(|()| push(&queue, &message).map_err(io::Error::from));
            if let Some(answering) = answering {
                queue.asked.answered(answering);
            }
            sent
        }
    }

    // Safe to cancel: a message that was not received stays in the channel.
    async fn receive(&mut self) -> Option<ClientRoleMessage> {
        self.queue.is_rmcp_there.store(true, Ordering::Relaxed);
        if let Some(answer) = self.replay.next() {
            return Some(answer);
        }
        loop {
            while self.held.is_some() {
                if let Some(request) = self.admit().await {
                    return Some(request);
                }
            }
            match QueuedMessage::from(self.from_server.recv().await?) {
                QueuedMessage::Request(held) => self.held = Some((held, Instant::now() + BUSY)),
                QueuedMessage::Other(message) => {
                    self.queue.asked.heed(&message);
                    return Some(message);
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.queue.close(Closed::ByUs);
        Ok(())
    }
}

impl Drop for RmcpPipe {
    fn drop(&mut self) {
        self.queue.close(Closed::ByUs);
        // The writer stops once it has written the buffer; the reader would wait for the server.
        self.tasks[1].abort();
    }
}
