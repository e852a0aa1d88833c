//! How messages are currently sent: protocol, session and endpoint.

use http::HeaderValue;

use super::http_client::RequestTarget;

/// The first version that requires `MCP-Protocol-Version`.
const NAMED_SINCE: &str = "2025-06-18";

/// How messages are currently sent. A new session is a new route.
#[derive(Debug, Clone)]
pub(super) struct Route {
    /// The number of completed handshakes.
    pub(super) generation: u64,
    pub(super) protocol: Protocol,
    pub(super) session: Option<HeaderValue>,
    /// The version that is sent as a header.
    pub(super) version: Option<HeaderValue>,
}

#[derive(Debug, Clone)]
pub(super) enum Protocol {
    /// 2026-07-28: no handshake, no session, no streams except those of responses.
    Modern,
    /// 2025-03-26 to 2025-11-25.
    Streamable,
    /// 2024-11-05: POSTs go to `endpoint`, responses arrive on the open stream.
    Sse { endpoint: Box<RequestTarget> },
}

impl Route {
    pub(super) fn modern() -> Self {
        let version = Some(HeaderValue::from_static("2026-07-28"));
        Self { generation: 0, protocol: Protocol::Modern, session: None, version }
    }

    /// Before the handshake: no session and no version.
    pub(super) fn before_handshake(protocol: Protocol) -> Self {
        Self { generation: 0, protocol, session: None, version: None }
    }

    /// Returns the route that results from a handshake.
    pub(super) fn after_handshake(&self, session: Option<HeaderValue>, version: &str) -> Self {
        let header = HeaderValue::from_str(version).ok();
        Self {
            generation: self.generation + 1,
            protocol: self.protocol.clone(),
            session,
            version: header.filter(|_| version >= NAMED_SINCE),
        }
    }

    pub(super) fn is_modern(&self) -> bool {
        matches!(self.protocol, Protocol::Modern)
    }
}
