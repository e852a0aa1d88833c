//! How messages are sent at present: which protocol, which session, where to.

use http::HeaderValue;

use super::client::Target;

/// The oldest version that wants to be named in a header.
const NAMED_SINCE: &str = "2025-06-18";

/// How messages are sent at present. A new session is a new route.
#[derive(Debug, Clone)]
pub(super) struct Route {
    /// The sessions before this one.
    pub(super) generation: u64,
    pub(super) protocol: Protocol,
    pub(super) session: Option<HeaderValue>,
    /// The version that is named in the headers.
    pub(super) version: Option<HeaderValue>,
}

#[derive(Debug, Clone)]
pub(super) enum Protocol {
    /// 2026-07-28: no handshake, no session, no stream besides those of answers.
    Modern,
    /// 2025-03-26 to 2025-11-25.
    Streamable,
    /// 2024-11-05: POSTs go to this address, answers come on the stream that is open.
    Sse { endpoint: Box<Target> },
}

impl Route {
    pub(super) fn modern() -> Self {
        let version = Some(HeaderValue::from_static("2026-07-28"));
        Self { generation: 0, protocol: Protocol::Modern, session: None, version }
    }

    /// Before the handshake, nothing is known.
    pub(super) fn before_handshake(protocol: Protocol) -> Self {
        Self { generation: 0, protocol, session: None, version: None }
    }

    /// With this outcome of the handshake.
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
