//! Methods for the gateway's status, its agents and their commands.

use openclaw_mcp::server::status::ServerStatus;
use openclaw_protocol::agents::{
    Agent, AgentModel, CommandsParams, CommandsResult, IdentityParams, IdentityResult, ListParams,
    ListResult, MetadataResult, Scope,
};
use openclaw_protocol::connect::PresenceEntry;
use openclaw_protocol::health::{StatusParams, StatusResult};
use openclaw_protocol::keys;
use openclaw_protocol::models::{self, ModelChoice};
use serde_json::json;
use serde_json::value::to_raw_value;

use super::{Reply, RequestContext};
use crate::commands;
use crate::gateway::now_ms;
use crate::manage;

pub(super) async fn status(asked: &RequestContext<'_>, _: StatusParams) -> Reply<StatusResult> {
    let gateway = asked.gateway;
    let active = gateway.active.load_full();
    let mut servers: Vec<_> =
        gateway.fleet.servers().iter().map(|server| server.status()).collect();
    let mut agents = Vec::new();
    for (id, service) in active.agents() {
        let model = service.models.in_use().await;
        let agent = &service.config.id;
        let tools = gateway.fleet.agent(id);
        let statuses = tools.map(|tools| manage::statuses(gateway, agent, &tools));
        let statuses = statuses.unwrap_or_default();
        let ready = statuses.iter().filter(|status| status.state.name() == "ready").count();
        agents.push(json!({
            "id": id,
            "model": model.name,
            "modelOrigin": model.origin.words(),
            "fallbacks": model.fallbacks,
            "workspace": service.workspace,
            "servers": statuses.len(),
            "serversReady": ready,
        }));
        // The fleet does not have those that were disconnected, unless another agent uses them.
        for status in statuses {
            let is_known = servers.iter().any(|it: &ServerStatus| it.name == status.name);
            if !is_known && gateway.connections.is_off(agent, &status.name) {
                servers.push(status);
            }
        }
    }
    let uptime = u64::try_from(gateway.started.elapsed().as_millis()).ok();
    Ok(StatusResult {
        runtime_version: Some(gateway.version.clone()),
        pid: Some(std::process::id()),
        uptime_ms: uptime,
        connections: Some(gateway.callers.count() as u64),
        agents: to_raw_value(&agents).ok(),
        sessions: to_raw_value(&json!({ "active": gateway.runs.count(), "notes": gateway.notes }))
            .ok(),
        mcp: to_raw_value(&json!({ "servers": servers })).ok(),
    })
}

pub(super) async fn agents(
    asked: &RequestContext<'_>,
    ListParams {}: ListParams,
) -> Reply<ListResult> {
    let active = asked.gateway.active.load_full();
    let mut agents = Vec::new();
    for agent in &active.config.agents {
        let Some(service) = active.agent(agent.id.as_str()) else { continue };
        let model = service.models.in_use().await;
        agents.push(Agent {
            id: agent.id.to_string(),
            name: None,
            workspace: service.workspace.to_str().map(ToOwned::to_owned),
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
pub(super) fn presence(asked: &RequestContext<'_>) -> Vec<PresenceEntry> {
    let gateway = asked.gateway;
    let own = PresenceEntry {
        version: Some(gateway.version.clone()),
        platform: Some(std::env::consts::OS.to_owned()),
        mode: Some("gateway".to_owned()),
        reason: Some("self".to_owned()),
        text: Some(format!("Gateway {}", gateway.version)),
        ts: now_ms(),
        ..PresenceEntry::default()
    };
    let clients = gateway.callers.all().into_iter().map(|caller| {
        let client = &caller.who.client;
        let mode = serde_json::to_value(client.mode).ok();
        PresenceEntry {
            host: Some(caller.name()),
            version: Some(client.version.clone()),
            platform: Some(client.platform.clone()),
            mode: mode.and_then(|mode| Some(mode.as_str()?.to_owned())),
            reason: Some("connect".to_owned()),
            text: Some(format!("{} {}", caller.name(), client.version)),
            ts: now_ms(),
            roles: Some(vec![caller.who.role.clone()]),
            scopes: Some(caller.who.scopes.clone()),
        }
    });
    std::iter::once(own).chain(clients).collect()
}

/// The configured models of an agent. Whether a provider accepts them is not checked.
pub(crate) async fn models(
    asked: &RequestContext<'_>,
    params: models::ListParams,
) -> Reply<models::ListResult> {
    let service = asked.agent(params.agent_id.as_deref())?;
    let mut names: Vec<&str> = service.models.names().await.collect();
    let other = params.model.as_deref().filter(|model| !names.contains(model));
    if let Some(other) = other
        && service.models.has_provider_of(other).await
    {
        names.push(other);
    }
    let models = names.into_iter().map(|name| {
        let (provider, model) = name.split_once('/').unwrap_or(("openclaw", name));
        ModelChoice {
            id: name.to_owned(),
            name: model.to_owned(),
            provider: provider.to_owned(),
            available: None,
            context_window: service.models.window(name),
        }
    });
    Ok(models::ListResult { models: models.collect() })
}

pub(super) fn commands(
    asked: &RequestContext<'_>,
    params: &CommandsParams,
) -> Reply<CommandsResult> {
    let service = asked.agent(params.agent_id.as_deref())?;
    Ok(CommandsResult { commands: commands::list(asked.gateway, &service) })
}

pub(super) fn identity(
    asked: &RequestContext<'_>,
    params: &IdentityParams,
) -> Reply<IdentityResult> {
    let in_key = params.session_key.as_deref().and_then(keys::agent_of);
    let agent_id = asked.agent_id(params.agent_id.as_deref().or(in_key))?.to_string();
    Ok(IdentityResult { name: agent_id.clone(), agent_id })
}

/// The models and commands of an agent, in one answer.
pub(super) async fn metadata(
    asked: &RequestContext<'_>,
    params: CommandsParams,
) -> Reply<MetadataResult> {
    let commands = commands(asked, &params)?.commands;
    let list = models::ListParams { agent_id: params.agent_id, ..models::ListParams::default() };
    let models = models(asked, list).await?.models;
    Ok(MetadataResult { models, commands })
}
