//! What the hub is compared with: a bridge made of the client and the server of `rmcp`.

use std::process::Stdio;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{Peer, RequestContext, RoleClient, RoleServer};
use rmcp::{ErrorData, ServerHandler, ServiceExt as _};
use tokio::process::Command;

/// The argument that makes this program the bridge.
pub(crate) const ARGUMENT: &str = "__bridge";

struct Bridge(Peer<RoleClient>);

fn failed(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

impl ServerHandler for Bridge {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.0.list_tools(request).await.map_err(failed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.0.call_tool(request).await.map(Into::into).map_err(failed)
    }
}

/// Serves stdin and stdout with the tools of one server.
pub(crate) fn run(program: &str, args: &[String]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut server = command.spawn().unwrap();
        let pipes = (server.stdout.take().unwrap(), server.stdin.take().unwrap());
        let client = ().serve(pipes).await.unwrap();
        let bridge = Bridge(client.peer().clone());
        let serving = bridge.serve(rmcp::transport::stdio_pipes()).await.unwrap();
        let _ = serving.waiting().await;
    });
}
