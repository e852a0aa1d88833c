//! Methods for MCP servers, their tools, resources and prompts.

use std::sync::Arc;
use std::time::Duration;

use openclaw_config::AgentId;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp::server::status::{ServerState, ServerStatus};
use openclaw_mcp_client::log::ServerLog;
use openclaw_mcp_client::wire::{Progress, ProgressWatcher};
use openclaw_protocol::mcp::elicitation::{self, RespondParams, RespondResult};
use openclaw_protocol::mcp::{
    AuthAction, AuthParams, AuthResult, CallParams, CompleteParams, CompleteResult, ConnectParams,
    ListParams, LogsParams, LogsResult, Outcome, ProgressEvent, PromptParams, PromptsResult,
    ReadParams, RefreshParams, RefreshResult, ReloadResult, ResourcesResult, ServerParams,
    ServerResult, ServersParams, ServersResult, ToolsResult,
};
use openclaw_protocol::{ErrorShape, names};
use serde_json::value::{RawValue, to_raw_value};

use tokio::sync::watch;
use tokio::time::sleep;

use super::{Reply, RequestContext};
use crate::callers::Connected;
use crate::manage::{self, AuthOrder};
use crate::mcp::{self, DirectCaller, GatheredServers, Problem, ToolsWanted, WaitFor};

/// Default and maximum number of log lines.
const LINES: usize = 100;
const MOST_LINES: usize = 10_000;
/// Minimum interval between progress events.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);
/// Maximum length of a progress token, in bytes.
pub(super) const MAX_TOKEN: usize = 256;
/// How long a listing waits for servers that are connecting.
const LISTS_WAIT: Duration = Duration::from_secs(10);

/// A server's status as JSON; the protocol passes it on as the engine writes it.
fn raw_status(status: &ServerStatus) -> Reply<Box<RawValue>> {
    to_raw_value(status).map_err(|error| ErrorShape::unavailable(error.to_string()))
}

/// The requested agent and its servers. Does not set up the rest of the agent.
fn of(asked: &RequestContext<'_>, id: Option<&str>) -> Reply<(AgentId, Arc<AgentTools>)> {
    let id = asked.agent_id(id)?;
    let tools = asked.gateway.fleet.agent(id.as_str());
    let tools = tools.ok_or_else(|| ErrorShape::unavailable("the agent no longer exists"))?;
    Ok((id, tools))
}

/// Like [`of`], but fails if `server` is not available, and reports one that was disconnected as
/// such.
fn using(
    asked: &RequestContext<'_>,
    id: Option<&str>,
    server: Option<&str>,
) -> Reply<Arc<AgentTools>> {
    let (id, agent) = of(asked, id)?;
    if let Some(name) = server {
        asked.gateway.server_of(&id, name)?;
    }
    Ok(agent)
}

pub(super) fn servers(asked: &RequestContext<'_>, params: ServersParams) -> Reply<ServersResult> {
    let ServersParams { agent_id } = params;
    let (id, agent) = of(asked, agent_id.as_deref())?;
    let statuses = manage::statuses(asked.gateway, &id, &agent);
    Ok(mcp::servers_as(&agent, &statuses))
}

pub(super) fn status(asked: &RequestContext<'_>, params: ServerParams) -> Reply<Box<RawValue>> {
    let ServerParams { agent_id, server } = params;
    let (id, _) = of(asked, agent_id.as_deref())?;
    raw_status(&manage::status(asked.gateway, &id, &server)?)
}

/// The servers to list from.
async fn gathered(
    asked: &RequestContext<'_>,
    params: &ListParams,
) -> Reply<(Arc<AgentTools>, GatheredServers)> {
    let agent = using(asked, params.agent_id.as_deref(), params.server.as_deref())?;
    // Servers that start on use are started for the listing, and waited for.
    let patience = match asked.gateway.fleet.starts_on_use() {
        true => WaitFor::All,
        false => WaitFor::AtMost(LISTS_WAIT),
    };
    let gathered =
        mcp::gather(&agent, params.server.as_deref(), patience, |it| it.is_lazy()).await?;
    Ok((agent, gathered))
}

pub(super) async fn tools(asked: &RequestContext<'_>, params: ListParams) -> Reply<ToolsResult> {
    let wanted =
        ToolsWanted { schema: params.schema.unwrap_or(false), raw: params.raw.unwrap_or(false) };
    if let Some(name) = &params.tool {
        let agent = using(asked, params.agent_id.as_deref(), params.server.as_deref())?;
        let tool = mcp::find(&agent, params.server.as_deref(), name).await?;
        return Ok(mcp::one_tool(&tool, wanted));
    }
    let (agent, gathered) = gathered(asked, &params).await?;
    Ok(mcp::tools(&agent, &gathered, wanted))
}

