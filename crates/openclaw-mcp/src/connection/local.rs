//! To a connection with a local server: its process, its wire, its handshake.

use std::time::Duration;

use rmcp::model::{ErrorData, ProtocolVersion};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, serve_client_with_lifecycle};
use serde_json::value::RawValue;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout, timeout_at};

use crate::connection::client::Client;
use crate::connection::era::{self, Era, Greeted};
use crate::connection::{Connection, FarEnd, Leader, Opened};
use crate::process::guard::Guard;
use crate::process::stderr::Stderr;
use crate::process::{Launch, Process, SpawnError, exit_words};
use crate::server::log::ServerLog;
use crate::wire::http::agreed_version;
use crate::wire::{self, CallError, Closed, Greeting};

/// How long a server that has closed its output may take to end: on a busy machine the one is seen long
/// before the other.
const ENDING: Duration = Duration::from_secs(5);
/// How long one that has refused us may take to end over it.
const MAY_END: Duration = Duration::from_millis(500);

/// What a connection is made from.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The server's name, for logs.
    pub server: String,
    /// How to start it.
    pub launch: Launch,
    /// Our side of the protocol.
    pub client: Client,
    /// The era that it speaks, if that is known.
    pub known_era: Option<Era>,
    /// The version to offer in a handshake.
    pub offer: ProtocolVersion,
    /// Where its standard error is kept.
    pub log: ServerLog,
    /// How long all of it may take.
    pub timeout: Duration,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The process could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The process ended.
    #[error("{status} during {step}{words}")]
    Ended {
        /// How: "exited with status 1".
        status: String,
        /// What it was doing.
        step: Step,
        /// What else it said.
        words: Words,
    },
    /// It did not answer in time.
    #[error("timed out after {} ms during {step}{words}", .after.as_millis())]
    TimedOut {
        /// What it was doing.
        step: Step,
        /// After how long.
        after: Duration,
        /// What else it said.
        words: Words,
    },
    /// It answered, but not as a server should.
    #[error("{step} failed: {cause}{words}")]
    Refused {
        /// What it was doing.
        step: Step,
        /// What was wrong.
        cause: String,
        /// What else it said.
        words: Words,
    },
}

impl ConnectError {
    /// What the server said that is no answer; nothing if it never ran.
    pub(crate) fn words(&self) -> Option<&Words> {
        match self {
            Self::Spawn(_) => None,
            Self::Ended { words, .. }
            | Self::TimedOut { words, .. }
            | Self::Refused { words, .. } => Some(words),
        }
    }
}

/// What a server said beside its answers, which mostly tells why there is no connection. From outside:
/// not for a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    /// The last lines that it wrote to stderr.
    pub last_lines: Vec<String>,
    /// The first line that it printed on stdout and that is no message: one clean line.
    pub printed: Option<String>,
}

impl std::fmt::Display for Words {
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
pub enum Step {
    /// Finding out which protocol the server speaks, and introducing ourselves.
    Greeting,
    /// The handshake.
    Initializing,
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Greeting => "startup",
            Self::Initializing => "initialization",
        })
    }
}

