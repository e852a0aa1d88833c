//! A handshake response that was received before `rmcp` requests it.

use openclaw_secrets::Redactor;
use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::service::TxJsonRpcMessage;

use super::inbox::{MAX_PARSED, Message, too_large_response};
use super::redacted;
use crate::wire::json::Json;

/// A response that is replayed to `rmcp`, so that the server is initialized only once.
#[derive(Debug)]
pub(crate) struct HandshakeResponse {
    /// `initialize` or `server/discover`.
    pub(crate) method: &'static str,
    /// The server's result.
    pub(crate) result: Json,
}

impl HandshakeResponse {
    /// Returns the response to `message` if it is the handshake request that the server has already
    /// answered, redacted, and uses it up. One that is too large to parse is replaced by an error.
    pub(super) fn replay(
        handshake: &mut Option<Self>,
        message: &TxJsonRpcMessage<RoleClient>,
        redactor: &Redactor,
    ) -> Option<Message> {
        let JsonRpcMessage::Request(request) = message else { return None };
        let method = request.request.method();
        let Self { result, .. } = handshake.take_if(|handshake| handshake.method == method)?;
        let id = serde_json::to_string(&request.id).ok()?;
        let line = if result.get().len() > MAX_PARSED {
            too_large_response(&id)
        } else {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
        };
        serde_json::from_str(&redacted::message(&line, redactor)).ok()
    }
}
