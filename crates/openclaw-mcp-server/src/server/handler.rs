//! Everything but the tool calls of the server, as a server of `rmcp`.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, GetTaskParams,
    GetTaskResult, Implementation, InitializeRequestParams, InitializeResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, ServerCapabilities, ServerConfig, UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::value::to_raw_value;

use super::client::ServerClient;
use crate::front::reply::HubReply;
use crate::front::typed::{call_request, failed, response};
use crate::input::state::UNKNOWN_STATE;
use crate::media::FileAddress;
use crate::{order, sessions};

/// For the model of the client.
const INSTRUCTIONS: &str = "OpenClaw runs agents with tools of their own. `order_openclaw` sends a \
    message to an agent and returns its answer. Pass the `sessionKey` of an answer to continue that \
    session; without one, each message starts a new session.";

/// The server that the client sees.
pub(super) struct ServerHandler {
    client: Arc<ServerClient>,
}

impl ServerHandler {
    pub(super) fn new(client: Arc<ServerClient>) -> Self {
        Self { client }
    }
}

fn capabilities() -> ServerCapabilities {
    ServerCapabilities::builder().enable_tools().enable_resources().enable_tasks().build()
}

impl rmcp::ServerHandler for ServerHandler {
    fn get_info(&self) -> ServerConfig {
        let this =
            Implementation::new("openclaw", self.client.orders.version()).with_title("OpenClaw");
        ServerConfig::new(capabilities()).with_server_info(this).with_instructions(INSTRUCTIONS)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        self.client.connection.initialize(self, request, &context)
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

    /// Receives calls that are made right after the handshake, before it is answered, and those that our
    /// own reading does not know.
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = to_raw_value(&request.arguments.clone().unwrap_or_default());
        let arguments = arguments.map_err(|error| failed(error.to_string()))?;
        let name = request.name.clone().into_owned();
        let call = call_request(&context, &request, name, arguments)?;
        let is_answer = request.request_state.is_some() || request.input_responses.is_some();
        if is_answer && call.modern.is_none() {
            return Err(ErrorData::invalid_params(UNKNOWN_STATE, None));
        }
        let reply = tokio::select! {
            reply = self.client.call_tool(call) => reply,
            () = context.ct.cancelled() => HubReply::cancelled(),
        };
        response::<CallToolResult, _>(reply)
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
        let contents = self.client.orders.read_file(&address, uri).await.map_err(not_found)?;
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.client.tasks.manager.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.client.tasks.manager.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.client.tasks.manager.cancel_task(&request.task_id)
    }
}
