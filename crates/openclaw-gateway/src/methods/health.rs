//! Methods for the gateway's status, its agents and their commands.

use openclaw_config::AgentId;
use openclaw_protocol::agents::{
    Agent, AgentModel, CommandsParams, CommandsResult, IdentityParams, IdentityResult, ListParams,
    ListResult, MetadataResult, Scope,
};
use openclaw_protocol::connect::PresenceEntry;
use openclaw_protocol::health::{Health, StatusParams, StatusResult};
use openclaw_protocol::keys;
use openclaw_protocol::models;
use serde_json::json;
use serde_json::value::to_raw_value;

use super::{Reply, RequestContext};
use crate::agents::Agents;
use crate::clock::now_ms;
use crate::commands;

pub(crate) fn health(agents: &Agents) -> Health {
    Health {
        ok: Some(true),
        ts: Some(now_ms()),
        duration_ms: Some(0),
        default_agent_id: Some(agents.active().default_agent().to_owned()),
        config_reload: None,
    }
}

pub(super) async fn status(context: &RequestContext<'_>, _: StatusParams) -> Reply<StatusResult> {
    let services = context.services;
    let active = services.agents.active();
    let mut agents = Vec::new();
    for (id, agent) in active.agents() {
        let model = agent.models.in_use().await;
        let statuses = services.servers.statuses(&agent.config.id);
        let ready = statuses.iter().filter(|status| status.state.name() == "ready").count();
        agents.push(json!({
            "id": id,
            "model": model.name,
            "modelOrigin": model.origin.description(),
            "fallbacks": model.fallbacks,
            "workspace": agent.workspace,
            "servers": statuses.len(),
            "serversReady": ready,
        }));
    }
    let ids: Vec<AgentId> = active.agents().map(|(_, agent)| agent.config.id.clone()).collect();
    let servers = services.servers.all_statuses(&ids);
    let process = &services.process;
    let sessions = json!({ "active": services.runs.count(), "notes": process.notes });
    Ok(StatusResult {
        runtime_version: Some(process.version.clone()),
        pid: Some(std::process::id()),
        uptime_ms: Some(process.uptime_ms()),
        connections: Some(services.callers.count() as u64),
        agents: to_raw_value(&agents).ok(),
        sessions: to_raw_value(&sessions).ok(),
        mcp: to_raw_value(&json!({ "servers": servers })).ok(),
    })
}

pub(super) async fn agents(
    context: &RequestContext<'_>,
    ListParams {}: ListParams,
) -> Reply<ListResult> {
    let active = context.services.agents.active();
    let mut agents = Vec::new();
    for agent in &active.config.agents {
        let Some(runtime) = active.agent(agent.id.as_str()) else { continue };
        let model = runtime.models.in_use().await;
        agents.push(Agent {
            id: agent.id.to_string(),
            name: None,
            workspace: runtime.workspace.to_str().map(ToOwned::to_owned),
            model: Some(AgentModel {
                primary: Some(model.name.clone()),
                fallbacks: (!model.fallbacks.is_empty()).then(|| model.fallbacks.clone()),
            }),
            identity: None,
        });
    }
    let default_id = active.default_agent().to_owned();
    Ok(ListResult { default_id, main_key: keys::MAIN.to_owned(), scope: Scope::PerSender, agents })
}

/// The gateway and the connected clients.
pub(super) fn presence(context: &RequestContext<'_>) -> Vec<PresenceEntry> {
    let process = &context.services.process;
    let own = PresenceEntry {
        version: Some(process.version.clone()),
        platform: Some(std::env::consts::OS.to_owned()),
        mode: Some("gateway".to_owned()),
        reason: Some("self".to_owned()),
        text: Some(format!("Gateway {}", process.version)),
        ts: now_ms(),
        ..PresenceEntry::default()
    };
    let clients = context.services.callers.all().into_iter().map(|caller| {
        let client = &caller.caller().client;
        let mode = serde_json::to_value(client.mode).ok();
        PresenceEntry {
            host: Some(caller.name()),
            version: Some(client.version.clone()),
            platform: Some(client.platform.clone()),
            mode: mode.and_then(|mode| Some(mode.as_str()?.to_owned())),
            reason: Some("connect".to_owned()),
            text: Some(format!("{} {}", caller.name(), client.version)),
            ts: now_ms(),
            roles: Some(vec![caller.caller().role.clone()]),
            scopes: Some(caller.caller().scopes.clone()),
        }
    });
    std::iter::once(own).chain(clients).collect()
}

/// The configured models of an agent. Whether a provider accepts them is not checked.
pub(super) async fn models(
    context: &RequestContext<'_>,
    params: models::ListParams,
) -> Reply<models::ListResult> {
    let agent = context.services.agents.agent(params.agent_id.as_deref())?;
    Ok(models::ListResult { models: agent.models.list(params.model.as_deref()).await })
}

pub(super) fn commands(
    context: &RequestContext<'_>,
    params: &CommandsParams,
) -> Reply<CommandsResult> {
    let agent = context.services.agents.agent(params.agent_id.as_deref())?;
    let servers = context.services.servers.agent(&agent.config.id);
    Ok(CommandsResult { commands: commands::list(servers.as_deref(), &*agent.tools) })
}

pub(super) fn identity(
    context: &RequestContext<'_>,
    params: &IdentityParams,
) -> Reply<IdentityResult> {
    let in_key = params.session_key.as_deref().and_then(keys::agent_of);
    let agent_id = context.services.agents.id(params.agent_id.as_deref().or(in_key))?.to_string();
    Ok(IdentityResult { name: agent_id.clone(), agent_id })
}

/// The models and commands of an agent, in one answer.
pub(super) async fn metadata(
    context: &RequestContext<'_>,
    params: CommandsParams,
) -> Reply<MetadataResult> {
    let commands = commands(context, &params)?.commands;
    let list = models::ListParams { agent_id: params.agent_id, ..models::ListParams::default() };
    let models = models(context, list).await?.models;
    Ok(MetadataResult { models, commands })
}
