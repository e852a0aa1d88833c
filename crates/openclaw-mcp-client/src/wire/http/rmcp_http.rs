//! The lane for everything but calls: `rmcp`'s `Transport` over HTTP.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use openclaw_oauth::authorizer::Authorizer;
use openclaw_secrets::Redactor;
use rmcp::RoleClient;
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use super::HttpWire;
use super::body::{MAX_FAILURE, beginning};
use super::headers::{MessageSubject, Object};
use super::http_client::{HttpClient, RequestTarget};
use super::post::Outgoing;
use crate::wire::call_error::CallError;
use crate::wire::calls::{CallReply, Fault};
use crate::wire::deliver::Wanted;
use crate::wire::handshake_response::{HandshakeResponse, Replay};
use crate::wire::inbox::{self, ClientRoleMessage, Queued, WhenFull};
use crate::wire::peek::{MessageMembers, number};
use crate::wire::pending_requests::{HeldRequest, QueuedMessage, TakeOutcome};
use crate::wire::skipped::SkippedLines;
use crate::wire::{Closed, FastLane};

/// Timeout for sending a notification or a response.
const NOTICE: Duration = Duration::from_secs(30);
/// How long the limit of pending requests may stay reached before the connection is closed.
const FLOOD: Duration = Duration::from_secs(15);
/// Maximum number of requests within [`FLOOD`], however fast they are answered.
const MOST_REQUESTS: u32 = 3_000;

/// The transport of `rmcp`. It owns the connection: dropping it closes both lanes.
pub(crate) struct RmcpHttp {
    wire: Arc<HttpWire>,
    from_server: mpsc::Receiver<Queued>,
    replay: Replay,
    /// A request that is not admitted yet.
    held: Option<HeldRequest>,
    /// Since when there have been too many pending requests.
    flooded: Option<Instant>,
    /// When requests were first counted, and how many there were since.
    counted: (Instant, u32),
}

impl RmcpHttp {
    /// Creates the transport. Sends nothing: the protocol version must be determined first.
    pub(crate) fn open(
        server: &str,
        redactor: &Redactor,
        client: HttpClient,
        target: RequestTarget,
        auth: Option<Authorizer>,
    ) -> Self {
        let (to_rmcp, from_server) = inbox::channel();
        let skipped = SkippedLines::from(server, redactor);
        let wire = Arc::new(HttpWire::new(client, target, auth, skipped, to_rmcp));
        let replay = Replay::default();
        let counted = (Instant::now(), 0);
        Self { wire, from_server, replay, held: None, flooded: None, counted }
    }

    /// Replays a handshake response when `rmcp` sends the same request, so that the server receives
    /// it only once.
    pub(crate) fn with_handshake(mut self, handshake: Option<HandshakeResponse>) -> Self {
        self.replay = Replay::new(handshake);
        self
    }

    /// Returns the state that both lanes share.
    pub(crate) fn wire(&self) -> &Arc<HttpWire> {
        &self.wire
    }

    /// Returns the held request once it is admitted. Until then nothing else is received, so that
    /// the streams are not read either. A server that does not get out of this state is
    /// disconnected. Safe to cancel.
    async fn admit(&mut self) -> Option<ClientRoleMessage> {
        let HeldRequest { id, bytes, .. } = self.held.as_ref()?;
        let asked = &self.wire.asked;
        match asked.take(id, *bytes) {
            TakeOutcome::Taken => {
                if asked.is_calm() {
                    self.flooded = None;
                }
                let request = self.held.take().map(|held| held.request);
                if self.is_too_often() {
                    self.wire.close(Closed::Flooded);
                    return None;
                }
                return request;
            }
            TakeOutcome::Twice => self.held = None,
            TakeOutcome::TooMany => {
                let until = *self.flooded.get_or_insert_with(Instant::now) + FLOOD;
                // Checked before waiting: a server that accepts some responses makes room all the
                // time.
                if Instant::now() >= until || timeout_at(until, asked.room(*bytes)).await.is_err() {
                    self.held = None;
                    self.wire.close(Closed::Flooded);
                }
            }
        }
        None
    }

    /// Counts a request. Returns whether there were too many within [`FLOOD`].
    fn is_too_often(&mut self) -> bool {
        let now = Instant::now();
        let (since, count) = &mut self.counted;
        if now.duration_since(*since) >= FLOOD {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        *count > MOST_REQUESTS
    }

    async fn next(&mut self) -> Option<ClientRoleMessage> {
        loop {
            while self.held.is_some() {
                if let Some(request) = self.admit().await {
                    return Some(request);
                }
            }
            match QueuedMessage::from(self.from_server.recv().await?) {
                QueuedMessage::Request(held) => self.held = Some(held),
                QueuedMessage::Other(message) => {
                    // Since 2026-07-28, `rmcp` answers a request although it was cancelled.
                    if !self.wire.route().is_modern() {
                        self.wire.asked.heed(&message);
                    }
                    return Some(message);
                }
            }
        }
    }

    /// Returns the lane for calls.
    pub(crate) fn fast_lane(&self) -> FastLane {
        FastLane::over_http(Arc::clone(&self.wire))
    }
}

impl std::fmt::Debug for RmcpHttp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RmcpHttp").field("closed", &self.wire.closed()).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct Cancelled<'a> {
    #[serde(borrow, rename = "requestId")]
    request: &'a RawValue,
}

