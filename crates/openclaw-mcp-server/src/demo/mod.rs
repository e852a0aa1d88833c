//! A small MCP server for trying out clients: it needs no installation, no account and no network.
//!
//! It supports every protocol version: those that begin with `initialize`, and 2026-07-28, which does
//! not.

mod clock;
mod notes;
mod tools;

use std::convert::Infallible;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
    GetPromptRequestParams, GetPromptResponse, Implementation, InitializeRequestParams,
    InitializeResult, ListPromptsResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::stdio_pipes;
use rmcp::{ErrorData, ServerHandler};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::front::connection::ClientConnection;
use crate::front::lines::{self, LineClient, LineError, LineLimits};

/// Its messages are small.
const LIMITS: LineLimits = LineLimits { line: 8 * 1024 * 1024, requests: 256 };

/// Why the server stopped before its client disconnected.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct DemoServerError(#[from] LineError);

/// Serves the client on stdin and stdout until stdin closes.
///
/// # Errors
/// If the client sends a line too slowly or without memory for it, or the connection breaks.
pub async fn serve_stdio() -> Result<(), DemoServerError> {
    let (input, output) = stdio_pipes();
    serve(input, output).await
}

/// Serves the client at the other end of two streams until `input` closes.
///
/// # Errors
/// If the client sends a line too slowly or without memory for it, or the connection breaks.
pub async fn serve(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
) -> Result<(), DemoServerError> {
    let client = LineClient::local();
    let demo = Demo { connection: Arc::clone(&client.connection) };
    Ok(lines::serve(client, LIMITS, None::<Infallible>, demo, input, output).await?)
}

struct Demo {
    connection: Arc<ClientConnection>,
}

impl ServerHandler for Demo {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .enable_completions()
            .build();
        let this = Implementation::new("openclaw-demo", env!("CARGO_PKG_VERSION"))
            .with_title("OpenClaw demo server");
        ServerConfig::new(capabilities)
            .with_server_info(this)
            .with_instructions("A demo server. It is read-only.")
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        self.connection.initialize(self, request, &context)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        tools::call(request, context).await.map(Into::into)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(vec![notes::resource()]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        notes::read(&request.uri).map(Into::into)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(vec![notes::prompt()]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        notes::fill_prompt(&request).map(Into::into)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(notes::complete(&request))
    }
}
