//! A handshake response that was received before `rmcp` requests it, and its replay.

use openclaw_secrets::Redactor;
use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::service::TxJsonRpcMessage;

use super::inbox::{ClientRoleMessage, MAX_PARSED, too_large_response};
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

/// Replays a handshake response when `rmcp` sends the same request, so that the server receives it
/// only once.
#[derive(Debug, Default)]
pub(super) struct Replay {
    /// Not requested yet.
    handshake: Option<HandshakeResponse>,
    /// Requested: `rmcp` receives it next.
    answer: Option<ClientRoleMessage>,
}

impl Replay {
    pub(super) fn new(handshake: Option<HandshakeResponse>) -> Self {
        Self { handshake, answer: None }
    }

    /// Returns whether `message` is the handshake request that the server has already answered. Its
    /// response is then [`next`](Self::next), and the message must not be sent.
    pub(super) fn answers(
        &mut self,
        message: &TxJsonRpcMessage<RoleClient>,
        redactor: &Redactor,
    ) -> bool {
        let answer = self.response_to(message, redactor);
        let is_answered = answer.is_some();
        if is_answered {
            self.answer = answer;
        }
        is_answered
    }

    /// Returns the response that `rmcp` receives next.
    pub(super) fn next(&mut self) -> Option<ClientRoleMessage> {
        self.answer.take()
    }

    /// Returns the response, redacted, and uses it up. One that is too large to parse is replaced by
    /// an error.
    fn response_to(
        &mut self,
        message: &TxJsonRpcMessage<RoleClient>,
        redactor: &Redactor,
    ) -> Option<ClientRoleMessage> {
        let JsonRpcMessage::Request(request) = message else { return None };
        let method = request.request.method();
        let is_same = |handshake: &mut HandshakeResponse| handshake.method == method;
        let HandshakeResponse { result, .. } = self.handshake.take_if(is_same)?;
        let id = serde_json::to_string(&request.id).ok()?;
        let line = if result.get().len() > MAX_PARSED {
            too_large_response(&id)
        } else {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
        };
        serde_json::from_str(&redacted::message(&line, redactor)).ok()
    }
}
