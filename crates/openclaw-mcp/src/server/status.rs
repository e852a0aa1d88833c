//! What is to be known about a server, for people and programs (L9).

use serde::{Deserialize, Serialize};

use crate::server::supervisor::Trouble;

/// What is to be known about a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerStatus {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: ServerState,
    /// How it is reached.
    pub transport: TransportKind,
    /// The command or the address, as it may be shown.
    pub target: String,
    /// How we log in.
    pub auth: AuthKind,
    /// Whether it is started when first used.
    pub lazy: bool,
    /// Whether the program must not start without it.
    pub required: bool,
    /// The id of its process.
    pub pid: Option<u32>,
    /// The id of the session.
    pub session_id: Option<String>,
    /// The version of the protocol that was agreed upon.
    pub protocol_version: Option<String>,
    /// The program's name and version, as it says itself.
    pub program: Option<String>,
    /// For how long it has been connected.
    pub uptime_ms: Option<u64>,
    /// How long ago it last said anything.
    pub last_answer_age_ms: Option<u64>,
    /// How often it was restarted in a row.
    pub restarts: u32,
    /// How many tools it has.
    pub tools: usize,
    /// How many resources and families of them.
    pub resources: usize,
    /// How many prompts.
    pub prompts: usize,
    /// How many calls it got.
    pub calls: u64,
    /// How many of them failed.
    pub errors: u64,
    /// Half of the calls took no longer.
    pub p50_ms: Option<f64>,
    /// Nineteen of twenty calls took no longer.
    pub p95_ms: Option<f64>,
    /// What went wrong last.
    pub last_error: Option<Trouble>,
}

impl ServerStatus {
    /// A server of which nothing else is known.
    pub(crate) fn new(
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
    /// Switched off in the configuration.
    Disabled,
    /// Lazy, and not used yet.
    Idle,
    /// On its way.
    Connecting,
    /// Its tools can be called.
    Ready,
    /// Somebody must log in.
    NeedsAuth,
    /// It was lost or could not be reached, and is tried again soon.
    Restarting,
    /// It was tried often enough, or cannot be tried.
    Failed,
    /// It was ended.
    Closed,
}

impl ServerState {
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

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransportKind {
    /// A process.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP with server-sent events, as in 2024-11-05.
    Sse,
}

/// How we log in to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuthKind {
    /// Not at all.
    None,
    /// With a fixed key.
    ApiKey,
    /// With a header.
    Header,
}