pub(super) async fn resources(
    asked: &RequestContext<'_>,
    params: ListParams,
) -> Reply<ResourcesResult> {
    let (_, gathered) = gathered(asked, &params).await?;
    Ok(mcp::resources(&gathered))
}

pub(super) async fn prompts(
    asked: &RequestContext<'_>,
    params: ListParams,
) -> Reply<PromptsResult> {
    let (_, gathered) = gathered(asked, &params).await?;
    Ok(mcp::prompts(&gathered))
}

pub(super) async fn call(asked: &RequestContext<'_>, mut params: CallParams) -> Reply<Outcome> {
    if let Some(key) = &mut params.session_key {
        *key = asked.session(key, params.agent_id.as_deref())?.to_string();
    }
    if let Some(args) = &params.args
        && !args.get().starts_with('{')
    {
        return Err(ErrorShape::invalid("`args` must be an object"));
    }
    if params.progress_token.as_ref().is_some_and(|token| token.len() > MAX_TOKEN) {
        return Err(ErrorShape::invalid("`progressToken` is too long"));
    }
    let (id, agent) = of(asked, params.agent_id.as_deref())?;
    if params.session_key.is_none() && asked.caller.can_be_asked() {
        // A session of its own for the call, so that elicitations of the server reach the caller.
        let key = asked.caller.own_session();
        asked.caller.follow(&key);
        params.session_key = Some(key);
    }
    let (watcher, progress) = ProgressWatcher::channel();
    let who = asked.caller.name();
    let watcher = params.progress_token.as_ref().map(|_| &watcher);
    let hand = DirectCaller { watcher, ..hand(asked, &who) };
    let calling = mcp::call(&agent, &params, hand);
    let called = match &params.progress_token {
        Some(token) => telling(asked.caller, token, progress, calling).await,
        None => calling.await,
    };
    called.map_err(|problem| {
        let off = || asked.gateway.connections.off_server_of(&id, &params.tool);
        let server = params.server.clone().or_else(off);
        refused(asked, &id, server.as_deref(), problem)
    })
}

/// Waits for a call, and sends its latest progress to the caller a few times a second.
pub(super) async fn telling<T>(
    caller: &Connected,
    token: &str,
    mut progress: watch::Receiver<Option<Progress>>,
    calling: impl Future<Output = T>,
) -> T {
    let tell = async {
        while progress.changed().await.is_ok() {
            let event = progress.borrow_and_update().as_ref().map(|it| ProgressEvent {
                token: token.to_owned(),
                done: it.done,
                percent: it.percent(),
                message: it.message.clone(),
            });
            if let Some(event) = event {
                caller.tell(names::MCP_PROGRESS, &event);
            }
            sleep(PROGRESS_EVERY).await;
        }
        std::future::pending().await
    };
    tokio::select! {
        biased;
        called = calling => called,
        never = tell => never,
    }
}

pub(super) async fn read(asked: &RequestContext<'_>, params: ReadParams) -> Reply<Outcome> {
    let (id, agent) = of(asked, params.agent_id.as_deref())?;
    let who = asked.caller.name();
    let read = mcp::read(&agent, &params, hand(asked, &who)).await;
    read.map_err(|problem| refused(asked, &id, Some(&params.server), problem))
}

pub(super) async fn prompt(asked: &RequestContext<'_>, params: PromptParams) -> Reply<Outcome> {
    let (id, agent) = of(asked, params.agent_id.as_deref())?;
    let who = asked.caller.name();
    let prompt = mcp::prompt(&agent, &params, hand(asked, &who)).await;
    prompt.map_err(|problem| refused(asked, &id, Some(&params.server), problem))
}

pub(super) async fn complete(
    asked: &RequestContext<'_>,
    params: CompleteParams,
) -> Reply<CompleteResult> {
    let (id, agent) = of(asked, params.agent_id.as_deref())?;
    let completed = mcp::complete(&agent, &params).await;
    completed.map_err(|problem| refused(asked, &id, params.server.as_deref(), problem))
}

/// Why a call was not made. A missing server is detected inside the call, so that it is in the
/// audit log.
fn refused(
    asked: &RequestContext<'_>,
    agent: &AgentId,
    server: Option<&str>,
    problem: Problem,
) -> ErrorShape {
    match server {
        Some(server) => asked.gateway.explained(agent, server, problem).into(),
        None => problem.into(),
    }
}

