//! Which era of the protocol a server speaks: with a handshake (up to 2025-11-25) or without
//! (2026-07-28).
//!
//! Nothing but asking tells. A modern server answers `server/discover`; an older one answers with an
//! error, or not at all. What was found out is worth remembering.

use std::time::Duration;

use rmcp::model::{ClientConfig, ProtocolVersion, RequestMetaObject};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::wire::json::Json;
use crate::wire::{CallError, FastLane, Greeting, Limits};

/// How long a server may be silent before it is asked the old way, too.
pub const PROBE_TIMEOUT: Duration = Duration::from_millis(400);

/// Whoever greets has a time-out for all of it.
const PATIENT: Limits = Limits { timeout: Duration::from_secs(600), cap: Duration::from_secs(600) };

/// An era of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// With a handshake.
    Legacy,
    /// Without.
    Modern,
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

#[derive(Deserialize)]
struct RpcError {
    code: i64,
}

/// A server that was greeted.
#[derive(Debug)]
pub(crate) struct Greeted {
    /// The era that it speaks.
    pub(crate) era: Era,
    /// What it said, for `rmcp`; none if `rmcp` is to ask by itself.
    pub(crate) greeting: Option<Greeting>,
}

/// Greets a server over a pipe.
///
/// Where it is not known which era it speaks, it is asked the new way, and if it stays silent the old
/// way, too; whatever it answers first decides. So a server that ignores what it does not know is not
/// waited for, and one that is only slow to start is not misunderstood.
///
/// # Errors
/// If it refuses, or the connection closes. The time-out is the caller's.
pub(crate) async fn greet(
    lane: &FastLane,
    client: &ClientConfig,
    offer: ProtocolVersion,
    known: Option<Era>,
) -> Result<Greeted, CallError> {
    let (question, introduction) = (question(client), introduction(client, offer));
    let discover = async { discovered(lane.ask("server/discover", &question, PATIENT).await) };
    let initialize = async {
        let result = lane.ask("initialize", &introduction, PATIENT).await?;
        let greeting = Some(Greeting { method: "initialize", result });
        Ok(Greeted { era: Era::Legacy, greeting })
    };
    match known {
        Some(Era::Legacy) => match initialize.await {
            // It has changed since.
            Err(CallError::Rpc(error)) if is_modern_error(&error) => {
                discover.await?.ok_or(CallError::Rpc(error))
            }
            greeted => greeted,
        },
        Some(Era::Modern) | None => both(discover, initialize).await,
    }
}

/// Asks the new way, and after a while the old way, too.
async fn both(
    discover: impl Future<Output = Result<Option<Greeted>, CallError>>,
    initialize: impl Future<Output = Result<Greeted, CallError>>,
) -> Result<Greeted, CallError> {
    tokio::pin!(discover, initialize);
    match tokio::time::timeout(PROBE_TIMEOUT, &mut discover).await {
        Ok(Ok(Some(greeted))) => return Ok(greeted),
        Ok(Ok(None)) => return initialize.await,
        Ok(Err(error)) => return Err(error),
        Err(_) => {}
    }
    tokio::select! {
        // Both answers may have come before this runs again: then the one that was asked for first decides.
        biased;
        found = &mut discover => match found? {
            Some(greeted) => Ok(greeted),
            None => initialize.await,
        },
        greeted = &mut initialize => match greeted {
            // It speaks only the new way, and is about to say so.
            Err(CallError::Rpc(error)) if is_modern_error(&error) => {
                discover.await?.ok_or(CallError::Rpc(error))
            }
            greeted => greeted,
        },
    }
}

/// What an answer to `server/discover` means: none for an old server.
fn discovered(answer: Result<Json, CallError>) -> Result<Option<Greeted>, CallError> {
    match answer {
        // Some old servers answer anything with an empty result.
        Ok(result) => {
            let is_modern = serde_json::from_str::<Discovered>(result.get()).is_ok();
            let greeting = Some(Greeting { method: "server/discover", result });
            Ok(is_modern.then_some(Greeted { era: Era::Modern, greeting }))
        }
        // `rmcp` knows what to do with these.
        Err(CallError::Rpc(error)) if is_modern_error(&error) => {
            Ok(Some(Greeted { era: Era::Modern, greeting: None }))
        }
        Err(CallError::Rpc(_) | CallError::Unreadable { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_modern_error(error: &RawValue) -> bool {
    code(error).is_some_and(|code| MODERN_ERRORS.contains(&code))
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

/// The parameters of `initialize`.
pub(crate) fn introduction(client: &ClientConfig, version: ProtocolVersion) -> Box<RawValue> {
    let client = client.clone().with_protocol_version(version);
    // Serializing plain data cannot fail; without it the server would refuse us, and say so.
    to_raw_value(&client).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
