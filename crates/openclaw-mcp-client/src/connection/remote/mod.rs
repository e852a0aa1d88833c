//! Connecting to a remote server: HTTP client, wire and handshake.

mod auth;
mod connector;
mod error;
mod handshake;
mod headers;
mod network;
mod tls;
pub mod userinfo;

pub use auth::{AuthContext, AuthorizerError, authorizer, uses_tokens};
pub use error::{RemoteError, RemoteStep, key_is_kept_elsewhere};
pub use headers::headers;
pub use network::Network;

use std::collections::BTreeMap;
use std::time::Duration;

use openclaw_config::HttpServer;
use openclaw_oauth::authorizer::Authorizer;
use openclaw_secrets::SecretString;
use rmcp::model::ClientConfig;
use rmcp::service::RunningService;
use rmcp::{ClientHandler, RoleClient};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};

use crate::connection::era::{Era, PinnedVersion};
use crate::connection::service::{self, RmcpTransport};
use crate::connection::{Connection, OpenedConnection, RemoteEnd, local, tasks};
use crate::host::ClientSide;
use crate::log::ServerLog;
use crate::wire::http::RmcpHttp;
use crate::wire::{FastLane, Traffic};

/// Options for [`open`].
#[derive(Debug, Clone)]
pub struct RemotePlan {
    /// The server's name, for logs and messages.
    pub server: String,
    /// The configured URL, proxy and TLS settings.
    pub config: HttpServer,
    /// Obtains tokens; `None` for a server with its own key.
    pub auth: Option<Authorizer>,
    /// Headers of every request, with resolved secrets (see [`headers`]).
    pub headers: BTreeMap<String, SecretString>,
    /// Network settings from the environment.
    pub network: Network,
    /// The client configuration that is sent to the server.
    pub client: ClientConfig,
    /// The protocol that was negotiated last time.
    pub known: Option<NegotiatedProtocol>,
    /// The only protocol version to use, if one is configured.
    pub only: Option<PinnedVersion>,
    /// Timeout for connecting and the handshake together.
    pub timeout: Duration,
    /// The server's log, which redacts secrets from messages.
    pub log: ServerLog,
    /// Counts the bytes of messages.
    pub traffic: Traffic,
}

/// The protocol of a server; worth caching.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NegotiatedProtocol {
    /// The protocol era.
    pub era: Era,
    /// The transport.
    pub flavour: HttpTransport,
}

/// The HTTP transports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HttpTransport {
    /// Each response belongs to its POST.
    Streamable,
    /// All responses arrive on one stream (2024-11-05).
    Sse,
}

/// An open connection. It ends with `rmcp`: close that and wait for it.
#[derive(Debug)]
pub struct RemoteConnection<H: ClientHandler> {
    /// The lane for calls. It also has the session id.
    pub lane: FastLane,
    /// The `rmcp` service, for everything but calls.
    pub rmcp: RunningService<RoleClient, H>,
    /// The negotiated protocol version.
    pub version: Option<String>,
    /// The protocol of the server.
    pub known: NegotiatedProtocol,
    /// Whether the server declares tool calls as tasks, up to 2025-11-25.
    pub tasks: bool,
}

/// Connects to a server as this client: like [`open`], for everything that a connection can do. The
/// configuration of the client is that of the plan.
///
/// # Errors
/// Like those of [`open`].
pub async fn connect(plan: RemotePlan, client: ClientSide) -> Result<Connection, RemoteError> {
    let url = plan.config.url.expose();
    let address = url.host_str().map(str::to_owned).zip(url.port_or_known_default());
    let RemoteConnection { lane, rmcp, known, tasks, .. } = open(plan, client.clone()).await?;
    let far_end = RemoteEnd::Remote { flavour: known.flavour, address };
    let opened = OpenedConnection { lane, rmcp, era: known.era, tasks };
    Ok(Connection::new(opened, client, far_end))
}

/// Detects the protocol of a server and performs the handshake. If that fails, nothing is left
/// running.
///
/// # Errors
/// If a setting is invalid, the server is unreachable, the handshake fails, or the timeout elapses.
pub async fn open<H: ClientHandler>(
    plan: RemotePlan,
    handler: H,
) -> Result<RemoteConnection<H>, RemoteError> {
    let deadline = Instant::now() + plan.timeout;
    let (client, target) = Box::pin(connector::client_and_target(&plan)).await?;
    let opening =
        RmcpHttp::open(&plan.server, plan.log.redactor(), client, target, plan.auth.clone());
    let mut step = RemoteStep::Discovering;
    let met = timeout_at(
        deadline,
        // Boxed: the future is large and short-lived.
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
    let tasks = met.response.as_ref().is_some_and(|it| tasks::are_declared(&it.result));
    let lane = opening.fast_lane();
    let wire = std::sync::Arc::clone(opening.wire());
    let transport = RmcpTransport::Remote(opening.with_handshake(met.response));
    let served = service::serve(handler, transport, met.known.era);
    let cause = match timeout_at(deadline, served).await {
        Ok(Ok(rmcp)) => {
            wire.until_listening().await;
            let version = rmcp.peer_info().map(|info| info.protocol_version.to_string());
            return Ok(RemoteConnection { lane, rmcp, version, known: met.known, tasks });
        }
        Ok(Err(error)) => RemoteError::Refused { step, cause: local::plain(&error, &plan.log) },
        Err(_) => late(step),
    };
    wire.shut_down().await;
    Err(cause)
}
