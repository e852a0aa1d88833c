//! Methods that return and reload the configuration.

use std::collections::BTreeMap;

use openclaw_protocol::ErrorShape;
use openclaw_protocol::config::{
    GetParams, GetResult, ReloadParams, ReloadResult, StopParams, StopResult,
};
use serde_json::json;
use serde_json::value::to_raw_value;

use super::{Reply, RequestContext, Services};

pub(super) fn get(services: &Services, GetParams {}: GetParams) -> GetResult {
    let active = services.agents.active();
    let config = &active.config;
    // Settings as they may be shown: references instead of secrets.
    let agents: serde_json::Map<String, serde_json::Value> = config
        .agents
        .iter()
        .map(|agent| {
            let servers = agent.mcp.origins.servers.iter();
            let servers: BTreeMap<String, _> =
                servers.map(|(name, settings)| (name.to_string(), settings)).collect();
            let shown = json!({
                "settings": agent.origins,
                "mcp": { "settings": agent.mcp.origins.settings, "servers": servers },
            });
            (agent.id.to_string(), shown)
        })
        .collect();
    let shown = json!({ "settings": config.origins, "agents": agents });
    let file = config.file.as_deref().unwrap_or(services.configuration.file());
    let issues = services.configuration.issues();
    GetResult {
        path: file.display().to_string(),
        exists: config.file.is_some(),
        valid: issues.is_empty(),
        config: to_raw_value(&shown).unwrap_or_default(),
        hash: None,
        issues,
    }
}

pub(super) async fn reload(
    context: &RequestContext<'_>,
    ReloadParams {}: ReloadParams,
) -> ReloadResult {
    context.services.configuration.reload().await
}

/// Has the process that runs the gateway stop it.
pub(super) fn stop(context: &RequestContext<'_>, StopParams {}: StopParams) -> Reply<StopResult> {
    if !context.services.process.is_served {
        return Err(ErrorShape::invalid("this gateway stops with the command that it belongs to"));
    }
    tracing::info!(client = context.caller.name(), "a client stops the gateway");
    context.services.process.stop_requested.cancel();
    Ok(StopResult { ok: true })
}
