//! The servers: as the running gateway reports them, or as they are configured.

use std::path::Path;

use openclaw_config::Config;
use openclaw_gateway::mcp::summary;
use openclaw_mcp::fleet::agent::statuses_at_rest;
use openclaw_mcp::server::last_error::LastTrouble;
use openclaw_mcp::server::status::{ServerState, ServerStatus};
use openclaw_mcp::store::memory::Memory;

use crate::commands::check::Check;
use crate::commands::gateway::{GatewayState, duration_words};
use crate::state_files;

pub(super) fn checks(config: &Config, gateway_state: &GatewayState, state: &Path) -> Vec<Check> {
    let mut checks = match gateway_state {
        GatewayState::Running(gateway) => running(&gateway.servers),
        _ => configured(config, &state_files::catalogue(state)),
    };
    for agent in &config.agents {
        for (name, held_back) in &agent.mcp.held_back {
            let unset = held_back.unset_variables.join(", ");
            let advice = "set the variables, or remove them from the server's entry".to_owned();
            let words = format!("{name} cannot start: variables not set: {unset}");
            // Agents share servers.
            if !checks.iter().any(|check| check.what == words) {
                checks.push(Check::bad(words, Some(advice)));
            }
        }
    }
    if checks.is_empty() && config.agents.iter().all(|agent| !agent.mcp.enabled) {
        checks.push(Check::note("disabled: `plugins.entries.mcp-client.enabled` is false"));
    } else if checks.is_empty() {
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
    let catalogue = state_files::catalogue(state);
    for mut status in config.agents.iter().flat_map(|agent| statuses_at_rest(agent, &catalogue)) {
        // A running gateway reports the enabled servers itself.
        let is_enabled = matches!(status.state, ServerState::Idle | ServerState::NeedsAuth);
        let is_its = is_started && is_enabled;
        let is_known = all.iter().any(|it| it.name == status.name && it.target == status.target);
        if !is_its && !is_known {
            // As the checks say: its last start has failed.
            if status.state == ServerState::Idle && status.last_error.is_some() {
                status.state = ServerState::Failed;
            }
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

/// A configured server.
struct Configured<'a> {
    name: &'a str,
    is_enabled: bool,
    /// Why it could not be used when it was last tried.
    trouble: Option<LastTrouble>,
}

fn configured(config: &Config, catalogue: &Path) -> Vec<Check> {
    let mut all: Vec<Configured<'_>> = Vec::new();
    for (name, server) in config.agents.iter().flat_map(|agent| &agent.mcp.servers) {
        let (name, is_enabled) = (name.as_str(), server.enabled);
        let read = || Memory::of(catalogue, name, &server.connection).trouble().read();
        let trouble = is_enabled.then(read).flatten();
        match all.iter_mut().find(|known| known.name == name) {
            Some(known) => {
                known.is_enabled |= is_enabled;
                known.trouble = known.trouble.take().or(trouble);
            }
            None => all.push(Configured { name, is_enabled, trouble }),
        }
    }
    let check = |Configured { name, is_enabled, trouble }: &Configured<'_>| match trouble {
        Some(trouble) => {
            let age = duration_words(u64::try_from(trouble.age().as_millis()).unwrap_or(u64::MAX));
            let words = format!("{name}: failed {age} ago: {}", trouble.error.message);
            Check::bad(words, Some(format!("run `openclaw mcp doctor {name}`")))
        }
        None if *is_enabled => {
            Check::note(format!("{name}: configured; run `openclaw mcp servers` to start it"))
        }
        None => Check::note(format!("{name}: disabled")),
    };
    all.iter().map(check).collect()
}
