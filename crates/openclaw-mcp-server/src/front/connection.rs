//! What a client has declared in its handshake, and the way to it outside of replies.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use openclaw_tools::Progress;
use rmcp::model::{
    CustomNotification, InitializeRequestParams, InitializeResult, ServerNotification,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::outbox::Outbox;
use super::reply::HubReply;
use super::running::progress_params;
use crate::batch;
use crate::input::{Abilities, AskableClient, ClientAnswer, ClientQuestion, ask_peer};

/// How long a notification may take.
const NOTIFYING: Duration = Duration::from_secs(20);
/// Maximum number of notifications that are being sent.
const MAX_NOTIFICATIONS: usize = 256;

/// The connection of a client. Without a handshake (2026-07-28), nothing is known about it.
#[derive(Debug)]
pub(crate) struct ClientConnection {
    /// The way to it outside of replies, for clients with a handshake.
    peer: OnceLock<Peer<RoleServer>>,
    /// Where its messages are written, for a client that is reached by lines.
    outbox: OnceLock<Arc<Outbox>>,
    /// Limits the number of notifications that are being sent.
    notifying: Arc<Semaphore>,
    abilities: OnceLock<Abilities>,
    /// The protocol version of its handshake.
    version: OnceLock<String>,
}

impl Default for ClientConnection {
    fn default() -> Self {
        Self {
            peer: OnceLock::new(),
            outbox: OnceLock::new(),
            notifying: Arc::new(Semaphore::new(MAX_NOTIFICATIONS)),
            abilities: OnceLock::new(),
            version: OnceLock::new(),
        }
    }
}

impl ClientConnection {
    /// Sets where its messages are written.
    pub(crate) fn writes_to(&self, outbox: &Arc<Outbox>) {
        let _ = self.outbox.set(Arc::clone(outbox));
    }

    /// Performs the handshake for a server, and records what the client declares in it.
    ///
    /// # Errors
    /// That of the server.
    pub(crate) fn initialize(
        &self,
        server: &impl ServerHandler,
        request: InitializeRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let capabilities = serde_json::to_value(&request.capabilities).unwrap_or_default();
        let _ = self.abilities.set(Abilities::declared_in(&capabilities));
        let _ = self.peer.set(context.peer.clone());
        let answer = server.negotiate_initialize(&request);
        if let Ok(answer) = &answer {
            let _ = self.version.set(answer.protocol_version.as_str().to_owned());
        }
        context.peer.set_peer_info(request);
        answer
    }

    /// Whether the client has declared what it can be asked for.
    pub(crate) fn is_introduced(&self) -> bool {
        self.abilities.get().is_some()
    }

    /// The protocol version of the handshake.
    pub(crate) fn version(&self) -> Option<&str> {
        self.version.get().map(String::as_str)
    }

    /// Whether the client may send batches.
    pub(crate) fn has_batches(&self) -> bool {
        self.version() == Some(batch::VERSION)
    }

    /// Sends a notification, if there is a way to. Does not block: it is dropped if the client does
    /// not read.
    pub(crate) fn notify(&self, method: &str, params: Value) {
        if let Some(outbox) = self.outbox.get() {
            // In order with the replies.
            return outbox.offer(&notification(method, &params));
        }
        let Some(peer) = self.peer.get().cloned() else { return };
        let Ok(turn) = Arc::clone(&self.notifying).try_acquire_owned() else { return };
        // Without parameters, `rmcp` writes `null`, which is not valid JSON-RPC.
        let params = if params.is_null() { json!({}) } else { params };
        let notification = CustomNotification::new(method, Some(params));
        tokio::spawn(async move {
            let notification = ServerNotification::CustomNotification(notification);
            let _ = timeout(NOTIFYING, peer.send_notification(notification)).await;
            drop(turn);
        });
    }

    /// Waits for the reply to a call, and notifies the client of its progress if it wants that: `token` is
    /// the token of these notifications as JSON.
    pub(crate) async fn reporting(
        &self,
        token: Option<&str>,
        mut reports: watch::Receiver<Option<Progress>>,
        call: impl Future<Output = HubReply>,
    ) -> HubReply {
        let Some(token) = token else { return call.await };
        let mut call = std::pin::pin!(call);
        loop {
            tokio::select! {
                biased;
                Ok(()) = reports.changed() => {
                    if let Some(progress) = &*reports.borrow_and_update() {
                        self.notify("notifications/progress", progress_params(token, progress));
                    }
                }
                reply = &mut call => return reply,
            }
        }
    }
}

impl AskableClient for ClientConnection {
    fn abilities(&self) -> Abilities {
        self.abilities.get().copied().unwrap_or_default()
    }

    fn ask(&self, question: ClientQuestion) -> BoxFuture<'_, ClientAnswer> {
        Box::pin(async move {
            let peer = self.peer.get().ok_or("the client cannot answer yet")?;
            ask_peer(peer, question).await
        })
    }
}

/// A notification as JSON.
pub(crate) fn notification(method: &str, params: &Value) -> Vec<u8> {
    let mut message = json!({ "jsonrpc": "2.0", "method": method });
    if !params.is_null() {
        message["params"] = params.clone();
    }
    message.to_string().into_bytes()
}
