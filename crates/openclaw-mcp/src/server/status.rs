//! The status of a server, for users and programs (L9).

use std::time::Duration;

use openclaw_config::{HttpFlavour, ServerConnection, Transport};
use serde::{Deserialize, Serialize};

use super::Server;
use crate::server::live::LiveConnection;
use crate::server::supervisor::ServerError;
use openclaw_mcp_client::connection::remote::{self, HttpTransport};

/// The status of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerStatus {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: ServerState,
    /// Its transport.
    pub transport: ActiveTransport,
    /// The command or the URL, safe to display.
    pub target: String,
    /// How the program authenticates.
    pub auth: AuthKind,
    /// When the token of a login expires, in Unix milliseconds.
    pub token_expires_at_ms: Option<i64>,
    /// Whether it is started on first use.
    pub lazy: bool,
    /// Whether the program refuses to start without it.
    pub required: bool,
    /// The process id.
    pub pid: Option<u32>,
    /// The session id.
    pub session_id: Option<String>,
    /// The negotiated protocol version.
    pub protocol_version: Option<String>,
    /// The name and version that the server reports.
    pub program: Option<String>,
    /// Milliseconds since it was connected.
    pub uptime_ms: Option<u64>,
    /// Milliseconds since it last sent anything.
    pub last_answer_age_ms: Option<u64>,
    /// The number of restarts in a row.
    pub restarts: u32,
    /// The number of tools.
    pub tools: usize,
    /// The number of resources and resource templates.
    pub resources: usize,
    /// The number of prompts.
    pub prompts: usize,
    /// The number of calls.
    pub calls: u64,
    /// The number of calls that failed.
    pub errors: u64,
    /// The median duration of a call, in milliseconds.
    pub p50_ms: Option<f64>,
    /// The 95th percentile of the duration of a call, in milliseconds.
    pub p95_ms: Option<f64>,
    /// The number of connections that clients of the hub have of their own; `None` if they use this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_connections: Option<usize>,
    /// The last error.
    pub last_error: Option<ServerError>,
}

impl Server {
    /// Returns its full status (L9).
    pub fn status(&self) -> ServerStatus {
        let snapshot = self.snapshots.borrow().clone();
        let live = snapshot.connection.as_deref();
        let connection = live.map(LiveConnection::connection);
        let inventory = self.cache.inventory();
        let (configured, target) = reached_by(&self.connection);
        let transport = match connection.and_then(|connection| connection.flavour()) {
            Some(HttpTransport::Streamable) => ActiveTransport::Http,
            Some(HttpTransport::Sse) => ActiveTransport::Sse,
            None => configured,
        };
        let grant = connection.and_then(|connection| connection.grant());
        let auth = if grant.is_some() { AuthKind::OAuth } else { auth(&self.connection) };
        let expires_at = grant.and_then(|grant| grant.expires_at);
        ServerStatus {
            name: self.name.to_string(),
            state: snapshot.state,
            transport,
            target,
            auth,
            lazy: self.is_lazy(),
            required: self.is_required(),
            pid: connection.and_then(|connection| connection.pid()),
            session_id: connection.and_then(|connection| connection.session_id()),
            protocol_version: connection.and_then(|connection| connection.about().version.clone()),
            program: connection.and_then(|connection| connection.about().program.clone()),
            uptime_ms: live.map(|live| milliseconds(live.uptime())),
            last_answer_age_ms: connection
                .map(|connection| milliseconds(connection.last_activity())),
            restarts: snapshot.restarts,
            tools: inventory.tools.len(),
            resources: inventory.resources.len() + inventory.templates.len(),
            prompts: inventory.prompts.len(),
            calls: self.stats.calls(),
            errors: self.stats.errors(),
            p50_ms: self.stats.latency().p50().map(in_milliseconds),
            p95_ms: self.stats.latency().p95().map(in_milliseconds),
            client_connections: self.is_per_client().then(|| self.client_connections()),
            last_error: snapshot.last_error,
            token_expires_at_ms: expires_at.map(|seconds| seconds.saturating_mul(1000)),
        }
    }
}

/// Returns the transport and the target of a server, safe to display.
pub(crate) fn reached_by(connection: &ServerConnection) -> (ActiveTransport, String) {
    let kind = match &connection.transport {
        Transport::Stdio(_) => ActiveTransport::Stdio,
        Transport::Http(http) => match http.flavour {
            HttpFlavour::Streamable => ActiveTransport::Http,
            HttpFlavour::Sse => ActiveTransport::Sse,
        },
    };
    (kind, connection.gist())
}

pub(crate) fn auth(connection: &ServerConnection) -> AuthKind {
    match &connection.transport {
        Transport::Stdio(_) => AuthKind::None,
        Transport::Http(http) if http.api_key.is_some() => AuthKind::ApiKey,
        Transport::Http(http) => {
            let is_login = |name: &String| name.eq_ignore_ascii_case("authorization");
            let has_header = http.headers.keys().any(is_login) || remote::userinfo::counts(http);
            if has_header { AuthKind::Header } else { AuthKind::None }
        }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Rounds to 0.01 ms.
fn in_milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 100_000.0).round() / 100.0
}

/// The state of a server (L6).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerState {
    /// Disabled in the configuration.
    Disabled,
    /// Lazy and not used yet.
    #[default]
    Idle,
    /// Connecting.
    Connecting,
    /// Connected; its tools can be called.
    Ready,
    /// A login is required.
    NeedsAuth,
    /// Lost or unreachable; will be retried.
    Restarting,
    /// Given up after too many attempts, or cannot be started.
    Failed,
    /// Stopped.
    Closed,
}

impl From<ServerState> for openclaw_metrics::labels::ServerState {
    fn from(state: ServerState) -> Self {
        match state {
            ServerState::Disabled => Self::Disabled,
            ServerState::Idle => Self::Idle,
            ServerState::Connecting => Self::Connecting,
            ServerState::Ready => Self::Ready,
            ServerState::NeedsAuth => Self::NeedsAuth,
            ServerState::Restarting => Self::Restarting,
            ServerState::Failed => Self::Failed,
            ServerState::Closed => Self::Closed,
        }
    }
}

impl ServerState {
    /// Whether the server is not running, and need not be.
    #[must_use]
    pub const fn is_at_rest(self) -> bool {
        matches!(self, Self::Disabled | Self::Idle | Self::Closed)
    }

    /// The stable name, as in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Idle => "idle",
            Self::Connecting => "connecting",
            Self::Ready => "ready",
            Self::NeedsAuth => "needs-auth",
            Self::Restarting => "restarting",
            Self::Failed => "failed",
            Self::Closed => "closed",
        }
    }
}

/// The transport of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ActiveTransport {
    /// A process, over its standard input and output.
    #[default]
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE of 2024-11-05.
    Sse,
}

/// How the program authenticates to a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuthKind {
    /// No authentication.
    #[default]
    None,
    /// With an API key.
    ApiKey,
    /// With an `Authorization` header.
    Header,
    /// With the token of a login.
    #[serde(rename = "oauth")]
    OAuth,
}
