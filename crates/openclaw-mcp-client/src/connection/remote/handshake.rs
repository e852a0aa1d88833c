//! Detection of a remote server's era and transport, and the handshake (T1, T5).
//!
//! They can only be detected by requests. A modern server supports `server/discover`; otherwise
//! `initialize` is sent, with older versions if necessary; a server that accepts no POST may use
//! the transport of 2024-11-05.

use std::time::Duration;

use openclaw_config::HttpFlavour;
use openclaw_content::{Untrusted, clean_line};
use rmcp::model::ProtocolVersion;
use serde::Deserialize;
use tokio::time::timeout;

use super::{HttpTransport, NegotiatedProtocol, RemoteError, RemotePlan, RemoteStep};
use crate::connection::era::{self, Era};
use crate::wire::http::{RmcpHttp, agreed_version};
use crate::wire::{CallError, HandshakeResponse, ReachProblem, TimeLimits};

/// Timeout of `server/discover`, which the server may not know.
const PROBE: Duration = Duration::from_secs(2);

/// How long the cached protocol is tried before the others: the server may have changed since.
const REMEMBERED: Duration = Duration::from_secs(5);

/// The versions with a handshake, newest first.
const VERSIONS: [ProtocolVersion; 4] = [
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_03_26,
    ProtocolVersion::V_2024_11_05,
];

const METHOD_NOT_FOUND: i64 = -32601;

/// The result of [`meet`].
pub(super) struct Negotiated {
    pub(super) known: NegotiatedProtocol,
    /// The response to replay to `rmcp`; `None` if `rmcp` must send the request itself.
    pub(super) response: Option<HandshakeResponse>,
}

/// The protocols to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProtocolsToTry {
    Modern,
    Streamable,
    Sse,
}

impl ProtocolsToTry {
    /// Returns the protocols to try, in order. A cached one comes first and, if it times out then,
    /// again in its usual place. A modern server that is slow to respond to the first request, and
    /// rejects the others, is tried again at the end.
    fn all(plan: &RemotePlan) -> &'static [Self] {
        match (plan.config.flavour, plan.known) {
            (HttpFlavour::Sse, _) => &[Self::Sse],
            _ if plan.only_era() == Some(Era::Modern) => &[Self::Modern],
            (_, Some(NegotiatedProtocol { flavour: HttpTransport::Sse, .. }))
                if plan.only_era() == Some(Era::Legacy) =>
            {
                &[Self::Sse, Self::Streamable, Self::Sse]
            }
            _ if plan.only_era() == Some(Era::Legacy) => &[Self::Streamable, Self::Sse],
            (_, Some(NegotiatedProtocol { flavour: HttpTransport::Sse, .. })) => {
                &[Self::Sse, Self::Modern, Self::Streamable, Self::Sse]
            }
            (_, Some(NegotiatedProtocol { era: Era::Legacy, .. })) => {
                &[Self::Streamable, Self::Modern, Self::Streamable, Self::Sse]
            }
            (_, Some(NegotiatedProtocol { era: Era::Modern, .. }) | None) => {
                &[Self::Modern, Self::Streamable, Self::Sse, Self::Modern]
            }
        }
    }

    fn step(self) -> RemoteStep {
        match self {
            Self::Modern => RemoteStep::Discovering,
            Self::Streamable => RemoteStep::Initializing,
            Self::Sse => RemoteStep::OpeningStream,
        }
    }

    fn known(self) -> NegotiatedProtocol {
        match self {
            Self::Modern => {
                NegotiatedProtocol { era: Era::Modern, flavour: HttpTransport::Streamable }
            }
            Self::Streamable => {
                NegotiatedProtocol { era: Era::Legacy, flavour: HttpTransport::Streamable }
            }
            Self::Sse => NegotiatedProtocol { era: Era::Legacy, flavour: HttpTransport::Sse },
        }
    }
}

impl RemotePlan {
    fn only_era(&self) -> Option<Era> {
        self.only.as_ref().map(|only| only.era)
    }

    /// Returns the versions to offer in the handshake, in order.
    fn versions(&self) -> Vec<ProtocolVersion> {
        match self.only.as_ref().filter(|only| only.era == Era::Legacy) {
            Some(only) => vec![only.version.clone()],
            None => VERSIONS.to_vec(),
        }
    }
}

