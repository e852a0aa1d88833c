//! The servers: as the running gateway reports them, or as they are configured.

use std::path::Path;

use openclaw_config::Config;
use openclaw_gateway::mcp::summary;
use openclaw_mcp::fleet::agent::statuses_at_rest;
use openclaw_mcp::server::status::{ServerState, ServerStatus};

use crate::commands::check::Check;
use crate::commands::gateway::GatewayState;
use crate::commands::link::keep;

pub(super) fn checks(config: &Config, gateway_state: &GatewayState) -> Vec<Check> {
    let mut checks = match gateway_state {
        GatewayState::Running(gateway) => running(&gateway.servers),
        _ => configured(config),
    };
    for agent in &config.agents {
        for (name, held_back) in &agent.mcp.held_back {
            let unset = held_back.unset_variables.join(", ");
            let advice = "set the variables, or remove them from the server's entry".to_owned();
            let words = format!("{name} cannot start: variables not set: {unset}");
            checks.push(Check::bad(words, Some(advice)));
        }
    }
    if checks.is_empty() {
        checks.push(Check::note("none; run `openclaw mcp add` to add one"));
    }
    checks
}

/// Returns the same servers for the table.
pub(super) fn table(
    config: &Config,
    gateway_state: &GatewayState,
    state: &Path,
) -> Vec<ServerStatus> {
    let mut all: Vec<ServerStatus> = Vec::new();
    let mut is_started = false;
    if let GatewayState::Running(gateway) = gateway_state {
        is_started = true;
        all.extend(gateway.servers.iter().cloned());
    }
    let catalogue = keep::catalogue(state);
    for status in config.agents.iter().flat_map(|agent| statuses_at_rest(agent, &catalogue)) {
        // A running gateway reports the enabled servers itself.
        let is_its = is_started && status.state == ServerState::Idle;
        let is_known = all.iter().any(|it| it.name == status.name && it.target == status.target);
        if !is_its && !is_known {
            all.push(status);
        }
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    for status in &mut all {
        if let Some(trouble) = &mut status.last_error {
            let look = || format!("run `openclaw mcp doctor {}`", status.name);
            trouble.hint.get_or_insert_with(look);
        }
    }
    all
}

fn running(servers: &[ServerStatus]) -> Vec<Check> {
    let check = |server: &ServerStatus| {
        let words = format!("{}: {}", server.name, summary(server));
        match server.state {
            ServerState::Ready => Check::good(words),
            ServerState::Connecting => Check::note(words),
            state if state.is_at_rest() => Check::note(words),
            _ => {
                let hint = server.last_error.as_ref().and_then(|trouble| trouble.hint.clone());
                let look = || format!("run `openclaw mcp doctor {}`", server.name);
                Check::bad(words, Some(hint.unwrap_or_else(look)))
            }
        }
    };
    servers.iter().map(check).collect()
}

fn configured(config: &Config) -> Vec<Check> {
    let mut names: Vec<(&str, bool)> = Vec::new();
    for (name, server) in config.agents.iter().flat_map(|agent| &agent.mcp.servers) {
        match names.iter_mut().find(|(known, _)| *known == name.as_str()) {
            Some((_, enabled)) => *enabled |= server.enabled,
            None => names.push((name.as_str(), server.enabled)),
        }
    }
    let check = |(name, enabled): &(&str, bool)| match enabled {
        true => Check::note(format!("{name}: configured; run `openclaw mcp servers` to start it")),
        false => Check::note(format!("{name}: disabled")),
    };
    names.iter().map(check).collect()
}
