//! The protocol's methods for MCP servers, their tools, resources and prompts.

use std::sync::Arc;
use std::time::Duration;

use openclaw_config::AgentId;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp::server::status::{ServerState, ServerStatus};
use openclaw_mcp_client::wire::ProgressWatcher;
use openclaw_protocol::ErrorShape;
use openclaw_protocol::mcp::{
    AuthAction, AuthParams, AuthResult, CallParams, CompleteParams, CompleteResult, ConnectParams,
    ListParams, LogsParams, LogsResult, Outcome, PromptParams, PromptsResult, ReadParams,
    RefreshResult, ResourcesResult, ServerResult, ServersResult, ToolsResult,
};
use openclaw_trace::SpanContext;
use serde_json::value::{RawValue, to_raw_value};

use super::call::{self, DirectCaller};
use super::complete::complete;
use super::find::find;
use super::gather::{GatheredServers, WaitFor, gather};
use super::lists::{self, ToolsWanted};
use super::logins::AuthRequest;
use super::problem::Problem;
use super::progress::{MAX_TOKEN, with_progress};
use super::servers::McpServers;
use crate::callers::Connected;

/// Default and maximum number of log lines.
const LINES: usize = 100;
const MOST_LINES: usize = 10_000;
/// How long a listing waits for servers that are connecting.
const LISTS_WAIT: Duration = Duration::from_secs(10);

type Reply<T> = Result<T, ErrorShape>;

/// A request about the servers of an agent. Does not set up the rest of the agent.
pub(crate) struct ServerRequest<'a> {
    servers: &'a Arc<McpServers>,
    id: AgentId,
    agent: Arc<AgentTools>,
    caller: &'a Connected,
    trace: Option<&'a SpanContext>,
}

/// A server's status as JSON; the protocol passes it on as the engine writes it.
fn raw_status(status: &ServerStatus) -> Reply<Box<RawValue>> {
    to_raw_value(status).map_err(|error| ErrorShape::unavailable(error.to_string()))
}

/// Returns the end of a server's log.
pub(crate) async fn logs(servers: &McpServers, params: LogsParams) -> Reply<LogsResult> {
    let LogsParams { server, lines } = params;
    let count = lines.map_or(LINES, |lines| lines as usize).min(MOST_LINES);
    servers.log(server, count).await
}

impl<'a> ServerRequest<'a> {
    pub(crate) fn new(
        servers: &'a Arc<McpServers>,
        id: AgentId,
        caller: &'a Connected,
        trace: Option<&'a SpanContext>,
    ) -> Reply<Self> {
        let agent = servers.agent(&id);
        let agent = agent.ok_or_else(|| ErrorShape::unavailable("the agent no longer exists"))?;
        Ok(Self { servers, id, agent, caller, trace })
    }

    pub(crate) fn agent_id(&self) -> &AgentId {
        &self.id
    }

    /// Fails if `server` is not available, and reports one that was disconnected as such.
    fn check(&self, server: Option<&str>) -> Reply<()> {
        if let Some(name) = server {
            self.servers.server(&self.id, name)?;
        }
        Ok(())
    }

    pub(crate) fn servers(&self) -> ServersResult {
        lists::servers(&self.agent, &self.servers.statuses_of(&self.id, &self.agent))
    }

    pub(crate) fn status(&self, server: &str) -> Reply<Box<RawValue>> {
        raw_status(&self.servers.status(&self.id, server)?)
    }

    /// The servers to list from.
    async fn gathered(&self, params: &ListParams) -> Reply<GatheredServers> {
        let server = params.server.as_deref();
        self.check(server)?;
        // Servers that start on use are started for the listing, and waited for.
        let patience = match self.servers.fleet.starts_on_use() {
            true => WaitFor::All,
            false => WaitFor::AtMost(LISTS_WAIT),
        };
        Ok(gather(&self.agent, server, patience, |it| it.is_lazy()).await?)
    }

    pub(crate) async fn tools(&self, params: &ListParams) -> Reply<ToolsResult> {
        let wanted = ToolsWanted {
            schema: params.schema.unwrap_or(false),
            raw: params.raw.unwrap_or(false),
        };
        let server = params.server.as_deref();
        if let Some(name) = &params.tool {
            self.check(server)?;
            let tool = find(&self.agent, server, name).await?;
            return Ok(lists::one_tool(&tool, wanted));
        }
        Ok(lists::tools(&self.agent, &self.gathered(params).await?, wanted))
    }

    pub(crate) async fn resources(&self, params: &ListParams) -> Reply<ResourcesResult> {
        Ok(lists::resources(&self.gathered(params).await?))
    }