impl Transport<RoleClient> for RmcpHttp {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let wire = Arc::clone(&self.wire);
        let is_answered = self.replay.answers(&message, wire.redactor());
        let answering = wire.asked.sending(&message);
        let line = serde_json::to_vec(&message);
        async move {
            if is_answered {
                return Ok(());
            }
            let sent = match line {
                Ok(line) => wire.send_for_rmcp(line).await,
                Err(error) => Err(error.into()),
            };
            if let Some(answering) = answering {
                wire.asked.answered(answering);
            }
            sent
        }
    }

    // Safe to cancel: a message that was not received stays in the channel.
    async fn receive(&mut self) -> Option<ClientRoleMessage> {
        self.wire.is_rmcp_there.store(true, Ordering::Relaxed);
        if let Some(answer) = self.replay.next() {
            return Some(answer);
        }
        let wire = Arc::clone(&self.wire);
        tokio::select! {
            biased;
            _ = wire.until_closed() => None,
            message = self.next() => message,
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.wire.shut_down().await;
        Ok(())
    }
}

impl Drop for RmcpHttp {
    fn drop(&mut self) {
        self.wire.abandon();
    }
}

impl HttpWire {
    async fn send_for_rmcp(self: &Arc<Self>, line: Vec<u8>) -> io::Result<()> {
        if let Some(closed) = self.closed() {
            return Err(io::Error::other(closed.clone()));
        }
        let sent: MessageMembers<'_> = serde_json::from_slice(&line)?;
        match (sent.id.and_then(number), sent.method.as_deref()) {
            (Some(id), Some(_)) => {
                self.ask_for_rmcp(id, line);
                Ok(())
            }
            (_, method) => {
                if method == Some("notifications/cancelled") {
                    let params = sent.params.map_or("{}", RawValue::get);
                    let cancelled = serde_json::from_str::<Cancelled<'_>>(params).ok();
                    self.stop_for_rmcp(cancelled.and_then(|cancelled| number(cancelled.request)));
                    // Since 2026-07-28, closing the stream is the cancellation.
                    if self.route().is_modern() {
                        return Ok(());
                    }
                }
                let is_ready = method == Some("notifications/initialized");
                self.notify(method.unwrap_or_default(), &line).await.map_err(io::Error::other)?;
                if is_ready {
                    self.start_listening();
                }
                Ok(())
            }
        }
    }

    /// Sends a request of `rmcp` and hands over its response, or the error. Runs in its own task,
    /// because the response can take long (a subscription).
    fn ask_for_rmcp(self: &Arc<Self>, id: u64, line: Vec<u8>) {
        let wire = Arc::clone(self);
        // Locked until it is registered: the task removes its own entry, which must not happen
        // before the insertion.
        let mut requests = self.requests();
        let task = self.tasks.spawn(async move {
            let body: bytes::Bytes = line.into();
            let sent: Option<MessageMembers<'_>> = serde_json::from_slice(&body).ok();
            let method = sent.as_ref().and_then(|sent| sent.method.as_deref()).unwrap_or_default();
            let params = sent.as_ref().and_then(|sent| sent.params);
            let object = params.map_or(Object::None, Object::Params);
            let message =
                Outgoing { subject: MessageSubject { method, object }, body: body.clone() };
            match wire.exchange(Wanted { id, work: None }, &message).await {
                Ok(Some(answer)) => wire.answer_rmcp(id, answer).await,
                // The response will arrive on the open stream.
                Ok(None) => {}
                Err(error) => wire.answer_rmcp(id, Err(Fault::Error(as_rpc(error)))).await,
            }
            wire.requests().remove(&id);
        });
        if let Some(task) = task {
            requests.insert(id, task);
        }
    }

    fn stop_for_rmcp(&self, id: Option<u64>) {
        let task = id.and_then(|id| self.requests().remove(&id));
        if let Some(task) = task {
            task.abort();
        }
    }

    async fn answer_rmcp(&self, id: u64, answer: CallReply) {
        let (member, content) = match answer {
            Ok(result) => ("result", result),
            Err(fault) => ("error", as_rpc(fault.into()).into()),
        };
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"{member}":{content}}}"#);
        // If `rmcp` is gone, so is its request.
        let _ = self.to_rmcp.send(line.as_bytes(), None, WhenFull::Wait, &self.skipped).await;
    }

    /// Sends a message without waiting for a JSON-RPC response.
    async fn notify(self: &Arc<Self>, method: &str, line: &[u8]) -> Result<(), CallError> {
        let subject = MessageSubject { method, object: Object::None };
        let message = Outgoing { subject, body: bytes::Bytes::copy_from_slice(line) };
        let posted = timeout(NOTICE, async {
            // The semaphore is never closed.
            let _turn = self.notices.acquire().await;
            let (_, response) = self.post_in_session(&message).await?;
            // Read, so that the connection can be reused.
            beginning(response, MAX_FAILURE).await;
            Ok(())
        });
        tokio::select! {
            biased;
            closed = self.until_closed() => Err(closed.into()),
            posted = posted => posted.unwrap_or(Err(CallError::TimedOut(NOTICE))),
        }
    }

    /// Sends a cancellation to the server.
    pub(super) async fn notify_cancelled(self: &Arc<Self>, line: Vec<u8>) {
        if let Err(error) = self.notify("notifications/cancelled", &line).await {
            tracing::debug!(%error, "cannot send a cancellation to the server");
        }
    }
}

/// Converts an error to a JSON-RPC error, unless it is one of the server.
fn as_rpc(error: CallError) -> Box<RawValue> {
    match error {
        CallError::Rpc(error) => error,
        error => {
            let error = json!({ "code": -32000, "message": error.to_string() });
            serde_json::value::to_raw_value(&error).unwrap_or_else(|_| RawValue::NULL.to_owned())
        }
    }
}
