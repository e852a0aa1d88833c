//! `order_openclaw`: sends a message to an agent, and returns its answer (S2, S3, S5).

mod answer;
mod follow;
mod input;
pub(crate) mod key;
mod progress;
mod result;
mod run;
mod tasks;

use std::collections::HashMap;
use std::fmt;
use std::future::ready;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use openclaw_budget::ByteBudget;
use openclaw_protocol::chat::{MAX_MESSAGE, MESSAGE_TOO_LONG};
use openclaw_protocol::{Connect, Surface};
use openclaw_trace::{Span, SpanContext, SpanKind, Tracer};
use rmcp::model::{CallToolResult, ResourceContents, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::{OwnedMutexGuard, Semaphore};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::input::AskableClient;
use crate::media::{Fetcher, FileAddress, FileArgument, PdfReader};
use crate::schema;
pub(crate) use progress::RunProgress;
pub(crate) use result::failure;
use run::OrderRun;
pub(crate) use tasks::{OrderTasks, TaskReply};

/// The tool's name.
pub(crate) const NAME: &str = "order_openclaw";
/// Maximum number of messages in progress.
const MAX_ORDERS: usize = 32;
/// The memory of the messages in progress, with their files.
const MAX_MEMORY: usize = 128 * 1024 * 1024;
/// Maximum number of other requests to the gateway at a time. Further ones wait.
const MAX_LOOKUPS: usize = 8;
/// The timeout of a message without one of its own.
const USUAL_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// How long runs may take to end when the client is gone.
const FINISH: Duration = Duration::from_secs(3);
/// How long the gateway may take to start.
const CONNECT: Duration = Duration::from_secs(60);

/// The arguments of the tool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct OrderArguments {
    /// The message. It reaches the agent unchanged; a leading `/` has no meaning.
    message: String,
    /// The key of the session to continue, as returned by an earlier call. Without it, a new
    /// session begins.
    #[serde(default)]
    session_key: Option<String>,
    /// The agent to ask, if there are several.
    #[serde(default)]
    agent_id: Option<String>,
    /// How long to wait, in milliseconds. Then the run is aborted, and the text so far is returned.
    /// Default: 600000 (ten minutes).
    #[serde(default)]
    #[schemars(range(min = 1, max = 86_400_000))]
    timeout_ms: Option<u64>,
    /// Files for the agent: images, audio, video, PDF and text, at most 15 MB together.
    #[serde(default)]
    attachments: Vec<FileArgument>,
}

impl OrderArguments {
    /// The size of the message and its files.
    fn bytes(&self) -> usize {
        self.message.len() + self.attachments.iter().map(FileArgument::bytes).sum::<usize>()
    }

    /// How long the caller wants to wait.
    fn patience(&self) -> Result<Duration, String> {
        match self.timeout_ms {
            None => Ok(USUAL_TIMEOUT),
            Some(limit @ 1..=86_400_000) => Ok(Duration::from_millis(limit)),
            Some(_) => Err("invalid `timeoutMs`: it must be 1 to 86400000".to_owned()),
        }
    }
}

/// Returns the definition of the tool.
pub(crate) fn tool() -> Tool {
    let description = "Sends a message to an OpenClaw agent, which works on it with its own model \
        and tools, and returns its complete answer. The result names the `sessionKey` of the \
        session: pass it again to continue. Calls with different keys run in parallel.";
    let hints = ToolAnnotations::new().read_only(false).open_world(true);
    Tool::new(NAME, description, schema::schema_of::<OrderArguments>())
        .with_title("Ask an OpenClaw agent")
        .with_raw_output_schema(schema::schema_of::<result::OrderResult>())
        .with_annotations(hints)
}

/// What the server for other programs needs.
pub struct McpServerOptions {
    /// The gateway. Each call has its own connection.
    pub connect: Arc<dyn Connect>,
    /// Like `connect`, for a client whose user can be asked: connections that receive the approvals
    /// and elicitations of their sessions.
    pub connect_asking: Arc<dyn Connect>,
    /// The agent that messages go to; `None` for the default one.
    pub agent: Option<String>,
    /// Folders whose files may be attached, besides the agent's workspace.
    pub folders: Vec<PathBuf>,
    /// Reads the text of PDF documents, for models that cannot.
    pub pdf: Option<PdfReader>,
    /// The version of this program.
    pub version: String,
    /// Records the spans of messages.
    pub tracer: Tracer,
}

impl fmt::Debug for McpServerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServerOptions").field("agent", &self.agent).finish_non_exhaustive()
    }
}

/// The client of a message.
pub(crate) struct OrderCaller {
    /// How it is asked.
    pub(crate) client: Arc<dyn AskableClient>,
    /// Whether it knows links to resources (2025-06-18).
    pub(crate) takes_links: bool,
    /// Its span.
    pub(crate) trace: Option<SpanContext>,
    pub(crate) progress: Arc<RunProgress>,
}

/// All messages in progress, and what they need.
pub(crate) struct Orders {
    options: McpServerOptions,
    /// Cancelled when the client is gone.
    gone: CancellationToken,
    slots: Arc<Semaphore>,
    /// The memory of the messages in progress.
    memory: Arc<ByteBudget>,
    /// Limits the short requests of the other tools.
    pub(crate) lookups: Semaphore,
    fetcher: Fetcher,
    lanes: Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>,
}

impl Orders {
    pub(crate) fn new(options: McpServerOptions) -> Self {
        Self {
            options,
            gone: CancellationToken::new(),
            slots: Arc::new(Semaphore::new(MAX_ORDERS)),
            memory: ByteBudget::new(MAX_MEMORY),
            lookups: Semaphore::new(MAX_LOOKUPS),
            fetcher: Fetcher::default(),
            lanes: Mutex::default(),
        }
    }

