//! A handshake response that was received before `rmcp` requests it.

use crate::wire::json::Json;

/// A response that is replayed to `rmcp`, so that the server is initialized only once.
#[derive(Debug)]
pub(crate) struct HandshakeResponse {
    /// `initialize` or `server/discover`.
    pub(crate) method: &'static str,
    /// The server's result.
    pub(crate) result: Json,
}
