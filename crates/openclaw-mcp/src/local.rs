//! A connection to a local server: its process, its wire, its handshake.

use std::time::Duration;

use openclaw_config::StdioServer;
use openclaw_secrets::{Environment, Resolver};
use rmcp::RoleClient;
use rmcp::model::{ClientConfig, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, RunningService, serve_client_with_lifecycle};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use crate::era::{self, Era, Finding};
use crate::guard::Guard;
use crate::launch::launch;
use crate::listing::{self, Listing};
use crate::process::{Launch, Patience, Process, SpawnError};
use crate::stderr::{LastLines, drain};
use crate::supervisor::{Dial, DialError, Live};
use crate::wire::{self, CallError, FastLane, Limits};

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
    pid: u32,
    version: Option<String>,
    finding: Finding,
    /// What stands in the `_meta` of every request: since 2026-07-28 there is no handshake to say it.
    meta: Option<Meta>,
    stderr: Stderr,
    /// Until it is closed.
    server: Mutex<Option<Server>>,
}

#[derive(Debug)]
struct Meta {
    object: Map<String, Value>,
    /// The same as text, without braces: what the fast lane puts into a call.
    members: String,
}

impl Meta {
    fn new(object: Map<String, Value>) -> Self {
        let text = Value::Object(object.clone()).to_string();
        let members = text.trim_start_matches('{').strip_suffix('}').unwrap_or_default().to_owned();
        Self { object, members }
    }
}

#[derive(Debug)]
struct Server {
    rmcp: RunningService<RoleClient, ClientConfig>,
    process: Process,
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

        let request_meta = era::request_meta(&plan.client);
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
            Ok(Ok((rmcp, finding))) => {
                let version = rmcp.peer_info().map(|info| info.protocol_version.to_string());
                let (pid, server) = (process.pid(), Mutex::new(Some(Server { rmcp, process })));
                let is_modern = finding.era() == Era::Modern;
                let meta = is_modern.then(|| Meta::new(request_meta));
                Ok(Self { lane, pid, version, finding, meta, stderr, server })
            }
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

    /// Calls a tool on the fast lane.
    ///
    /// # Errors
    /// If the server answers with one, too late or not at all.
    pub async fn call_tool(
        &self,
        tool: &str,
        arguments: &RawValue,
        limits: Limits,
    ) -> Result<Box<RawValue>, CallError> {
        let meta = self.meta.as_ref().map_or("", |meta| &meta.members);
        self.lane.call_tool(tool, arguments, meta, limits).await
    }

    /// Lists the server's tools.
    ///
    /// # Errors
    /// If the server does not answer.
    pub async fn list_tools(&self, limits: Limits) -> Result<Listing, CallError> {
        listing::tools(&self.lane, self.meta.as_ref().map(|meta| &meta.object), limits).await
    }

    /// What was found out about the server's era; worth remembering if it said so itself.
    pub fn finding(&self) -> Finding {
        self.finding
    }

    /// The version of the protocol that was agreed upon.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// The id of the process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What the server wrote to stderr last.
    pub fn last_lines(&self) -> Vec<String> {
        self.stderr.last.get()
    }

    /// Ends the connection and the server (L5). When this returns, nothing of it is left.
    pub async fn close(&self, patience: Patience) {
        let Some(mut server) = self.server.lock().await.take() else { return };
        // Closing `rmcp` drops its transport, and with it the server's input.
        let _ = server.rmcp.close().await;
        server.process.shut_down(None, patience).await;
    }
}

impl Live for LocalConnection {
    async fn lost(&self) -> String {
        self.lane.until_closed().await.to_string()
    }

    async fn close(&self) {
        self.close(Patience::default()).await;
    }
}

/// How to connect to a local server, again and again.
#[derive(Debug)]
pub struct LocalDial {
    /// The server's name, for logs.
    pub server: String,
    /// Its configuration.
    pub config: StdioServer,
    /// Where its secrets come from.
    pub resolver: Resolver,
    /// The environment of this program.
    pub host: Environment,
    /// Who kills it if this program is itself killed.
    pub guard: Guard,
    /// Who we are.
    pub client: ClientConfig,
    /// The era that it spoke last time.
    pub known_era: Option<Era>,
    /// How long connecting may take.
    pub timeout: Duration,
}

impl Dial for LocalDial {
    type Connection = LocalConnection;

    async fn dial(&mut self) -> Result<LocalConnection, DialError> {
        let launch = launch(&self.config, &self.resolver, &self.host).await;
        let launch = launch.map_err(|error| DialError::Failed(format!("the secret {error}")))?;
        let plan = Plan {
            server: self.server.clone(),
            launch,
            client: self.client.clone(),
            known_era: self.known_era,
            timeout: self.timeout,
        };
        let connection = LocalConnection::open(plan, &self.guard).await;
        let connection = connection.map_err(|error| DialError::Failed(error.to_string()))?;
        if let Finding::Era(era) = connection.finding() {
            self.known_era = Some(era);
        }
        Ok(connection)
    }
}
