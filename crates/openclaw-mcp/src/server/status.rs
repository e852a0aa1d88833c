//! The status of a server, for users and programs (L9).

use serde::{Deserialize, Serialize};

use crate::server::supervisor::ServerError;

/// The status of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerStatus {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: ServerState,
    /// Its transport.
    pub transport: TransportKind,
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
    /// The last error.
    pub last_error: Option<ServerError>,
}

impl ServerStatus {
    /// A status without any statistics.
    #[must_use]
    pub fn new(
        name: String,
        state: ServerState,
        transport: TransportKind,
        target: String,
        auth: AuthKind,
    ) -> Self {
        Self {
            name,
            state,
            transport,
            target,
            auth,
            token_expires_at_ms: None,
            lazy: false,
            required: false,
            pid: None,
            session_id: None,
            protocol_version: None,
            program: None,
            uptime_ms: None,
            last_answer_age_ms: None,
            restarts: 0,
            tools: 0,
            resources: 0,
            prompts: 0,
            calls: 0,
            errors: 0,
            p50_ms: None,
            p95_ms: None,
            last_error: None,
        }
    }
}

/// The state of a server (L6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerState {
    /// Disabled in the configuration.
    Disabled,
    /// Lazy and not used yet.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransportKind {
    /// A process, over its standard input and output.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE of 2024-11-05.
    Sse,
}

/// How the program authenticates to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuthKind {
    /// No authentication.
    None,
    /// With an API key.
    ApiKey,
    /// With an `Authorization` header.
    Header,
    /// With the token of a login.
    #[serde(rename = "oauth")]
    OAuth,
}
