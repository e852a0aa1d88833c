//! What `rmcp` sees of a client that is reached by lines: every message that is not a tool call of
//! the fast lane.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use openclaw_budget::ByteBudget;
use rmcp::model::{JsonRpcMessage, ServerResult};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc;

use super::outbox::Outbox;
use super::reply::HubReply;

/// A message for `rmcp`.
pub(crate) type ServerRoleMessage = RxJsonRpcMessage<RoleServer>;

/// The transport of `rmcp`.
pub(crate) struct FrontTransport {
    pub(crate) messages: mpsc::Receiver<ServerRoleMessage>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) budget: Arc<ByteBudget>,
    /// Set before the response to `initialize`, with which the fast lane opens. Any later, and the
    /// first call of a quick client would miss it; any earlier, and a call could overtake the response.
    pub(crate) is_open: Arc<AtomicBool>,
}

impl Transport<RoleServer> for FrontTransport {
    type Error = Infallible;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        let answers = match &item {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        let opens = matches!(
            &item,
            JsonRpcMessage::Response(it) if matches!(it.result, ServerResult::InitializeResult(_))
        );
        let answers = answers.and_then(|id| serde_json::to_string(id).ok().map(Arc::from));
        let line = serde_json::to_vec(&item);
        // While it waits for room.
        let size = line.as_ref().map_or(0, Vec::len);
        let memory = self.budget.hold(size);
        let outbox = Arc::clone(&self.outbox);
        let is_open = Arc::clone(&self.is_open);
        async move {
            match line {
                Ok(mut line) => {
                    if opens {
                        is_open.store(true, Ordering::Release);
                    }
                    if let (Err(spent), Some(id)) = (&memory, &answers) {
                        line = HubReply::busy(*spent).into_message(id);
                    }
                    outbox.send(&line, answers).await;
                }
                Err(error) => tracing::warn!(%error, "cannot serialize a message"),
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<ServerRoleMessage> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}