/// Tries the protocols one after the other. `step` is set to the current step.
pub(super) async fn meet(
    opening: &RmcpHttp,
    plan: &RemotePlan,
    step: &mut RemoteStep,
) -> Result<Negotiated, RemoteError> {
    let mut failed: Option<(ProtocolsToTry, CallError)> = None;
    let mut was_slow = false;
    let ways = ProtocolsToTry::all(plan);
    for (place, way) in ways.iter().enumerate() {
        if ways[..place].contains(way) && !was_slow {
            continue;
        }
        let comes_again = ways[place + 1..].contains(way);
        let patience = match plan.config.flavour {
            _ if comes_again => Some(REMEMBERED.min(plan.timeout / 2)),
            // No limit of its own: the caller enforces the timeout.
            HttpFlavour::Streamable => None,
            // Leaves time to detect another transport.
            HttpFlavour::Sse => Some(plan.timeout.saturating_sub(2 * PROBE).max(plan.timeout / 2)),
        };
        *step = way.step();
        let tried = match way {
            ProtocolsToTry::Modern => {
                let is_last = ways[..place].contains(way) || ways.len() == 1;
                // Of two equal timeouts either may fire first; it must be the caller's.
                let patience = if is_last { 2 * plan.timeout } else { PROBE };
                discover(opening, plan, patience).await
            }
            ProtocolsToTry::Streamable => within(patience, initialize(opening, plan)).await,
            ProtocolsToTry::Sse => over_sse(opening, plan, patience, step).await,
        };
        was_slow |= comes_again && matches!(tried, Err(CallError::TimedOut(_)));
        let error = match tried {
            Ok(response) => return checked(*way, response),
            Err(error) => error,
        };
        tracing::debug!(server = plan.server, %error, step = %way.step(), "attempt failed");
        if !may_be_otherwise(&error) {
            return Err(RemoteError::from_call(plan, way.step(), error));
        }
        // Of several failures, that of the usual protocol is the most specific, unless its URL is
        // unknown there and a stream was opened.
        let says_more = |(before, refusal): &(ProtocolsToTry, CallError)| {
            *before == ProtocolsToTry::Modern
                || (is_unknown_there(refusal) && has_opened(*way, &error))
        };
        if failed.as_ref().is_none_or(says_more) {
            failed = Some((*way, error));
        }
    }
    if plan.config.flavour == HttpFlavour::Sse && speaks_streamable(opening, plan).await {
        return Err(RemoteError::OtherTransport);
    }
    let (way, error) = failed.unwrap_or((ProtocolsToTry::Modern, CallError::Busy));
    Err(RemoteError::from_call(plan, way.step(), error))
}

/// Limits `trying` to `patience`, if set.
async fn within<T>(
    patience: Option<Duration>,
    trying: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    match patience {
        None => trying.await,
        Some(patience) => match timeout(patience, trying).await {
            Ok(tried) => tried,
            Err(_) => Err(CallError::TimedOut(patience)),
        },
    }
}

/// Returns whether a server that is configured for the transport of 2024-11-05 uses the newer one.
/// Only for the error message: the configuration is not overridden.
async fn speaks_streamable(opening: &RmcpHttp, plan: &RemotePlan) -> bool {
    if discover(opening, plan, PROBE).await.is_ok() {
        return true;
    }
    matches!(timeout(PROBE, initialize(opening, plan)).await, Ok(Ok(_)))
}

/// Returns whether another protocol may work after this failure.
fn may_be_otherwise(error: &CallError) -> bool {
    match error {
        CallError::Rpc(_)
        | CallError::Http { .. }
        | CallError::Unreadable { .. }
        | CallError::UnusableResponse(_)
        | CallError::Protocol(_)
        | CallError::TimedOut(_) => true,
        // Some servers close the connection on unknown requests.
        CallError::Unreachable(unreachable) => unreachable.problem == ReachProblem::Broken,
        _ => false,
    }
}

fn is_unknown_there(refusal: &CallError) -> bool {
    matches!(refusal, CallError::Http { status: 404 | 405, .. })
}

/// Returns whether a stream was opened, but its content was invalid.
fn has_opened(way: ProtocolsToTry, error: &CallError) -> bool {
    way == ProtocolsToTry::Sse && matches!(error, CallError::Protocol(_))
}

