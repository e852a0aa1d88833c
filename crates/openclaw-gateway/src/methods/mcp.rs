//! MCP servers, their tools, resources and prompts.

use std::sync::Arc;
use std::time::Duration;

use openclaw_mcp::agent::AgentTools;
use openclaw_mcp::server_log::ServerLog;
use openclaw_mcp::status::ServerState;
use openclaw_protocol::mcp::elicitation::{RespondParams, RespondResult};
use openclaw_protocol::mcp::{
    AuthParams, CallParams, ConnectParams, ListParams, LogsParams, LogsResult, PromptParams,
    ReadParams, RefreshParams, ServerParams, ServerResult, ServersParams,
};
use openclaw_protocol::{ErrorShape, Method};
use serde_json::value::to_raw_value;

use super::{Answered, Asked, give};
use crate::agents::InService;
use crate::manage;
use crate::mcp::{self, Gathered, Hand, Patience, ToolsWanted};

/// So many lines of a log are told unless asked otherwise, and at most.
const LINES: usize = 100;
const MOST_LINES: usize = 10_000;
/// How long a list waits for servers that are on their way.
const LISTS_WAIT: Duration = Duration::from_secs(10);

pub(super) async fn answer(asked: &Asked<'_>) -> Answered {
    match asked.method {
        Method::McpServers => servers(asked),
        Method::McpTools => tools(asked).await,
        Method::McpStatus => status(asked),
        Method::McpConnect => connect(asked).await,
        Method::McpDisconnect => disconnect(asked).await,
        Method::McpAuth => auth(asked),
        Method::McpRefresh => refresh(asked).await,
        Method::McpReload => reload(asked).await,
        Method::McpCall => call(asked).await,
        Method::McpResources => resources(asked).await,
        Method::McpRead => read(asked).await,
        Method::McpPrompts => prompts(asked).await,
        Method::McpPrompt => prompt(asked).await,
        Method::McpLogs => logs(asked).await,
        Method::McpElicitationRespond => respond(asked),
        other => Err(ErrorShape::unknown_method(other.name())),
    }
}

/// The agent that is meant, and its servers.
fn of(
    asked: &Asked<'_>,
    id: Option<&str>,
) -> Result<(Arc<InService>, Arc<AgentTools>), ErrorShape> {
    let service = asked.agent(id)?;
    let tools = asked.gateway.fleet.agent(service.config.id.as_str());
    let tools = tools.ok_or_else(|| ErrorShape::unavailable("the agent has just gone"))?;
    Ok((service, tools))
}

/// The same, for somebody who wants to use a server: one that was disconnected from is told as such.
fn using(
    asked: &Asked<'_>,
    id: Option<&str>,
    server: Option<&str>,
) -> Result<Arc<AgentTools>, ErrorShape> {
    let (service, agent) = of(asked, id)?;
    if let Some(name) = server {
        asked.gateway.server_of(&service.config.id, name)?;
    }
    Ok(agent)
}

fn servers(asked: &Asked<'_>) -> Answered {
    let ServersParams { agent_id } = asked.params()?;
    let (service, agent) = of(asked, agent_id.as_deref())?;
    let statuses = manage::statuses(asked.gateway, &service, &agent);
    give(&mcp::servers_as(&agent, &statuses))
}

fn status(asked: &Asked<'_>) -> Answered {
    let ServerParams { agent_id, server } = asked.params()?;
    let (service, _) = of(asked, agent_id.as_deref())?;
    give(&manage::status(asked.gateway, &service, &server)?)
}

/// The servers that a list is wanted of.
async fn gathered(
    asked: &Asked<'_>,
    params: &ListParams,
) -> Result<(Arc<AgentTools>, Gathered), ErrorShape> {
    let agent = using(asked, params.agent_id.as_deref(), params.server.as_deref())?;
    let patience = Patience::AtMost(LISTS_WAIT);
    let gathered =
        mcp::gather(&agent, params.server.as_deref(), patience, |it| it.config().treatment.lazy)
            .await?;
    Ok((agent, gathered))
}

async fn tools(asked: &Asked<'_>) -> Answered {
    let params: ListParams = asked.params()?;
    let wanted =
        ToolsWanted { schema: params.schema.unwrap_or(false), raw: params.raw.unwrap_or(false) };
    if let Some(name) = &params.tool {
        let agent = using(asked, params.agent_id.as_deref(), params.server.as_deref())?;
        let tool = mcp::find(&agent, params.server.as_deref(), name).await?;
        return give(&mcp::one_tool(&agent, &tool, wanted));
    }
    let (agent, gathered) = gathered(asked, &params).await?;
    give(&mcp::tools(&agent, &gathered, wanted))
}

