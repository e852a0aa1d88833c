//! A connection to a remote server: its HTTP client, its wire, its handshake.

mod client;
mod error;
mod handshake;
mod headers;
mod network;
mod tls;
pub(crate) mod userinfo;

pub(crate) use error::key_is_kept_elsewhere;
pub use error::{RemoteError, Step};
pub use headers::headers;
pub use network::Network;

use std::collections::BTreeMap;
use std::time::Duration;

use openclaw_config::HttpServer;
use openclaw_secrets::SecretString;
use rmcp::model::{ClientConfig, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, RunningService, serve_client_with_lifecycle};
use rmcp::{ClientHandler, RoleClient};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};

use crate::connection::era::Era;
use crate::connection::local;
use crate::server::log::ServerLog;
use crate::wire::FastLane;
use crate::wire::http::HttpSlowLane;

/// What a connection is made from.
#[derive(Debug, Clone)]
pub struct RemotePlan {
    /// The server's name, for logs and messages.
    pub server: String,
    /// Where it is, and how to get there.
    pub config: HttpServer,
    /// Headers of every request, resolved (see [`headers`]).
    pub headers: BTreeMap<String, SecretString>,
    /// What the environment says about the network.
    pub network: Network,
    /// Who we are.
    pub client: ClientConfig,
    /// What was found out last time.
    pub known: Option<Known>,
    /// How long all of it may take.
    pub timeout: Duration,
    /// Whose secrets are kept from messages.
    pub log: ServerLog,
}

/// How a server wants to be spoken to: worth remembering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// With a handshake or without.
    pub era: Era,
    /// Over which transport.
    pub flavour: Flavour,
}

/// The HTTP transports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Flavour {
    /// Every answer comes with its POST.
    Streamable,
    /// All answers come on one stream (2024-11-05).
    Sse,
}

/// A connection. It ends with `rmcp`: close that, and wait for it.
#[derive(Debug)]
pub struct Opened<H: ClientHandler> {
    /// The lane for calls. It also knows the id of the session.
    pub lane: FastLane,
    /// Everything but calls.
    pub rmcp: RunningService<RoleClient, H>,
    /// The version of the protocol that was agreed upon.
    pub version: Option<String>,
    /// How the server wants to be spoken to.
    pub known: Known,
}

/// Finds out how a server wants to be spoken to, and shakes hands. If it fails, nothing is left.
///
/// # Errors
/// Which step failed, and why.
pub async fn open<H: ClientHandler>(
    plan: RemotePlan,
    handler: H,
) -> Result<Opened<H>, RemoteError> {
    let deadline = Instant::now() + plan.timeout;
    let (client, target) = Box::pin(client::make(&plan)).await?;
    let opening = HttpSlowLane::open(&plan.server, plan.log.redactor(), client, target);
    let mut step = Step::Discovering;
    let met = timeout_at(
        deadline,
        // Boxed: it is large, and done with soon.
        Box::pin(handshake::meet(&opening, &plan, &mut step)),
    )
    .await;
    let late = |step| RemoteError::TimedOut { step, after: plan.timeout };
    let met = match met {
        Ok(Ok(met)) => met,
        failed => {
            opening.wire().shut_down().await;
            return Err(failed.map_or_else(|_| late(step), |met| met.err().unwrap_or(late(step))));
        }
    };
    let lifecycle = match met.known.era {
        Era::Legacy => ClientLifecycleMode::Initialize,
        Era::Modern => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    };
    let (lane, wire) = (opening.fast_lane(), std::sync::Arc::clone(opening.wire()));
    let served =
        Box::pin(serve_client_with_lifecycle(handler, opening.greeted(met.greeting), lifecycle));
    let cause = match timeout_at(deadline, served).await {
        Ok(Ok(rmcp)) => {
            wire.until_listening().await;
            let version = rmcp.peer_info().map(|info| info.protocol_version.to_string());
            return Ok(Opened { lane, rmcp, version, known: met.known });
        }
        Ok(Err(error)) => RemoteError::Refused { step, cause: local::plain(&error, &plan.log) },
        Err(_) => late(step),
    };
    wire.shut_down().await;
    Err(cause)
}