/// Rejects an unknown version, which could be misinterpreted.
fn checked(
    way: ProtocolsToTry,
    response: Option<HandshakeResponse>,
) -> Result<Negotiated, RemoteError> {
    if way != ProtocolsToTry::Modern {
        let result = response.as_ref().map(|response| &response.result);
        match result.and_then(agreed_version) {
            Some(version) if VERSIONS.iter().any(|known| known.as_str() == version) => {}
            Some(version) => {
                let version = clean_line(Untrusted::new(&version), 40);
                return Err(RemoteError::UnknownVersion { version });
            }
            None => {
                let cause = "the response to `initialize` has no protocol version".to_owned();
                return Err(RemoteError::NotMcp { cause });
            }
        }
    }
    Ok(Negotiated { known: way.known(), response })
}

#[derive(Deserialize)]
struct Unsupported {
    data: Supported,
}

#[derive(Deserialize)]
struct Supported {
    supported: Vec<String>,
}

/// Sends `server/discover` (2026-07-28).
async fn discover(
    opening: &RmcpHttp,
    plan: &RemotePlan,
    patience: Duration,
) -> Result<Option<HandshakeResponse>, CallError> {
    opening.wire().speak_modern();
    let is_modern = |versions: &[String]| {
        versions.iter().any(|version| version == ProtocolVersion::V_2026_07_28.as_str())
    };
    let probe = TimeLimits { timeout: patience, cap: patience };
    let asked = opening.fast_lane();
    match asked.request("server/discover", &era::question(&plan.client), probe).await {
        Ok(result) => match serde_json::from_str::<era::Discovered>(result.get()) {
            Ok(found) if is_modern(&found.versions) => {
                Ok(Some(HandshakeResponse { method: "server/discover", result }))
            }
            _ => {
                let words = match plan.only {
                    Some(_) => "the server does not support the configured `protocolVersion`",
                    None => "the server supports none of the known protocol versions",
                };
                Err(CallError::Protocol(words.to_owned()))
            }
        },
        Err(CallError::Rpc(error)) => {
            let code = era::code(&error).unwrap_or_default();
            let others = serde_json::from_str::<Unsupported>(error.get());
            let only_others = others.is_ok_and(|others| !is_modern(&others.data.supported));
            if era::MODERN_ERRORS.contains(&code) && !only_others {
                // `rmcp` handles these errors.
                return Ok(None);
            }
            Err(CallError::Rpc(error))
        }
        Err(error) => Err(error),
    }
}

/// Performs the handshake over Streamable HTTP.
async fn initialize(
    opening: &RmcpHttp,
    plan: &RemotePlan,
) -> Result<Option<HandshakeResponse>, CallError> {
    opening.wire().speak_legacy();
    let mut first = None;
    for version in plan.versions() {
        match opening.wire().shake_hands(&era::introduction(&plan.client, version)).await {
            Ok(result) => return Ok(Some(HandshakeResponse { method: "initialize", result })),
            Err(error) if may_like_an_older_version(&error) => first = first.or(Some(error)),
            Err(error) => return Err(first.unwrap_or(error)),
        }
    }
    Err(first.unwrap_or(CallError::Busy))
}

/// Performs the handshake over the transport of 2024-11-05.
async fn over_sse(
    opening: &RmcpHttp,
    plan: &RemotePlan,
    patience: Option<Duration>,
    step: &mut RemoteStep,
) -> Result<Option<HandshakeResponse>, CallError> {
    // Only this is limited: once the stream is open, the connection depends on it.
    within(patience, opening.wire().open_sse()).await?;
    *step = RemoteStep::Initializing;
    let lane = opening.fast_lane();
    // The caller enforces the timeout; of two equal timeouts either could fire first.
    let limits = TimeLimits { timeout: 2 * plan.timeout, cap: 2 * plan.timeout };
    let mut first = None;
    for version in plan.versions() {
        match lane.request("initialize", &era::introduction(&plan.client, version), limits).await {
            Ok(result) => {
                opening.wire().agreed(&agreed_version(&result).unwrap_or_default());
                return Ok(Some(HandshakeResponse { method: "initialize", result }));
            }
            Err(error) if may_like_an_older_version(&error) => first = first.or(Some(error)),
            Err(error) => return Err(first.unwrap_or(error)),
        }
    }
    Err(first.unwrap_or(CallError::Busy))
}

/// Returns whether an older version may be accepted. Servers reject a version in many ways; some
/// crash on it.
fn may_like_an_older_version(error: &CallError) -> bool {
    match error {
        CallError::Rpc(error) => era::code(error) != Some(METHOD_NOT_FOUND),
        CallError::Http { status, .. } => *status >= 500,
        CallError::Unreachable(unreachable) => unreachable.problem == ReachProblem::Broken,
        _ => false,
    }
}
