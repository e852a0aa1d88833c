//! Connecting to a local server: process, wire and handshake.

use std::time::Duration;

use openclaw_process::{Guard, exit_words};
use rmcp::model::{ErrorData, ProtocolVersion};
use rmcp::service::ClientInitializeError;
use serde_json::value::RawValue;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout, timeout_at};

use crate::connection::era::{self, DetectedEra, Era};
use crate::connection::service::{self, RmcpTransport};
use crate::connection::{Connection, OpenedConnection, ProcessWatcher, RemoteEnd, tasks};
use crate::host::ClientSide;
use crate::log::ServerLog;
use crate::process::stderr::Stderr;
use crate::process::{Launch, ServerProcess, SpawnError};
use crate::wire::http::agreed_version;
use crate::wire::{self, CallError, Closed, HandshakeResponse, Traffic};

/// How long to wait for a server to exit after it closed its output: on a busy machine the exit is
/// seen long after.
const ENDING: Duration = Duration::from_secs(5);
/// How long to wait for a server to exit after it rejected the handshake.
const MAY_END: Duration = Duration::from_millis(500);

/// Options for [`open`].
#[derive(Debug, Clone)]
pub struct LocalOptions {
    /// The server's name, for logs.
    pub server: String,
    /// How to start the server.
    pub launch: Launch,
    /// Our side of the protocol.
    pub client: ClientSide,
    /// The protocol era of the server, if known.
    pub known_era: Option<Era>,
    /// The protocol version to offer in the handshake.
    pub offer: ProtocolVersion,
    /// The only era to use, if one is configured.
    pub only_era: Option<Era>,
    /// The log of the server's standard error.
    pub log: ServerLog,
    /// Timeout for spawning and the handshake together.
    pub timeout: Duration,
    /// Counts the bytes of messages.
    pub traffic: Traffic,
}

/// Why connecting failed.
#[derive(Debug, thiserror::Error)]
pub enum LocalConnectError {
    /// The process could not be spawned.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The process exited.
    #[error("{status} during {step}{words}")]
    Ended {
        /// How it exited: "exited with status 1".
        status: String,
        /// The step that failed.
        step: LocalStep,
        /// Other output of the server.
        words: ServerOutput,
    },
    /// The server did not respond in time.
    #[error("timed out after {} ms during {step}{words}", .after.as_millis())]
    TimedOut {
        /// The step that failed.
        step: LocalStep,
        /// The timeout.
        after: Duration,
        /// Other output of the server.
        words: ServerOutput,
    },
    /// The server rejected the handshake, or responded with something invalid.
    #[error("{step} failed: {cause}{words}")]
    Refused {
        /// The step that failed.
        step: LocalStep,
        /// The cause.
        cause: String,
        /// Other output of the server.
        words: ServerOutput,
    },
}

impl LocalConnectError {
    /// Whether every attempt fails until the user repairs something.
    pub fn is_lasting(&self) -> bool {
        matches!(self, Self::Spawn(error) if !matches!(error, SpawnError::Other { .. }))
    }

    /// Returns the other output of the server; `None` if it never ran.
    pub fn output(&self) -> Option<&ServerOutput> {
        match self {
            Self::Spawn(_) => None,
            Self::Ended { words, .. }
            | Self::TimedOut { words, .. }
            | Self::Refused { words, .. } => Some(words),
        }
    }
}

/// Output of a server besides its responses, which usually explains a failed connection. Untrusted:
/// not for a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerOutput {
    /// The last lines of stderr.
    pub last_lines: Vec<String>,
    /// The first line of stdout that is not a message, sanitized.
    pub printed: Option<String>,
}

impl std::fmt::Display for ServerOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.printed {
            Some(line) => {
                write!(f, "; it printed a line on stdout that is not an MCP message: “{line}”")
            }
            None => Ok(()),
        }
    }
}

/// The steps of connecting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalStep {
    /// Detecting the protocol era and sending the first request.
    Detecting,
    /// The handshake.
    Initializing,
}

impl std::fmt::Display for LocalStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Detecting => "startup",
            Self::Initializing => "initialization",
        })
    }
}