    /// Aborts what is still running, and waits for it, at most a few seconds.
    pub(crate) async fn finish(&self) {
        self.gone.cancel();
        let all = u32::try_from(MAX_ORDERS).unwrap_or(u32::MAX);
        let _ = timeout(FINISH, self.slots.acquire_many(all)).await;
    }

    /// The version of this program.
    pub(crate) fn version(&self) -> &str {
        &self.options.version
    }

    /// The agent that a caller named, or the usual one; `None` for the gateway's default.
    pub(crate) fn agent(&self, named: Option<String>) -> Option<String> {
        named.or_else(|| self.options.agent.clone())
    }

    /// Opens a connection to the gateway.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) async fn connect(&self) -> Result<Arc<dyn Surface>, String> {
        Self::connect_by(&*self.options.connect).await
    }

    /// Opens a connection for a message of a client, which is asked if it can be.
    async fn connect_for(&self, client: &dyn AskableClient) -> Result<Arc<dyn Surface>, String> {
        let abilities = client.abilities();
        if abilities.form || abilities.url {
            Self::connect_by(&*self.options.connect_asking).await
        } else {
            self.connect().await
        }
    }

    async fn connect_by(connect: &dyn Connect) -> Result<Arc<dyn Surface>, String> {
        timeout(CONNECT, connect.connect())
            .await
            .unwrap_or_else(|_| Err(format!("no gateway within {} s", CONNECT.as_secs())))
            .map_err(|error| format!("no connection to the gateway: {error}"))
    }

    /// Reads a file of an answer.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(crate) async fn read_file(
        &self,
        address: &FileAddress,
        uri: &str,
    ) -> Result<ResourceContents, String> {
        key::check(&address.session, None)?;
        let _turn = self.lookups.acquire().await.map_err(|error| error.to_string())?;
        let surface = self.connect().await?;
        let reading = timeout(run::SHORT, address.read(&*surface, uri)).await;
        reading.map_err(|_| "the gateway did not respond in time".to_owned())?
    }

    /// Starts to run a message. Messages of one conversation are run in the order of these calls. Dropping
    /// the future aborts the run.
    pub(crate) fn start(
        self: &Arc<Self>,
        arguments: OrderArguments,
        caller: OrderCaller,
    ) -> BoxFuture<'static, CallToolResult> {
        match self.begin(arguments, caller) {
            Ok(result) => Box::pin(result),
            Err(words) => Box::pin(ready(failure(words))),
        }
    }

    fn begin(
        self: &Arc<Self>,
        arguments: OrderArguments,
        caller: OrderCaller,
    ) -> Result<impl Future<Output = CallToolResult> + Send + 'static, String> {
        let deadline = Instant::now() + arguments.patience()?;
        let memory = self.memory.hold(arguments.bytes()).map_err(|spent| spent.to_string())?;
        let OrderArguments { message, session_key, agent_id, attachments, .. } = arguments;
        if message.len() > MAX_MESSAGE {
            return Err(MESSAGE_TOO_LONG.to_owned());
        }
        if message.trim().is_empty() && attachments.is_empty() {
            return Err("the message is empty".to_owned());
        }
        let agent = match &session_key {
            // The agent of an existing conversation is known to the gateway.
            Some(_) => agent_id,
            None => self.agent(agent_id),
        };
        let session = match session_key {
            Some(key) => {
                key::check(&key, agent.as_deref())?;
                key
            }
            None => key::fresh(agent.as_deref()),
        };
        let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else {
            return Err(format!("too many messages in progress; at most {MAX_ORDERS}"));
        };
        let lane = self.lane(&session);
        let span = self.span(&session, caller.trace.as_ref());
        let cancelled = self.gone.child_token();
        let progress = Arc::clone(&caller.progress);
        let run = OrderRun {
            orders: Arc::clone(self),
            cancelled: cancelled.clone(),
            caller,
            session,
            agent,
            deadline,
            span,
        };
        // A task, because the run is aborted in the gateway also if nothing waits for it any more;
        // `finish` waits for its slot.
        let running = tokio::spawn(async move {
            let result = tokio::select! {
                result = run.start(lane, message, attachments) => result,
                never = progress.report() => match never {},
            };
            drop((memory, slot));
            result
        });
        Ok(async move {
            let _abort_on_drop = cancelled.drop_guard();
            running.await.unwrap_or_else(|_| failure("the run ended unexpectedly"))
        })
    }

    /// Starts the span of a message, in the semantic conventions for MCP.
    fn span(&self, session: &str, parent: Option<&SpanContext>) -> Span {
        const METHOD: &str = "tools/call";
        let span = self.options.tracer.start(METHOD, SpanKind::Server, parent);
        if span.is_recorded() {
            span.rename(format!("{METHOD} {NAME}"), SpanKind::Server);
            span.set("mcp.method.name", METHOD);
            span.set("gen_ai.operation.name", "execute_tool");
            span.set("gen_ai.tool.name", NAME);
            span.set("network.transport", "pipe");
            span.set_text("gen_ai.conversation.id", session);
        }
        span
    }

    /// Joins the queue of a conversation.
    fn lane(&self, session: &str) -> impl Future<Output = OwnedMutexGuard<()>> + use<> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.retain(|_, lane| lane.strong_count() > 0);
        let lane = lanes.get(session).and_then(Weak::upgrade).unwrap_or_default();
        lanes.insert(session.to_owned(), Arc::downgrade(&lane));
        lane.lock_owned()
    }
}