async fn resources(asked: &Asked<'_>) -> Answered {
    let (_, gathered) = gathered(asked, &asked.params()?).await?;
    give(&mcp::resources(&gathered))
}

async fn prompts(asked: &Asked<'_>) -> Answered {
    let (_, gathered) = gathered(asked, &asked.params()?).await?;
    give(&mcp::prompts(&gathered))
}

async fn call(asked: &Asked<'_>) -> Answered {
    let mut params: CallParams = asked.params()?;
    if let Some(key) = &mut params.session_key {
        *key = asked.session(key, params.agent_id.as_deref())?.to_string();
    }
    if let Some(args) = &params.args
        && !args.get().starts_with('{')
    {
        return Err(ErrorShape::invalid("`args` is an object"));
    }
    let agent = using(asked, params.agent_id.as_deref(), params.server.as_deref())?;
    let who = asked.caller.name();
    let hand = Hand { who: &who, decides: asked.caller.decides() };
    give(&mcp::call(&agent, &params, hand).await?)
}

async fn read(asked: &Asked<'_>) -> Answered {
    let params: ReadParams = asked.params()?;
    let agent = using(asked, params.agent_id.as_deref(), Some(&params.server))?;
    give(&mcp::read(&agent, &params, &asked.caller.name()).await?)
}

async fn prompt(asked: &Asked<'_>) -> Answered {
    let params: PromptParams = asked.params()?;
    let agent = using(asked, params.agent_id.as_deref(), Some(&params.server))?;
    give(&mcp::prompt(&agent, &params, &asked.caller.name()).await?)
}

fn respond(asked: &Asked<'_>) -> Answered {
    let params: RespondParams = asked.params()?;
    asked.gateway.elicitations.respond(&params)?;
    give(&RespondResult { ok: true, id: params.id, action: params.action })
}

async fn connect(asked: &Asked<'_>) -> Answered {
    let ConnectParams { agent_id, url, server } = asked.params()?;
    let (service, _) = of(asked, agent_id.as_deref())?;
    let status = match (url, server) {
        (Some(url), name) => asked.gateway.connect(&service, &url, name.as_deref()).await?,
        (None, Some(name)) => manage::connect_again(asked.gateway, &service, &name).await?,
        (None, None) => return Err(ErrorShape::invalid("`url` or `server` must be given")),
    };
    let ok = status.state == ServerState::Ready;
    give(&ServerResult { ok, server: to_raw_value(&status).unwrap_or_default() })
}

async fn disconnect(asked: &Asked<'_>) -> Answered {
    let ServerParams { agent_id, server } = asked.params()?;
    let (service, _) = of(asked, agent_id.as_deref())?;
    let status = asked.gateway.disconnect(&service, &server).await?;
    give(&ServerResult { ok: true, server: to_raw_value(&status).unwrap_or_default() })
}

fn auth(asked: &Asked<'_>) -> Answered {
    let AuthParams { agent_id, server, action } = asked.params()?;
    let (service, _) = of(asked, agent_id.as_deref())?;
    give(&manage::auth(asked.gateway, &service, &server, action)?)
}

async fn refresh(asked: &Asked<'_>) -> Answered {
    let RefreshParams { agent_id, server } = asked.params()?;
    let (service, _) = of(asked, agent_id.as_deref())?;
    give(&manage::refresh(asked.gateway, &service, server.as_deref()).await?)
}

async fn reload(asked: &Asked<'_>) -> Answered {
    let ServersParams { agent_id } = asked.params()?;
    let (service, _) = of(asked, agent_id.as_deref())?;
    give(&asked.gateway.reload_servers(&service.config.id).await)
}

async fn logs(asked: &Asked<'_>) -> Answered {
    let LogsParams { server, lines } = asked.params()?;
    let count = lines.map_or(LINES, |lines| lines as usize).min(MOST_LINES);
    let Some(folder) = asked.gateway.logs.clone() else {
        return Err(ErrorShape::unavailable("this gateway keeps no logs"));
    };
    let name = server.clone();
    // One at least: whether there is a log must be known.
    let read = move || ServerLog::tail(&folder, &name, count.max(1));
    let read = tokio::task::spawn_blocking(read).await;
    let lines = match read {
        Ok(Ok(lines)) => lines,
        Ok(Err(error)) => {
            let message = format!("the log of `{server}` cannot be read: {error}");
            return Err(ErrorShape::unavailable(message));
        }
        Err(_) => return Err(ErrorShape::unavailable("the log cannot be read")),
    };
    if lines.is_empty() {
        // Of a server that was removed the log may still be there.
        mcp::known_anywhere(&asked.gateway.fleet, &asked.gateway.config().config, &server)?;
    }
    give(&LogsResult { server, lines: if count == 0 { Vec::new() } else { lines } })
}
