//! Which era and which transport a server speaks, and the handshake over it (T1, T5).
//!
//! Nothing but asking tells. A modern server answers `server/discover`; one that does not is asked to
//! `initialize`, with older and older versions if it must be; one that takes no POST at all may speak the
//! transport of 2024-11-05.

use std::time::Duration;

use openclaw_config::HttpFlavour;
use openclaw_content::{Untrusted, clean_line};
use rmcp::model::ProtocolVersion;
use serde::Deserialize;
use tokio::time::timeout;

use super::{Flavour, Known, RemoteError, RemotePlan, Step};
use crate::connection::era::{self, Era};
use crate::wire::http::{HttpSlowLane, agreed_version};
use crate::wire::{CallError, Greeting, Limits, ReachProblem};

/// How long a server may think about a question that it may never have heard.
const PROBE: Duration = Duration::from_secs(2);

/// How long the way that is remembered may take before the others are tried: the server may have
/// changed since.
const REMEMBERED: Duration = Duration::from_secs(5);

/// The versions with a handshake, newest first.
const VERSIONS: [ProtocolVersion; 4] = [
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_03_26,
    ProtocolVersion::V_2024_11_05,
];

const METHOD_NOT_FOUND: i64 = -32601;

/// A server that was met.
pub(super) struct Met {
    pub(super) known: Known,
    /// What it said, for `rmcp`; none if `rmcp` is to ask by itself.
    pub(super) greeting: Option<Greeting>,
}

/// Ways to speak to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Modern,
    Streamable,
    Sse,
}

impl Way {
    /// The ways to be tried, in this order. One that is remembered comes first and, should it take too
    /// long then, a second time in its usual place. A modern server that is slow to answer its first
    /// question, and can do nothing with the others, is asked again at last.
    fn all(plan: &RemotePlan) -> &'static [Self] {
        match (plan.config.flavour, plan.known) {
            (HttpFlavour::Sse, _) => &[Self::Sse],
            (_, Some(Known { flavour: Flavour::Sse, .. })) => {
                &[Self::Sse, Self::Modern, Self::Streamable, Self::Sse]
            }
            (_, Some(Known { era: Era::Legacy, .. })) => {
                &[Self::Streamable, Self::Modern, Self::Streamable, Self::Sse]
            }
            (_, Some(Known { era: Era::Modern, .. }) | None) => {
                &[Self::Modern, Self::Streamable, Self::Sse, Self::Modern]
            }
        }
    }

    fn step(self) -> Step {
        match self {
            Self::Modern => Step::Discovering,
            Self::Streamable => Step::Initializing,
            Self::Sse => Step::OpeningStream,
        }
    }

    fn known(self) -> Known {
        match self {
            Self::Modern => Known { era: Era::Modern, flavour: Flavour::Streamable },
            Self::Streamable => Known { era: Era::Legacy, flavour: Flavour::Streamable },
            Self::Sse => Known { era: Era::Legacy, flavour: Flavour::Sse },
        }
    }
}

/// Tries the ways, one after the other. `step` is what is being done.
pub(super) async fn meet(
    opening: &HttpSlowLane,
    plan: &RemotePlan,
    step: &mut Step,
) -> Result<Met, RemoteError> {
    let mut failed: Option<(Way, CallError)> = None;
    let mut was_slow = false;
    let ways = Way::all(plan);
    for (place, way) in ways.iter().enumerate() {
        if ways[..place].contains(way) && !was_slow {
            continue;
        }
        let comes_again = ways[place + 1..].contains(way);
        let patience = match plan.config.flavour {
            _ if comes_again => Some(REMEMBERED.min(plan.timeout / 2)),
            // It may take all the time that there is; whoever waits for the whole ends it.
            HttpFlavour::Streamable => None,
            // Time is left to find out what else it may speak.
            HttpFlavour::Sse => Some(plan.timeout.saturating_sub(2 * PROBE).max(plan.timeout / 2)),
        };
        *step = way.step();
        let tried = match way {
            Way::Modern => {
                let is_last = ways[..place].contains(way);
                // Of two clocks that stand alike, either may be first: the caller's is to be.
                let patience = if is_last { 2 * plan.timeout } else { PROBE };
                discover(opening, plan, patience).await
            }
            Way::Streamable => within(patience, initialize(opening, plan)).await,
            Way::Sse => over_sse(opening, plan, patience, step).await,
        };
        was_slow |= comes_again && matches!(tried, Err(CallError::TimedOut(_)));
        let error = match tried {
            Ok(greeting) => return checked(*way, greeting),
            Err(error) => error,
        };
        tracing::debug!(server = plan.server, %error, step = %way.step(), "did not work");
        if !may_be_otherwise(&error) {
            return Err(RemoteError::of(plan, way.step(), error));
        }
        // Of several failures, that of the usual way says most; unless it is not known there at all, and a
        // stream was opened.
        let says_more = |(before, refusal): &(Way, CallError)| {
            *before == Way::Modern || (is_unknown_there(refusal) && has_opened(*way, &error))
        };
        if failed.as_ref().is_none_or(says_more) {
            failed = Some((*way, error));
        }
    }
    if plan.config.flavour == HttpFlavour::Sse && speaks_streamable(opening, plan).await {
        return Err(RemoteError::OtherTransport);
    }
    let (way, error) = failed.unwrap_or((Way::Modern, CallError::Busy));
    Err(RemoteError::of(plan, way.step(), error))
}

