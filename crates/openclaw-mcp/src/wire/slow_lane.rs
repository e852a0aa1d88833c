//! The lane for everything but calls: `rmcp`'s `Transport`.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    ClientNotification, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerNotification,
};
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::Closed;
use super::deliver::Message;
use super::handshake_response::HandshakeResponse;
use super::pending_requests::Verdict;
use super::queue::Queue;
use super::redacted;

/// How long a request waits while too many others are pending. Meanwhile no other message is
/// received, and eventually reading stops; a request that the user must answer can take minutes.
const BUSY: Duration = Duration::from_secs(1);

/// The transport of `rmcp`. It owns the connection: dropping it closes both lanes.
pub struct SlowLane {
    queue: Arc<Queue>,
    from_server: mpsc::Receiver<Message>,
    tasks: [JoinHandle<()>; 3],
    handshake: Option<HandshakeResponse>,
    /// The handshake response that `rmcp` receives next.
    answer: Option<Message>,
    /// A request that is not admitted yet, and its deadline.
    held: Option<(RequestId, Message, Instant)>,
    /// The last request reached its deadline.
    is_stuck: bool,
}

impl SlowLane {
    pub(super) fn new(
        queue: Arc<Queue>,
        from_server: mpsc::Receiver<Message>,
        tasks: [JoinHandle<()>; 3],
    ) -> Self {
        let (handshake, answer, held) = (None, None, None);
        Self { queue, from_server, tasks, handshake, answer, held, is_stuck: false }
    }

    /// Replays a handshake response when `rmcp` sends the same request, so that the server receives
    /// it only once.
    pub(crate) fn with_handshake(mut self, handshake: Option<HandshakeResponse>) -> Self {
        self.handshake = handshake;
        self
    }

    /// Returns whether `message` is the handshake request that the server has already answered.
    fn is_answered(&mut self, message: &TxJsonRpcMessage<RoleClient>) -> bool {
        let JsonRpcMessage::Request(request) = message else { return false };
        let method = request.request.method();
        let Some(handshake) = self.handshake.take_if(|handshake| handshake.method == method) else {
            return false;
        };
        let id = serde_json::to_string(&request.id).unwrap_or_default();
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, handshake.result);
        let line = redacted::message(&line, self.queue.skipped.redactor());
        self.answer = serde_json::from_str(&line).ok();
        self.answer.is_some()
    }

    /// Returns the held request once it is admitted. `rmcp` spawns a task for each request, which
    /// blocks while the server does not read. Safe to cancel.
    async fn admit(&mut self) -> Option<Message> {
        let (id, _, until) = self.held.as_ref()?;
        // There must be room for its response. If there is none for too long, the writer closes the
        // connection.
        if self.queue.room().await.is_err() {
            self.held = None;
            return None;
        }
        match self.queue.asked.take(id) {
            Verdict::Taken => {
                self.is_stuck = false;
                self.held.take().map(|(_, request, _)| request)
            }
            Verdict::Twice => {
                self.held = None;
                None
            }
            Verdict::TooMany => {
                if self.is_stuck || timeout_at(*until, self.queue.asked.room()).await.is_err() {
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
fn push(queue: &Queue, message: &TxJsonRpcMessage<RoleClient>) -> serde_json::Result<()> {
    let line = serde_json::to_vec(message)?;
    queue.push(|state| {
        state.out.extend_from_slice(&line);
        state.out.push(b'\n');
    });
    Ok(())
}

/// Returns the id of the server's request that a message answers.
fn answers(message: &TxJsonRpcMessage<RoleClient>) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    }
}

/// Returns the id of the request that a notification cancels.
fn cancels(notification: &ServerNotification) -> Option<&RequestId> {
    match notification {
        ServerNotification::CancelledNotification(cancelled) => {
            cancelled.params.request_id.as_ref()
        }
        _ => None,
    }
}

/// Returns whether a message completes the handshake.
fn is_initialized(message: &TxJsonRpcMessage<RoleClient>) -> bool {
    let JsonRpcMessage::Notification(notification) = message else { return false };
    matches!(notification.notification, ClientNotification::InitializedNotification(_))
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
        if is_initialized(&message) {
            // `rmcp` ignores requests that arrived before.
            self.queue.asked.forget();
        }
        let queue = Arc::clone(&self.queue);
        async move {
            if is_answered {
                return Ok(());
            }
            let sent = queue.room().await.map_err(io::Error::other);
            let sent = sent.and_then(|()| push(&queue, &message).map_err(io::Error::from));
            if let Some(id) = answers(&message) {
                queue.asked.answered(id);
            }
            sent
        }
    }

    // Safe to cancel: a message that was not received stays in the channel.
    async fn receive(&mut self) -> Option<Message> {
        self.queue.is_rmcp_there.store(true, Ordering::Relaxed);
        if let Some(answer) = self.answer.take() {
            return Some(answer);
        }
        loop {
            if self.held.is_some() {
                match self.admit().await {
                    Some(request) => return Some(request),
                    None => continue,
                }
            }
            let message = self.from_server.recv().await?;
            match &message {
                JsonRpcMessage::Request(request) => {
                    self.held = Some((request.id.clone(), message, Instant::now() + BUSY));
                }
                JsonRpcMessage::Notification(notification) => {
                    if let Some(id) = cancels(&notification.notification) {
                        self.queue.asked.answered(id);
                    }
                    return Some(message);
                }
                _ => return Some(message),
            }
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
        // The writer stops once it has written the buffer; the reader would wait for the server.
        self.tasks[1].abort();
    }
}
