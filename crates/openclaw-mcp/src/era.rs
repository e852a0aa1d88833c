//! Which era of the protocol a server speaks: with a handshake (up to 2025-11-25) or without
//! (2026-07-28).
//!
//! Nothing but asking tells. A modern server answers `server/discover`; an older one answers with an
//! error, or not at all: so the question must be short, and its outcome worth remembering.

use std::time::Duration;

use rmcp::model::{ClientConfig, ProtocolVersion, RequestMetaObject};
use rmcp::service::ClientInitializeError;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::wire::{CallError, Closed, FastLane, Limits};

/// How long a server may be silent before it is taken for an old one. A modern one that takes longer to
/// start refuses the old way with an error that gives it away: it is then started once more, and known
/// from then on.
pub const PROBE_TIMEOUT: Duration = Duration::from_millis(400);

/// An era of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// With a handshake.
    Legacy,
    /// Without.
    Modern,
}

/// What a server said when it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// It answered.
    Era(Era),
    /// Nothing, so far: it is treated as an old one, and nothing is remembered.
    Silent,
}

impl Finding {
    /// How to go on with this server.
    pub fn era(self) -> Era {
        match self {
            Self::Era(era) => era,
            Self::Silent => Era::Legacy,
        }
    }
}

/// Errors that only a modern server answers with: unsupported version, missing capability, header
/// mismatch.
pub(crate) const MODERN_ERRORS: [i64; 3] = [-32022, -32021, -32020];

/// What a modern server says of itself, as far as it tells the era.
#[derive(Deserialize)]
pub(crate) struct Discovered {
    #[serde(rename = "supportedVersions")]
    pub(crate) versions: Vec<String>,
}

/// Whether a server refused a handshake as only a modern one does.
pub(crate) fn is_modern_refusal(error: &ClientInitializeError) -> bool {
    let ClientInitializeError::JsonRpcError(error) = error else { return false };
    MODERN_ERRORS.contains(&i64::from(error.code.0))
}

#[derive(Deserialize)]
struct RpcError {
    code: i64,
}

/// Asks a server.
///
/// # Errors
/// If the connection closes meanwhile.
pub async fn probe(
    lane: &FastLane,
    client: &ClientConfig,
    timeout: Duration,
) -> Result<Finding, Closed> {
    let limits = Limits { timeout, cap: timeout };
    match lane.request("server/discover", &question(client), limits).await {
        // Some old servers answer anything with an empty result.
        Ok(result) => {
            let is_modern = serde_json::from_str::<Discovered>(result.get()).is_ok();
            Ok(Finding::Era(if is_modern { Era::Modern } else { Era::Legacy }))
        }
        Err(CallError::Rpc(error)) => {
            let is_modern = code(&error).is_some_and(|code| MODERN_ERRORS.contains(&code));
            Ok(Finding::Era(if is_modern { Era::Modern } else { Era::Legacy }))
        }
        Err(CallError::Closed(closed)) => Err(closed),
        Err(_) => Ok(Finding::Silent),
    }
}

/// The code of an error.
pub(crate) fn code(error: &RawValue) -> Option<i64> {
    serde_json::from_str::<RpcError>(error.get()).ok().map(|error| error.code)
}

/// What 2026-07-28 wants to know of a client in the `_meta` of every request.
pub(crate) fn request_meta(client: &ClientConfig) -> Map<String, Value> {
    let meta = RequestMetaObject::with_client_context(
        ProtocolVersion::V_2026_07_28,
        client.client_info.clone(),
        client.capabilities.clone(),
    );
    match serde_json::to_value(meta) {
        Ok(Value::Object(meta)) => meta,
        // Serializing plain data cannot fail; without it the server would only be taken for an old one.
        _ => Map::new(),
    }
}

/// The parameters of `server/discover`.
pub(crate) fn question(client: &ClientConfig) -> Box<RawValue> {
    let params = serde_json::json!({ "_meta": request_meta(client) });
    to_raw_value(&params).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
