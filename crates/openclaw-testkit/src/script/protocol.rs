//! The versions that the server supports, and how it responds to the first message.

use serde::{Deserialize, Serialize};

use super::Script;

/// Every published version, oldest first; the last has no handshake.
pub const VERSIONS: [&str; 5] =
    ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// The response to `server/discover`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Discover {
    /// A `DiscoverResult`.
    Modern,
    /// Error -32601, like most servers without this method.
    MethodNotFound,
    /// Error -32602, like servers that check parameters first.
    InvalidParams,
    /// No response at all.
    Silence,
    /// The regular response, delayed by this many milliseconds.
    DelayMs(u64),
    /// The process exits.
    Crash,
}

/// Versions, handshake and discovery.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProtocolScript {
    /// The versions that the server accepts.
    pub versions: Vec<String>,
    /// `initialize` is answered with this version, whatever was requested.
    pub answer_version: Option<String>,
    /// The response to `server/discover`; by default it follows from `versions`.
    pub discover: Option<Discover>,
    /// `initialize` with one of these versions is answered with error -32602 instead of an offer.
    pub rejected_versions: Vec<String>,
    /// The process exits on `initialize` with one of these versions.
    pub crash_versions: Vec<String>,
    /// The delay of the response to `initialize` in milliseconds.
    pub initialize_delay_ms: u64,
    /// `initialize` is never answered.
    pub initialize_silence: bool,
    /// The `instructions` of the server.
    pub instructions: Option<String>,
    /// Replaces the capabilities that the server declares.
    pub capabilities: Option<serde_json::Value>,
}

impl Default for ProtocolScript {
    fn default() -> Self {
        Self {
            versions: VERSIONS.map(str::to_owned).to_vec(),
            answer_version: None,
            discover: None,
            rejected_versions: Vec::new(),
            crash_versions: Vec::new(),
            initialize_delay_ms: 0,
            initialize_silence: false,
            instructions: None,
            capabilities: None,
        }
    }
}

impl ProtocolScript {
    pub(crate) fn accepts(&self, version: &str) -> bool {
        self.versions.iter().any(|known| known == version)
    }

    /// Whether a version without a handshake is accepted.
    pub(crate) fn is_modern(&self) -> bool {
        self.versions.iter().any(|version| is_modern(version))
    }

    /// Returns the newest accepted version that begins with `initialize`.
    pub(crate) fn latest_with_handshake(&self) -> Option<&str> {
        self.versions.iter().map(String::as_str).filter(|version| !is_modern(version)).max()
    }
}

/// Whether a version has no handshake. Versions are dates, so they compare as text.
pub(crate) fn is_modern(version: &str) -> bool {
    version >= "2026-07-28"
}

setters! { protocol:
    /// Answers `initialize` with this version, whatever was requested.
    answer_version(version: impl Into<String>) => answer_version = Some(version.into());
    /// Sets the response to `server/discover`.
    discover(discover: Discover) => discover = Some(discover);
    /// Delays the response to `initialize`.
    initialize_delay_ms(ms: u64) => initialize_delay_ms = ms;
    /// Never answers `initialize`.
    initialize_silence() => initialize_silence = true;
    /// Sets the `instructions` of the server.
    instructions(text: impl Into<String>) => instructions = Some(text.into());
    /// Replaces the declared capabilities.
    capabilities(capabilities: serde_json::Value) => capabilities = Some(capabilities);
}

impl Script {
    /// Accepts only these versions.
    pub fn versions<V: Into<String>>(mut self, versions: impl IntoIterator<Item = V>) -> Self {
        self.protocol.versions = versions.into_iter().map(Into::into).collect();
        self
    }

    /// Accepts only the versions that begin with `initialize`.
    pub fn legacy(self) -> Self {
        self.versions(VERSIONS[..4].iter().copied())
    }

    /// Accepts only 2026-07-28.
    pub fn modern(self) -> Self {
        self.versions(VERSIONS[4..].iter().copied())
    }

    /// Answers `initialize` for this version with an error.
    pub fn reject_version(mut self, version: impl Into<String>) -> Self {
        self.protocol.rejected_versions.push(version.into());
        self
    }

    /// Exits on `initialize` for this version.
    pub fn crash_on_version(mut self, version: impl Into<String>) -> Self {
        self.protocol.crash_versions.push(version.into());
        self
    }
}