fn hand<'a>(asked: &'a RequestContext<'_>, who: &'a str) -> DirectCaller<'a> {
    let trace = asked.trace.as_ref();
    DirectCaller { who, decides: asked.caller.decides(), watcher: None, trace }
}

/// The pending questions that the caller may answer.
pub(super) fn elicitations(asked: &RequestContext<'_>) -> elicitation::ListResult {
    let mut elicitations = asked.gateway.elicitations.list();
    elicitations.retain(|it| asked.caller.answers_for(&it.session_keys));
    elicitations.sort_by_key(|it| it.created_at_ms);
    elicitation::ListResult { elicitations }
}

pub(super) fn respond(asked: &RequestContext<'_>, params: RespondParams) -> Reply<RespondResult> {
    asked.gateway.elicitations.respond(&params)?;
    Ok(RespondResult { ok: true, id: params.id, action: params.action })
}

pub(super) async fn connect(
    asked: &RequestContext<'_>,
    params: ConnectParams,
) -> Reply<ServerResult> {
    let ConnectParams { agent_id, url, server } = params;
    let (id, _) = of(asked, agent_id.as_deref())?;
    let status = match (url, server) {
        (Some(url), name) => asked.gateway.connect(&id, &url, name.as_deref()).await?,
        (None, Some(name)) => manage::connect_again(asked.gateway, &id, &name).await?,
        (None, None) => return Err(ErrorShape::invalid("`url` or `server` is required")),
    };
    let ok = status.state == ServerState::Ready;
    Ok(ServerResult { ok, server: raw_status(&status)? })
}

pub(super) async fn disconnect(
    asked: &RequestContext<'_>,
    params: ServerParams,
) -> Reply<ServerResult> {
    let ServerParams { agent_id, server } = params;
    let (id, _) = of(asked, agent_id.as_deref())?;
    let status = asked.gateway.disconnect(&id, &server).await?;
    Ok(ServerResult { ok: true, server: raw_status(&status)? })
}

pub(super) async fn auth(asked: &RequestContext<'_>, params: AuthParams) -> Reply<AuthResult> {
    let AuthParams { agent_id, server, action, code, scopes, issuer } = params;
    let (id, _) = of(asked, agent_id.as_deref())?;
    let order = match (action.unwrap_or(AuthAction::Login), code) {
        (AuthAction::Status, _) => AuthOrder::Status,
        (AuthAction::Logout, _) => AuthOrder::Logout,
        (AuthAction::Login, Some(code)) => AuthOrder::Finish(code.into()),
        (AuthAction::Login, None) => {
            AuthOrder::Begin { scopes: scopes.into_iter().collect(), issuer }
        }
    };
    Ok(manage::auth(asked.gateway, &id, &server, order).await?)
}

pub(super) async fn refresh(
    asked: &RequestContext<'_>,
    params: RefreshParams,
) -> Reply<RefreshResult> {
    let RefreshParams { agent_id, server } = params;
    let (id, _) = of(asked, agent_id.as_deref())?;
    Ok(manage::refresh(asked.gateway, &id, server.as_deref()).await?)
}

pub(super) async fn reload(
    asked: &RequestContext<'_>,
    params: ServersParams,
) -> Reply<ReloadResult> {
    let ServersParams { agent_id } = params;
    let (id, _) = of(asked, agent_id.as_deref())?;
    Ok(asked.gateway.reload_servers(&id).await)
}

pub(super) async fn logs(asked: &RequestContext<'_>, params: LogsParams) -> Reply<LogsResult> {
    let LogsParams { server, lines } = params;
    let count = lines.map_or(LINES, |lines| lines as usize).min(MOST_LINES);
    let Some(folder) = asked.gateway.logs.clone() else {
        return Err(ErrorShape::unavailable("this gateway does not keep server logs"));
    };
    let name = server.clone();
    // At least one line, to find out whether there is a log.
    let read = move || ServerLog::tail(&folder, &name, count.max(1));
    let read = tokio::task::spawn_blocking(read).await;
    let lines = match read {
        Ok(Ok(lines)) => lines,
        Ok(Err(error)) => {
            let message = format!("cannot read the log of `{server}`: {error}");
            return Err(ErrorShape::unavailable(message));
        }
        Err(_) => return Err(ErrorShape::unavailable("cannot read the log")),
    };
    if lines.is_empty() {
        // The log of a removed server may still exist.
        mcp::known_anywhere(&asked.gateway.fleet, &asked.gateway.config().config, &server)?;
    }
    Ok(LogsResult { server, lines: if count == 0 { Vec::new() } else { lines } })
}
