//! `openclaw mcp get`: the settings of one server. Nothing is started.

use openclaw_config::{ServerConfig, Setting, SettingOrigin};
use openclaw_gateway::mcp::unknown_server;
use serde_json::json;

use super::place_of;
use crate::cli::GetArgs;
use crate::commands::show::{section, settings_json};
use crate::commands::{LoadedConfig, find_agent, load_config, log_warnings};
use crate::edge::Edge;
use crate::error::CommandResult;
use crate::exit::Exit;
use crate::output::{Output, printable};
use openclaw_terminal::style::{FAINT, STRONG};

pub(super) fn get(args: &GetArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let LoadedConfig { config, report, .. } = load_config(edge, output)?;
    log_warnings(&report);
    let agent = find_agent(&config, args.whose.agent.as_deref())?;
    let name = args.name.as_str();
    let Some(settings) = agent.mcp.origins.servers.get(name) else {
        let known: Vec<&str> = agent.mcp.origins.servers.keys().map(|it| it.as_str()).collect();
        return Err(unknown_server(name, &known).into());
    };
    let server = agent.mcp.servers.get(name);
    let unset = agent.mcp.held_back.get(name).map(|why| why.unset_variables.clone());
    let place = place_of(settings).filter(|_| config.file.is_some());
    // What the file says, and what follows from it; defaults are in `config show`.
    let is_told = |setting: &&Setting| !matches!(setting.origin, SettingOrigin::Default);
    let told: Vec<Setting> = settings.iter().filter(is_told).cloned().collect();
    if output.json {
        output.value(&json!({
            "name": name,
            "place": place,
            "enabled": server.is_none_or(|server| server.enabled),
            "target": server.map(ServerConfig::gist),
            "unsetVariables": unset.unwrap_or_default(),
            "settings": settings_json(&told),
        }));
        return Ok(Exit::Ok);
    }
    let place = place.unwrap_or_else(|| "built in".to_owned());
    output.line(format_args!("{STRONG}{name}{STRONG:#}  {FAINT}{}{FAINT:#}", printable(&place)));
    let file = config.file.as_ref().map(|file| file.display().to_string());
    section(&told, file.as_deref(), output);
    for variable in unset.unwrap_or_default() {
        output.warning(&format!("cannot start: {variable} is not set"));
    }
    Ok(Exit::Ok)
}