/// Starts the server and shakes hands. If it fails, nothing of the server is left.
///
/// # Errors
/// Which step failed, and why.
pub async fn open(plan: Plan, guard: &Guard) -> Result<Connection, ConnectError> {
    let deadline = Instant::now() + plan.timeout;
    let (mut process, pipes) = Process::spawn(&plan.launch, guard)?;
    let stderr = Stderr::read(plan.server.clone(), pipes.stderr, plan.log.clone());
    let opened = wire::open(&plan.server, plan.log.redactor(), pipes.stdin, pipes.stdout);
    let (lane, slow) = opened
        .map_err(|cause| SpawnError::Other { program: plan.launch.program.clone(), cause })?;

    let mut step = Step::Greeting;
    // Boxed: it is large, and done with soon.
    let mut shaken = Box::pin(async {
        let Plan { client, offer, known_era, .. } = &plan;
        let greeted = era::greet(&lane, client.config(), offer.clone(), *known_era);
        let Greeted { era, greeting } =
            greeted.await.map_err(|error| NotShaken::greeted(&error, &plan.log))?;
        step = Step::Initializing;
        if let Some(other) = greeting.as_ref().and_then(unknown_version) {
            return Err(NotShaken::speaks(&other, &plan.log));
        }
        let lifecycle = match era {
            Era::Legacy => ClientLifecycleMode::Initialize,
            Era::Modern => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
        };
        let client = client.offering(offer.clone());
        let rmcp = serve_client_with_lifecycle(client, slow.greeted(greeting), lifecycle).await;
        let rmcp = rmcp.map_err(|error| NotShaken::initialized(&error, &plan.log))?;
        Ok(Opened { lane: lane.clone(), rmcp, era })
    });
    let words = |stderr: &Stderr| Words {
        last_lines: stderr.last_lines(),
        printed: lane.first_skipped().map(str::to_owned),
    };
    // A descendant may hold the pipes of a server that has ended.
    let shaken = async {
        tokio::select! {
            shaken = &mut shaken => return shaken,
            Ok(status) = process.ended() => lane.server_ended(status),
        }
        shaken.await
    };
    let outcome: Result<Result<Opened, NotShaken>, _> = timeout_at(deadline, shaken).await;
    match outcome {
        Ok(Ok(opened)) => {
            let pid = process.pid();
            let leader = Mutex::new(Some(Leader::watch(process, lane)));
            Ok(Connection::new(opened, plan.client, FarEnd::Process { leader, pid, stderr }))
        }
        Err(_) => {
            let words = words(&stderr);
            Err(ConnectError::TimedOut { step, after: plan.timeout, words })
        }
        // It may have ended because it was not listened to any more.
        Ok(Err(NotShaken { cause, .. })) if lane.closed() == Some(&Closed::LineTooLong) => {
            Err(ConnectError::Refused { step, cause, words: words(&stderr) })
        }
        Ok(Err(NotShaken { cause, is_answer })) => {
            let patience = if lane.closed().is_some() { ENDING } else { MAY_END };
            let ended = timeout(patience, process.ended()).await;
            if let Ok(Ok(status)) = ended {
                stderr.settled().await;
                // Mostly the cause is that the server has ended: then that is what to say. One that said
                // no before it left has told a better reason.
                if !is_answer {
                    let words = words(&stderr);
                    return Err(ConnectError::Ended { status: exit_words(status), step, words });
                }
            }
            Err(ConnectError::Refused { step, cause, words: words(&stderr) })
        }
    }
}

/// The version that a server insists on, if nobody knows it. Of those without a handshake one is chosen that
/// is known.
fn unknown_version(greeting: &Greeting) -> Option<String> {
    let version = agreed_version(&greeting.result).filter(|_| greeting.method == "initialize")?;
    let is_known = ProtocolVersion::KNOWN_VERSIONS.iter().any(|known| known.as_str() == version);
    (!is_known).then_some(version)
}

/// Why there was no handshake, in words for people.
struct NotShaken {
    cause: String,
    /// Whether the server itself says so.
    is_answer: bool,
}

impl NotShaken {
    /// What a server said to a greeting.
    fn greeted(error: &CallError, log: &ServerLog) -> Self {
        match error {
            CallError::Rpc(error) => Self { cause: rpc_refusal(error, log), is_answer: true },
            error => Self { cause: log.clean(&error.to_string(), 300), is_answer: false },
        }
    }

    /// A version that nobody knows would be misunderstood.
    fn speaks(version: &str, log: &ServerLog) -> Self {
        let known: Vec<_> = ProtocolVersion::KNOWN_VERSIONS.iter().map(|it| it.as_str()).collect();
        let (version, known) = (log.clean(version, 40), known.join(", "));
        Self {
            cause: format!("unsupported protocol version `{version}` (supported: {known})"),
            is_answer: true,
        }
    }

    fn initialized(error: &ClientInitializeError, log: &ServerLog) -> Self {
        let is_answer = matches!(error, ClientInitializeError::JsonRpcError(_));
        Self { cause: plain(error, log), is_answer }
    }
}

/// The error that a server answered with, in words for people.
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

/// What `rmcp` says about a failed handshake, in words for people. What the server said comes from
/// outside: one clean line of it.
pub(crate) fn plain(error: &ClientInitializeError, log: &ServerLog) -> String {
    match error {
        ClientInitializeError::JsonRpcError(error) => answered(error, log),
        ClientInitializeError::ConnectionClosed(_) => "the server closed the connection".to_owned(),
        ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ExpectedInitResult(_) => {
            "unexpected response to the handshake".to_owned()
        }
        other => log.clean(&other.to_string(), 300),
    }
}
