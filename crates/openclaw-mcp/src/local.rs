//! A connection to a local server: its process, its wire, its handshake.

use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientConfig, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, RunningService, serve_client_with_lifecycle};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use crate::era::{self, Era, Finding};
use crate::guard::Guard;
use crate::process::{Launch, Patience, Process, SpawnError};
use crate::stderr::{LastLines, drain};
use crate::wire::{self, FastLane};

/// How long a server's last words are waited for once it has ended.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// What a connection is made from.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The server's name, for logs.
    pub server: String,
    /// How to start it.
    pub launch: Launch,
    /// Who we are.
    pub client: ClientConfig,
    /// The era that it spoke last time.
    pub known_era: Option<Era>,
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
    #[error("it ended with {status} while {step}")]
    Ended {
        /// How.
        status: String,
        /// What it was doing.
        step: Step,
        /// What it wrote to stderr last. From outside: not for a model.
        last_lines: Vec<String>,
    },
    /// It did not answer in time.
    #[error("no answer after {} ms while {step}", .after.as_millis())]
    TimedOut {
        /// What it was doing.
        step: Step,
        /// After how long.
        after: Duration,
    },
    /// It answered, but not as a server should.
    #[error("{cause} while {step}")]
    Refused {
        /// What it was doing.
        step: Step,
        /// What was wrong.
        cause: String,
    },
}

/// The steps of connecting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Finding out which protocol the server speaks.
    FindingTheEra,
    /// The handshake.
    Initializing,
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::FindingTheEra => "finding out which protocol it speaks",
            Self::Initializing => "initializing",
        })
    }
}

/// A connection to a local server. Dropping it kills the server's process group.
#[derive(Debug)]
pub struct LocalConnection {
    lane: FastLane,
    rmcp: RunningService<RoleClient, ClientConfig>,
    process: Process,
    stderr: Stderr,
    finding: Finding,
}

/// The task that reads a server's standard error; it ends with this.
#[derive(Debug)]
struct Stderr {
    task: JoinHandle<()>,
    last: LastLines,
}

impl Drop for Stderr {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl LocalConnection {
    /// Starts the server and shakes hands. If it fails, nothing of the server is left.
    ///
    /// # Errors
    /// Which step failed, and why.
    pub async fn open(plan: Plan, guard: &Guard) -> Result<Self, ConnectError> {
        let deadline = Instant::now() + plan.timeout;
        let (mut process, pipes) = Process::spawn(&plan.launch, guard)?;
        let last = LastLines::default();
        let task = tokio::spawn(drain(plan.server.clone(), pipes.stderr, last.clone()));
        let mut stderr = Stderr { task, last };
        let opened = wire::open(pipes.stdin, pipes.stdout);
        let (lane, slow) = opened
            .map_err(|cause| SpawnError::Other { program: plan.launch.program.clone(), cause })?;

        let mut step = Step::FindingTheEra;
        let shaken = async {
            let finding = match plan.known_era {
                Some(era) => Finding::Era(era),
                None => era::probe(&lane, &plan.client, era::PROBE_TIMEOUT)
                    .await
                    .map_err(|closed| closed.to_string())?,
            };
            step = Step::Initializing;
            let lifecycle = match finding.era() {
                Era::Legacy => ClientLifecycleMode::Initialize,
                Era::Modern => ClientLifecycleMode::Discover {
                    preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                },
            };
            let rmcp = serve_client_with_lifecycle(plan.client, slow, lifecycle).await;
            rmcp.map(|rmcp| (rmcp, finding)).map_err(|error| error.to_string())
        };
        let outcome = timeout_at(deadline, shaken).await;
        match outcome {
            Ok(Ok((rmcp, finding))) => Ok(Self { lane, rmcp, process, stderr, finding }),
            Err(_) => Err(ConnectError::TimedOut { step, after: plan.timeout }),
            // Mostly the cause is that the server has ended: then that is what to say.
            Ok(Err(cause)) => match timeout(LAST_WORDS, process.ended()).await {
                Ok(Ok(status)) => {
                    let _ = timeout(LAST_WORDS, &mut stderr.task).await;
                    let last_lines = stderr.last.get();
                    Err(ConnectError::Ended { status: status.to_string(), step, last_lines })
                }
                _ => Err(ConnectError::Refused { step, cause }),
            },
        }
    }

    /// The lane for calls.
    pub fn lane(&self) -> &FastLane {
        &self.lane
    }

    /// What was found out about the server's era; worth remembering if it said so itself.
    pub fn finding(&self) -> Finding {
        self.finding
    }

    /// The version of the protocol that was agreed upon.
    pub fn version(&self) -> Option<String> {
        self.rmcp.peer_info().map(|info| info.protocol_version.to_string())
    }

    /// The id of the process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// What the server wrote to stderr last.
    pub fn last_lines(&self) -> Vec<String> {
        self.stderr.last.get()
    }

    /// Ends the connection and the server (L5). When this returns, nothing of it is left.
    pub async fn close(mut self, patience: Patience) {
        // Closing `rmcp` drops its transport, and with it the server's input.
        let _ = self.rmcp.close().await;
        self.process.shut_down(None, patience).await;
    }
}
