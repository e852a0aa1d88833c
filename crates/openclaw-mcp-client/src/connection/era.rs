//! Detection of the protocol era of a server: with a handshake (up to 2025-11-25) or without
//! (2026-07-28).
//!
//! The era can only be detected by a request. A modern server supports `server/discover`; an older
//! one responds with an error, or not at all. The result is worth caching.

use std::time::Duration;

use rmcp::model::{
    ClientConfig, JsonObject, ProtocolVersion, RequestMetaObject, TASKS_EXTENSION_ID,
};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::wire::json::Json;
use crate::wire::{CallError, FastLane, HandshakeResponse, TimeLimits};

/// How long to wait for `server/discover` before `initialize` is sent too.
pub const PROBE_TIMEOUT: Duration = Duration::from_millis(400);

/// Effectively unlimited: the caller enforces the timeout.
const PATIENT: TimeLimits =
    TimeLimits { timeout: Duration::from_secs(600), cap: Duration::from_secs(600) };

/// An era of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// With a handshake.
    Legacy,
    /// Without a handshake.
    Modern,
}

/// The only protocol version to use with a server, by the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedVersion {
    /// The version.
    pub version: ProtocolVersion,
    /// Its era.
    pub era: Era,
}

impl From<openclaw_config::ProtocolVersion> for PinnedVersion {
    fn from(version: openclaw_config::ProtocolVersion) -> Self {
        use openclaw_config::ProtocolVersion as Configured;
        let (version, era) = match version {
            Configured::V20241105 => (ProtocolVersion::V_2024_11_05, Era::Legacy),
            Configured::V20250326 => (ProtocolVersion::V_2025_03_26, Era::Legacy),
            Configured::V20250618 => (ProtocolVersion::V_2025_06_18, Era::Legacy),
            Configured::V20251125 => (ProtocolVersion::V_2025_11_25, Era::Legacy),
            Configured::V20260728 => (ProtocolVersion::V_2026_07_28, Era::Modern),
        };
        Self { version, era }
    }
}

/// Error codes that only modern servers use: unsupported version, missing capability, header
/// mismatch.
pub(crate) const MODERN_ERRORS: [i64; 3] = [-32022, -32021, -32020];

/// The part of the `server/discover` result that identifies the era.
#[derive(Deserialize)]
pub(crate) struct Discovered {
    #[serde(rename = "supportedVersions")]
    pub(crate) versions: Vec<String>,
}

#[derive(Deserialize)]
struct RpcError {
    code: i64,
}

/// The result of [`greet`].
#[derive(Debug)]
pub(crate) struct DetectedEra {
    /// The detected era.
    pub(crate) era: Era,
    /// The response to replay to `rmcp`; `None` if `rmcp` must send the request itself.
    pub(crate) response: Option<HandshakeResponse>,
}

/// Detects the era of a server over a pipe.
///
/// Unless the era is known to be legacy, `server/discover` is sent, followed by `initialize` if
/// there is no response in time; the first response decides. A server that ignores unknown requests
/// is thus not waited for, and one that starts slowly is not misdetected.
///
/// # Errors
/// If the server rejects the request, or the connection closes. The caller enforces the timeout.
pub(crate) async fn greet(
    lane: &FastLane,
    client: &ClientConfig,
    offer: ProtocolVersion,
    known: Option<Era>,
) -> Result<DetectedEra, CallError> {
    let discover =
        async { discovered(lane.ask("server/discover", &question(client), PATIENT).await) };
    let initialize = async {
        let result = lane.ask("initialize", &introduction(client, offer), PATIENT).await?;
        let response = Some(HandshakeResponse { method: "initialize", result });
        Ok(DetectedEra { era: Era::Legacy, response })
    };
    match known {
        Some(Era::Legacy) => match initialize.await {
            // The server has changed since.
            Err(CallError::Rpc(error)) if is_modern_error(&error) => {
                discover.await?.ok_or(CallError::Rpc(error))
            }
            greeted => greeted,
        },
        Some(Era::Modern) | None => both(discover, initialize).await,
    }
}

/// Sends `server/discover` and, after a delay, `initialize` too.
async fn both(
    discover: impl Future<Output = Result<Option<DetectedEra>, CallError>>,
    initialize: impl Future<Output = Result<DetectedEra, CallError>>,
) -> Result<DetectedEra, CallError> {
    tokio::pin!(discover, initialize);
    match tokio::time::timeout(PROBE_TIMEOUT, &mut discover).await {
        Ok(Ok(Some(greeted))) => return Ok(greeted),
        Ok(Ok(None)) => return initialize.await,
        Ok(Err(error)) => return Err(error),
        Err(_) => {}
    }
    tokio::select! {
        // If both responses have arrived, the one that was requested first decides.
        biased;
        found = &mut discover => match found? {
            Some(greeted) => Ok(greeted),
            None => initialize.await,
        },
        greeted = &mut initialize => match greeted {
            // The server is modern, and its `server/discover` response is pending.
            Err(CallError::Rpc(error)) if is_modern_error(&error) => {
                discover.await?.ok_or(CallError::Rpc(error))
            }
            greeted => greeted,
        },
    }
}

/// Interprets the response to `server/discover`; `None` for an old server.
fn discovered(answer: Result<Json, CallError>) -> Result<Option<DetectedEra>, CallError> {
    match answer {
        // Some old servers respond to any request with an empty result.
        Ok(result) => {
            let is_modern = serde_json::from_str::<Discovered>(result.get()).is_ok();
            let response = Some(HandshakeResponse { method: "server/discover", result });
            Ok(is_modern.then_some(DetectedEra { era: Era::Modern, response }))
        }
        // `rmcp` handles these errors.
        Err(CallError::Rpc(error)) if is_modern_error(&error) => {
            Ok(Some(DetectedEra { era: Era::Modern, response: None }))
        }
        Err(CallError::Rpc(_) | CallError::Unreadable { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_modern_error(error: &RawValue) -> bool {
    code(error).is_some_and(|code| MODERN_ERRORS.contains(&code))
}

/// Returns the code of a JSON-RPC error.
pub(crate) fn code(error: &RawValue) -> Option<i64> {
    serde_json::from_str::<RpcError>(error.get()).ok().map(|error| error.code)
}

/// Returns the client information that 2026-07-28 requires in the `_meta` of every request.
pub(crate) fn request_meta(client: &ClientConfig) -> Map<String, Value> {
    let mut capabilities = client.capabilities.clone();
    let extensions = capabilities.extensions.get_or_insert_default();
    extensions.insert(TASKS_EXTENSION_ID.to_owned(), JsonObject::new());
    let meta = RequestMetaObject::with_client_context(
        ProtocolVersion::V_2026_07_28,
        client.client_info.clone(),
        capabilities,
    );
    match serde_json::to_value(meta) {
        Ok(Value::Object(meta)) => meta,
        // Serializing plain data cannot fail; without it the server would be treated as an old one.
        _ => Map::new(),
    }
}

/// Returns the parameters of `server/discover`.
pub(crate) fn question(client: &ClientConfig) -> Box<RawValue> {
    let params = serde_json::json!({ "_meta": request_meta(client) });
    to_raw_value(&params).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Returns the parameters of `initialize`.
pub(crate) fn introduction(client: &ClientConfig, version: ProtocolVersion) -> Box<RawValue> {
    let client = client.clone().with_protocol_version(version);
    // Serializing plain data cannot fail; without it the server would return an error.
    to_raw_value(&client).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