/// Ends what takes longer than `patience`, if it has a bound of its own.
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

/// Whether a server that should speak the transport of 2024-11-05, and does not, speaks the newer one:
/// for a good message only. Its entry is in force as it stands.
async fn speaks_streamable(opening: &HttpSlowLane, plan: &RemotePlan) -> bool {
    if discover(opening, plan, PROBE).await.is_ok() {
        return true;
    }
    matches!(timeout(PROBE, initialize(opening, plan)).await, Ok(Ok(_)))
}

/// Whether another way may work where this one did not.
fn may_be_otherwise(error: &CallError) -> bool {
    match error {
        CallError::Rpc(_)
        | CallError::Http { .. }
        | CallError::Unreadable { .. }
        | CallError::Unfit(_)
        | CallError::Protocol(_)
        | CallError::TimedOut(_) => true,
        // Some hang up on what they do not understand.
        CallError::Unreachable(unreachable) => unreachable.problem == ReachProblem::Broken,
        _ => false,
    }
}

fn is_unknown_there(refusal: &CallError) -> bool {
    matches!(refusal, CallError::Http { status: 404 | 405, .. })
}

/// Whether it is what came over a stream that was wrong.
fn has_opened(way: Way, error: &CallError) -> bool {
    way == Way::Sse && matches!(error, CallError::Protocol(_))
}

/// A version that nobody knows would be misunderstood.
fn checked(way: Way, greeting: Option<Greeting>) -> Result<Met, RemoteError> {
    if way != Way::Modern {
        let result = greeting.as_ref().map(|greeting| &greeting.result);
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
    Ok(Met { known: way.known(), greeting })
}

#[derive(Deserialize)]
struct Unsupported {
    data: Supported,
}

#[derive(Deserialize)]
struct Supported {
    supported: Vec<String>,
}

/// Asks as since 2026-07-28.
async fn discover(
    opening: &HttpSlowLane,
    plan: &RemotePlan,
    patience: Duration,
) -> Result<Option<Greeting>, CallError> {
    opening.wire().speak_modern();
    let is_modern = |versions: &[String]| {
        versions.iter().any(|version| version == ProtocolVersion::V_2026_07_28.as_str())
    };
    let probe = Limits { timeout: patience, cap: patience };
    let asked = opening.fast_lane();
    match asked.request("server/discover", &era::question(&plan.client), probe).await {
        Ok(result) => match serde_json::from_str::<era::Discovered>(result.get()) {
            Ok(found) if is_modern(&found.versions) => {
                Ok(Some(Greeting { method: "server/discover", result }))
            }
            _ => Err(CallError::Protocol(
                "the server supports none of the known protocol versions".into(),
            )),
        },
        Err(CallError::Rpc(error)) => {
            let code = era::code(&error).unwrap_or_default();
            let others = serde_json::from_str::<Unsupported>(error.get());
            let only_others = others.is_ok_and(|others| !is_modern(&others.data.supported));
            if era::MODERN_ERRORS.contains(&code) && !only_others {
                // `rmcp` knows what to do with these.
                return Ok(None);
            }
            Err(CallError::Rpc(error))
        }
        Err(error) => Err(error),
    }
}

/// Shakes hands over Streamable HTTP.
async fn initialize(
    opening: &HttpSlowLane,
    plan: &RemotePlan,
) -> Result<Option<Greeting>, CallError> {
    opening.wire().speak_legacy();
    let mut first = None;
    for version in VERSIONS {
        match opening.wire().shake_hands(&era::introduction(&plan.client, version)).await {
            Ok(result) => return Ok(Some(Greeting { method: "initialize", result })),
            Err(error) if may_like_an_older_version(&error) => first = first.or(Some(error)),
            Err(error) => return Err(first.unwrap_or(error)),
        }
    }
    Err(first.unwrap_or(CallError::Busy))
}

/// Shakes hands over the transport of 2024-11-05.
async fn over_sse(
    opening: &HttpSlowLane,
    plan: &RemotePlan,
    patience: Option<Duration>,
    step: &mut Step,
) -> Result<Option<Greeting>, CallError> {
    // Only this is cut short: once the stream is there, the connection lives and dies with it.
    within(patience, opening.wire().open_sse()).await?;
    *step = Step::Initializing;
    let lane = opening.fast_lane();
    // Whoever waits for the whole ends this: of two clocks that stand alike, either may be first.
    let limits = Limits { timeout: 2 * plan.timeout, cap: 2 * plan.timeout };
    let mut first = None;
    for version in VERSIONS {
        match lane.request("initialize", &era::introduction(&plan.client, version), limits).await {
            Ok(result) => {
                opening.wire().agreed(&agreed_version(&result).unwrap_or_default());
                return Ok(Some(Greeting { method: "initialize", result }));
            }
            Err(error) if may_like_an_older_version(&error) => first = first.or(Some(error)),
            Err(error) => return Err(first.unwrap_or(error)),
        }
    }
    Err(first.unwrap_or(CallError::Busy))
}

/// Servers say in many ways that they do not like a version; some break on it.
fn may_like_an_older_version(error: &CallError) -> bool {
    match error {
        CallError::Rpc(error) => era::code(error) != Some(METHOD_NOT_FOUND),
        CallError::Http { status, .. } => *status >= 500,
        CallError::Unreachable(unreachable) => unreachable.problem == ReachProblem::Broken,
        _ => false,
    }
}
