//! The server: its handshake, its tools, and the tasks of clients that support them.

use std::fmt;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;

use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::Connect;
use openclaw_trace::Tracer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ContentBlock,
    CustomRequest, CustomResult, ErrorCode, GetTaskParams, GetTaskResult, Implementation,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, ServerCapabilities, ServerConfig, UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer, ServerInitializeError};
use rmcp::transport::stdio_pipes;
use rmcp::{ErrorData, ServerHandler, ServiceExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::era::{EraServer, era_of, has_method};
use crate::hub::state::UNKNOWN_STATE;
use crate::media::{FileAddress, PdfReader};
use crate::order::{self, OrderTasks, Orders, ParkedRuns};
use crate::sessions;
use crate::transport::LineTransport;

/// Maximum length of an unknown method that is quoted, in characters.
const MAX_METHOD: usize = 100;
/// For the model of the client.
const INSTRUCTIONS: &str = "OpenClaw runs agents with tools of their own. `order_openclaw` sends a \
    message to an agent and returns its answer. Pass the `sessionKey` of an answer to continue that \
    session; without one, each message starts a new session.";

/// What the server needs.
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
        f.debug_struct("Options").field("agent", &self.agent).finish_non_exhaustive()
    }
}

/// Why the server stopped before its client disconnected.
#[derive(Debug, thiserror::Error)]
#[error("invalid MCP from the client: {0}")]
pub struct McpServerError(String);

/// Serves the client on stdin and stdout until stdin closes or `stopped` is ready.
///
/// # Errors
/// If the client does not send MCP.
pub async fn serve_stdio(
    options: McpServerOptions,
    stopped: impl Future<Output = ()>,
) -> Result<(), McpServerError> {
    let (input, output) = stdio_pipes();
    serve(options, input, output, stopped).await
}

/// Serves the client at the other end of two streams until `input` closes or `stopped` is ready.
/// Running messages are aborted then.
///
/// # Errors
/// If the client does not send MCP.
pub async fn serve(
    options: McpServerOptions,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    stopped: impl Future<Output = ()>,
) -> Result<(), McpServerError> {
    let mut stopped = pin!(stopped);
    let gone = CancellationToken::new();
    let lines = LineTransport::new(input, output, gone.clone());
    let version = options.version.clone();
    let orders = Arc::new(Orders::new(options, gone));
    let (tasks, parked) = (OrderTasks::default(), Arc::new(ParkedRuns::default()));
    let server = EraServer(Server { orders, tasks, parked, version });
    let running = tokio::select! {
        running = Box::pin(server.serve(lines)) => running,
        () = stopped.as_mut() => return Ok(()),
    };
    let running = match running {
        Ok(running) => running,
        // A client may disconnect before the handshake.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(McpServerError(reason(&error))),
    };
    let orders = Arc::clone(&running.service().0.orders);
    let parked = Arc::clone(&running.service().0.parked);
    // Not dropped before the runs have ended: that would end the tasks that abort them.
    let mut waiting = pin!(running.waiting());
    let ended = tokio::select! {
        ended = waiting.as_mut() => ended.map(drop),
        () = stopped.as_mut() => Ok(()),
    };
    orders.finish(&parked).await;
    ended.map_err(|error| McpServerError(error.to_string()))
}

/// Why a handshake failed. Messages of the client are not quoted: they may contain secrets.
pub(crate) fn reason(error: &ServerInitializeError) -> String {
    match error {
        ServerInitializeError::InitializeFailed(error) => error.message.to_string(),
        ServerInitializeError::TransportError { error, .. } => error.to_string(),
        _ => "it did not begin with a handshake".to_owned(),
    }
}

struct Server {
    orders: Arc<Orders>,
    tasks: OrderTasks,
    parked: Arc<ParkedRuns>,
    version: String,
}

fn capabilities() -> ServerCapabilities {
    ServerCapabilities::builder().enable_tools().enable_resources().enable_tasks().build()
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let this = Implementation::new("openclaw", &self.version).with_title("OpenClaw");
        ServerConfig::new(capabilities()).with_server_info(this).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut tools = vec![order::tool()];
        tools.extend(sessions::tools());
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name == order::NAME {
            let Self { orders, tasks, parked, .. } = self;
            let capabilities = context.client_capabilities();
            let takes_tasks = capabilities.is_some_and(|client| client.supports_tasks());
            let is_answer = request.request_state.is_some() || request.input_responses.is_some();
            return match takes_tasks && !is_answer {
                true => {
                    let arguments = request.arguments.unwrap_or_default();
                    Ok(tasks.call(orders, parked, arguments, context).await)
                }
                false => orders.call(parked, request, context).await,
            };
        }
        // Nothing else asks for input.
        if request.request_state.is_some() || request.input_responses.is_some() {
            return Err(ErrorData::invalid_params(UNKNOWN_STATE, None));
        }
        let arguments = request.arguments.unwrap_or_default();
        match sessions::call(&self.orders, &request.name, arguments).await {
            Some(result) => Ok(result.into()),
            None => {
                let words = format!("unknown tool `{}`", request.name);
                Err(ErrorData::invalid_params(words, None))
            }
        }
    }

    /// Files of answers are not listed: their URIs are in the results.
    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(Vec::new()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = &request.uri;
        let not_found = |words: String| {
            ErrorData::resource_not_found(words, Some(serde_json::json!({ "uri": uri })))
        };
        let address =
            FileAddress::parse(uri).ok_or_else(|| not_found("resource not found".into()))?;
        let contents = self.orders.read_file(&address, uri).await.map_err(not_found)?;
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.tasks.manager.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.manager.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.manager.cancel_task(&request.task_id)
    }

    /// Receives what does not match a type of `rmcp`, also requests of methods that it knows.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method.as_str();
        Err(match has_method(&capabilities(), method, era_of(&context)) {
            true => invalid_params(method),
            false => unknown_method(method),
        })
    }
}

/// The error for a method that the server does not have.
pub(crate) fn unknown_method(method: &str) -> ErrorData {
    let method = clean_line(Untrusted::new(method), MAX_METHOD);
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("unknown method `{method}`"), None)
}

/// The error for a request of a method with other parameters than it has.
pub(crate) fn invalid_params(method: &str) -> ErrorData {
    let words = match method {
        "initialize" => {
            "`protocolVersion` must be a string, `capabilities` and `clientInfo` objects"
        }
        "tools/call" | "prompts/get" => "`name` must be a string, `arguments` an object",
        "completion/complete" => {
            "`ref` must be a prompt or a resource template, `argument` an object with `name` and \
             `value`"
        }
        "logging/setLevel" => "`level` must be a log level, such as `info`",
        "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => {
            "`cursor` must be a string"
        }
        _ => "`uri` must be a string",
    };
    ErrorData::invalid_params(format!("invalid parameters: {words}"), None)
}

/// A result that reports a failure to the client's model.
pub(crate) fn failure(words: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(words)])
}