    pub(crate) async fn prompts(&self, params: &ListParams) -> Reply<PromptsResult> {
        Ok(lists::prompts(&self.gathered(params).await?))
    }

    pub(crate) async fn call(&self, mut params: CallParams) -> Reply<Outcome> {
        if let Some(args) = &params.args
            && !args.get().starts_with('{')
        {
            return Err(ErrorShape::invalid("`args` must be an object"));
        }
        if params.progress_token.as_ref().is_some_and(|token| token.len() > MAX_TOKEN) {
            return Err(ErrorShape::invalid("`progressToken` is too long"));
        }
        if params.session_key.is_none() && self.caller.can_be_asked() {
            // A session of its own for the call, so that elicitations of the server reach the caller.
            let key = self.caller.own_session();
            self.caller.follow(&key);
            params.session_key = Some(key);
        }
        let (watcher, progress) = ProgressWatcher::channel();
        let who = self.caller.name();
        let watcher = params.progress_token.as_ref().map(|_| &watcher);
        let caller = DirectCaller { watcher, ..self.direct_caller(&who) };
        let calling = call::call(&self.agent, &params, caller);
        let called = match &params.progress_token {
            Some(token) => with_progress(self.caller, token, progress, calling).await,
            None => calling.await,
        };
        called.map_err(|problem| {
            let off = || self.servers.connections.lock().off_server_of(&self.id, &params.tool);
            let server = params.server.clone().or_else(off);
            self.refused(server.as_deref(), problem)
        })
    }

    pub(crate) async fn read(&self, params: &ReadParams) -> Reply<Outcome> {
        let who = self.caller.name();
        let read = call::read(&self.agent, params, self.direct_caller(&who)).await;
        read.map_err(|problem| self.refused(Some(&params.server), problem))
    }

    pub(crate) async fn prompt(&self, params: &PromptParams) -> Reply<Outcome> {
        let who = self.caller.name();
        let prompt = call::prompt(&self.agent, params, self.direct_caller(&who)).await;
        prompt.map_err(|problem| self.refused(Some(&params.server), problem))
    }

    pub(crate) async fn complete(&self, params: &CompleteParams) -> Reply<CompleteResult> {
        let completed = complete(&self.agent, params).await;
        completed.map_err(|problem| self.refused(params.server.as_deref(), problem))
    }

    /// Why a call was not made. A missing server is detected inside the call, so that it is in the
    /// audit log.
    fn refused(&self, server: Option<&str>, problem: Problem) -> ErrorShape {
        match server {
            Some(server) => self.servers.explained(&self.id, server, problem).into(),
            None => problem.into(),
        }
    }

    fn direct_caller<'c>(&'c self, who: &'c str) -> DirectCaller<'c> {
        DirectCaller { who, decides: self.caller.decides(), watcher: None, trace: self.trace }
    }

    pub(crate) async fn connect(&self, params: ConnectParams) -> Reply<ServerResult> {
        let ConnectParams { agent_id: _, url, server } = params;
        let status = match (url, server) {
            (Some(url), name) => self.servers.connect(&self.id, &url, name.as_deref()).await?,
            (None, Some(name)) => self.servers.connect_again(&self.id, &name).await?,
            (None, None) => return Err(ErrorShape::invalid("`url` or `server` is required")),
        };
        let ok = status.state == ServerState::Ready;
        Ok(ServerResult { ok, server: raw_status(&status)? })
    }

    pub(crate) async fn disconnect(&self, server: &str) -> Reply<ServerResult> {
        let status = self.servers.disconnect(&self.id, server).await?;
        Ok(ServerResult { ok: true, server: raw_status(&status)? })
    }

    pub(crate) async fn auth(&self, params: AuthParams) -> Reply<AuthResult> {
        let AuthParams { agent_id: _, server, action, code, scopes, issuer } = params;
        let request = match (action.unwrap_or(AuthAction::Login), code) {
            (AuthAction::Status, _) => AuthRequest::Status,
            (AuthAction::Logout, _) => AuthRequest::Logout,
            (AuthAction::Login, Some(code)) => AuthRequest::Finish(code.into()),
            (AuthAction::Login, None) => {
                AuthRequest::Begin { scopes: scopes.into_iter().collect(), issuer }
            }
        };
        Ok(self.servers.auth(&self.id, &server, request).await?)
    }

    pub(crate) async fn refresh(&self, server: Option<&str>) -> Reply<RefreshResult> {
        Ok(self.servers.refresh(&self.id, server).await?)
    }
}
