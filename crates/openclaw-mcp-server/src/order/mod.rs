//! `order_openclaw`: sends a message to an agent, and returns its answer (S2, S3, S5).

mod answer;
mod client;
mod follow;
pub(crate) mod key;
mod parked;
mod progress;
mod questions;
mod result;
mod run;
mod tasks;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use openclaw_budget::ByteBudget;
use openclaw_protocol::chat::{MAX_MESSAGE, MESSAGE_TOO_LONG};
use openclaw_protocol::{Connect, Surface};
use openclaw_trace::{Span, SpanContext, SpanKind};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, JsonObject, ProtocolVersion,
    ResourceContents, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{OwnedMutexGuard, Semaphore};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::hub::answers::AskableClient;
use crate::hub::state::UNKNOWN_STATE;
use crate::media::{Fetcher, FileAddress, FileArgument};
use crate::schema;
use crate::server::{McpServerOptions, failure};
use client::{OrderCaller, RequestedClient, abilities, trace};
pub(crate) use parked::ParkedRuns;
use progress::RunProgress;
pub(crate) use result::MediaEntry;
use run::OrderRun;
pub(crate) use tasks::OrderTasks;

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
    Tool::new(NAME, description, schema::of::<OrderArguments>())
        .with_title("Ask an OpenClaw agent")
        .with_raw_output_schema(schema::of::<result::OrderResult>())
        .with_annotations(hints)
}

/// Parses the arguments of a tool.
///
/// # Errors
/// What is wrong with them.
pub(crate) fn parse<T: DeserializeOwned + JsonSchema>(arguments: JsonObject) -> Result<T, String> {
    schema::read(&Value::Object(arguments))
}

/// All messages in progress, and what they need.
pub(crate) struct Orders {
    options: McpServerOptions,
    /// Cancelled when the client is gone.
    gone: CancellationToken,
    slots: Semaphore,
    /// The memory of the messages in progress.
    memory: Arc<ByteBudget>,
    /// Limits the short requests of the other tools.
    pub(crate) lookups: Semaphore,
    fetcher: Fetcher,
    lanes: Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>,
}

impl Orders {
    pub(crate) fn new(options: McpServerOptions, gone: CancellationToken) -> Self {
        Self {
            options,
            gone,
            slots: Semaphore::new(MAX_ORDERS),
            memory: ByteBudget::new(MAX_MEMORY),
            lookups: Semaphore::new(MAX_LOOKUPS),
            fetcher: Fetcher::default(),
            lanes: Mutex::default(),
        }
    }

    /// Aborts what is still running, and waits for it, at most a few seconds.
    pub(crate) async fn finish(&self, parked: &ParkedRuns) {
        self.gone.cancel();
        let all = u32::try_from(MAX_ORDERS).unwrap_or(u32::MAX);
        let ended = async { tokio::join!(parked.finish(), self.slots.acquire_many(all)) };
        let _ = timeout(FINISH, ended).await;
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
        match abilities.form || abilities.url {
            true => Self::connect_by(&*self.options.connect_asking).await,
            false => self.connect().await,
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

    /// Runs a message to its end, or until its client is asked by the reply. If the request is
    /// cancelled, the run is aborted.
    ///
    /// # Errors
    /// If the request brings input for a run that does not wait for it.
    pub(crate) async fn call(
        self: &Arc<Self>,
        parked: &ParkedRuns,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let given = request.arguments.unwrap_or_default();
        let arguments = Value::Object(given.clone()).to_string();
        match (request.request_state, request.input_responses) {
            (Some(state), responses) => {
                let responses = responses.unwrap_or_default();
                return parked.go_on(&state, responses, &arguments, &context).await;
            }
            // Every question has a state.
            (None, Some(_)) => return Err(ErrorData::invalid_params(UNKNOWN_STATE, None)),
            (None, None) => {}
        }
        let text = arguments;
        let arguments = match parse(given) {
            Ok(arguments) => arguments,
            Err(words) => return Ok(failure(words).into()),
        };
        let version = context.protocol_version();
        let is_since = |since: ProtocolVersion| version.as_ref().is_some_and(|it| *it >= since);
        if is_since(ProtocolVersion::V_2026_07_28) {
            return Ok(parked.start(self, arguments, text, &context).await);
        }
        let client = RequestedClient { abilities: abilities(&context), peer: context.peer.clone() };
        let takes_links = is_since(ProtocolVersion::V_2025_06_18);
        let caller = OrderCaller { answers: Arc::new(client), takes_links, trace: trace(&context) };
        let progress = RunProgress::of_request(&context);
        Ok(self.run(arguments, &progress, &context.ct, caller).await.into())
    }

    /// Runs a message to its end, or until it is cancelled.
    async fn run(
        &self,
        arguments: OrderArguments,
        progress: &RunProgress,
        cancelled: &CancellationToken,
        caller: OrderCaller,
    ) -> CallToolResult {
        let ordering = self.order(arguments, progress, cancelled, caller);
        tokio::select! {
            result = ordering => result.unwrap_or_else(failure),
            never = progress.report() => match never {},
        }
    }

    async fn order(
        &self,
        arguments: OrderArguments,
        progress: &RunProgress,
        cancelled: &CancellationToken,
        caller: OrderCaller,
    ) -> Result<CallToolResult, String> {
        let deadline = Instant::now() + arguments.patience()?;
        let _memory = self.memory.hold(arguments.bytes()).map_err(|spent| spent.to_string())?;
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
        let Ok(_slot) = self.slots.try_acquire() else {
            return Err(format!("too many messages in progress; at most {MAX_ORDERS}"));
        };
        // Before the first await: messages of one conversation are sent in the order of the calls.
        let lane = self.lane(&session);
        let span = self.span(&session, caller.trace.as_ref());
        let run =
            OrderRun { orders: self, progress, cancelled, caller, session, agent, deadline, span };
        Ok(run.start(lane, message, attachments).await)
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