/// Spawns the server and performs the handshake. If that fails, nothing is left running.
///
/// # Errors
/// If spawning or the handshake fails, or the timeout elapses.
pub async fn open(plan: LocalOptions, guard: &Guard) -> Result<Connection, LocalConnectError> {
    let deadline = Instant::now() + plan.timeout;
    let (mut process, pipes) = ServerProcess::spawn(&plan.launch, guard)?;
    let stderr = Stderr::read(plan.server.clone(), pipes.stderr, plan.log.clone());
    let redactor = plan.log.redactor();
    let traffic = plan.traffic.clone();
    let opened = wire::open(&plan.server, redactor, pipes.stdin, pipes.stdout, traffic);
    let (lane, slow) = opened
        .map_err(|cause| SpawnError::Other { program: plan.launch.program.clone(), cause })?;

    let mut step = LocalStep::Detecting;
    // Boxed: the future is large and short-lived.
    let mut shaken = Box::pin(async {
        let LocalOptions { client, offer, known_era, .. } = &plan;
        let greeted = era::greet(&lane, client.config(), offer.clone(), *known_era);
        let DetectedEra { era, response } =
            greeted.await.map_err(|error| FailedHandshake::greeted(&error, &plan.log))?;
        if plan.only_era.is_some_and(|only| only != era) {
            return Err(FailedHandshake::other_era());
        }
        step = LocalStep::Initializing;
        if let Some(other) = response.as_ref().and_then(unknown_version) {
            return Err(FailedHandshake::speaks(&other, &plan.log));
        }
        let tasks = response.as_ref().is_some_and(|it| tasks::are_declared(&it.result));
        let client = client.offering(offer.clone());
        let transport = RmcpTransport::Local(slow.with_handshake(response));
        let rmcp = service::serve(client, transport, era).await;
        let rmcp = rmcp.map_err(|error| FailedHandshake::initialized(&error, &plan.log))?;
        Ok(OpenedConnection { lane: lane.clone(), rmcp, era, tasks })
    });
    let words = |stderr: &Stderr| ServerOutput {
        last_lines: stderr.last_lines(),
        printed: lane.first_skipped().map(str::to_owned),
    };
    // A descendant may hold the pipes of a server that has exited.
    let shaken = async {
        tokio::select! {
            shaken = &mut shaken => return shaken,
            Ok(status) = process.ended() => lane.server_ended(status),
        }
        shaken.await
    };
    let outcome: Result<Result<OpenedConnection, FailedHandshake>, _> =
        timeout_at(deadline, shaken).await;
    match outcome {
        Ok(Ok(opened)) => {
            let pid = process.pid();
            let leader = Mutex::new(Some(ProcessWatcher::watch(process, lane)));
            Ok(Connection::new(opened, plan.client, RemoteEnd::Process { leader, pid, stderr }))
        }
        Err(_) => {
            let words = words(&stderr);
            Err(LocalConnectError::TimedOut { step, after: plan.timeout, words })
        }
        // The exit may be a consequence of the closed connection.
        Ok(Err(FailedHandshake { cause, .. })) if lane.closed() == Some(&Closed::LineTooLong) => {
            Err(LocalConnectError::Refused { step, cause, words: words(&stderr) })
        }
        Ok(Err(FailedHandshake { cause, is_answer })) => {
            let patience = if lane.closed().is_some() { ENDING } else { MAY_END };
            let ended = timeout(patience, process.ended()).await;
            if let Ok(Ok(status)) = ended {
                stderr.settled().await;
                // Usually the exit of the server is the cause, and is reported. If the server
                // rejected the handshake before it exited, that error is more specific.
                if !is_answer {
                    let words = words(&stderr);
                    return Err(LocalConnectError::Ended {
                        status: exit_words(status),
                        step,
                        words,
                    });
                }
            }
            Err(LocalConnectError::Refused { step, cause, words: words(&stderr) })
        }
    }
}

/// Returns the version that a server selected, if it is unknown. Without a handshake, only a known
/// version is selected.
fn unknown_version(response: &HandshakeResponse) -> Option<String> {
    let version = agreed_version(&response.result).filter(|_| response.method == "initialize")?;
    let is_known = ProtocolVersion::KNOWN_VERSIONS.iter().any(|known| known.as_str() == version);
    (!is_known).then_some(version)
}

/// Why the handshake failed, as a user-readable message.
struct FailedHandshake {
    cause: String,
    /// Whether the cause is a response of the server.
    is_answer: bool,
}

impl FailedHandshake {
    /// A failure of the first request.
    fn greeted(error: &CallError, log: &ServerLog) -> Self {
        match error {
            CallError::Rpc(error) => Self { cause: rpc_refusal(error, log), is_answer: true },
            error => Self { cause: log.clean(&error.to_string(), 300), is_answer: false },
        }
    }

    /// An unknown version, which could be misinterpreted.
    fn speaks(version: &str, log: &ServerLog) -> Self {
        let known: Vec<_> = ProtocolVersion::KNOWN_VERSIONS.iter().map(|it| it.as_str()).collect();
        let version = log.clean(version, 40);
        let known = known.join(", ");
        Self {
            cause: format!("unsupported protocol version `{version}` (supported: {known})"),
            is_answer: true,
        }
    }

    /// The server does not support the configured version.
    fn other_era() -> Self {
        let cause = "the server does not support the configured `protocolVersion`; remove it from \
                     the entry, or set another one";
        Self { cause: cause.to_owned(), is_answer: true }
    }

    fn initialized(error: &ClientInitializeError, log: &ServerLog) -> Self {
        // After any other failure we close the connection, so that the server exits.
        let is_answer = !matches!(
            error,
            ClientInitializeError::ConnectionClosed(_)
                | ClientInitializeError::TransportError { .. }
        );
        Self { cause: plain(error, log), is_answer }
    }
}

/// Describes a JSON-RPC error of the server.
pub(crate) fn rpc_refusal(error: &RawValue, log: &ServerLog) -> String {
    match serde_json::from_str::<ErrorData>(error.get()) {
        Ok(error) => answered(&error, log),
        Err(_) => "the server returned an error that cannot be parsed".to_owned(),
    }
}

fn answered(error: &ErrorData, log: &ServerLog) -> String {
    let message = log.clean(&error.message, 200);
    format!("the server returned error {}: {message}", error.code.0)
}

/// Describes a failed handshake. Text from the server is untrusted, and sanitized to one line.
pub(crate) fn plain(error: &ClientInitializeError, log: &ServerLog) -> String {
    match error {
        ClientInitializeError::JsonRpcError(error) => answered(error, log),
        ClientInitializeError::ConnectionClosed(_) => "the server closed the connection".to_owned(),
        ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ExpectedInitResult(_) => {
            "the server's response to the handshake is invalid".to_owned()
        }
        // The rest of its text names our Rust types.
        ClientInitializeError::TransportError { error, .. } => {
            log.clean(&error.error.to_string(), 300)
        }
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let versions: Vec<_> = server_supported.iter().map(|it| it.as_str()).collect();
            let versions = log.clean(&versions.join(", "), 200);
            let which = if versions.is_empty() { "" } else { "; it supports " };
            format!("the server supports none of the known protocol versions{which}{versions}")
        }
        other => log.clean(&other.to_string(), 300),
    }
}
