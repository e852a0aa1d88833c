//! `openclaw config show`: the effective settings, and where each value comes from.

use comfy_table::{Attribute, Cell};
use openclaw_config::{AgentConfig, Config, ServerName, Setting, SettingOrigin};
use serde_json::{Map, Value, json};

use super::{find_agent, load_config};
use crate::edge::Edge;
use crate::error::CommandResult;
use crate::exit::Exit;
use crate::output::{Output, printable};
use openclaw_terminal::style::{BAD, FAINT, STRONG};

/// Below this width three columns do not fit.
const NARROW: u16 = 80;

pub(crate) fn show(agent: Option<&str>, edge: &Edge, output: &mut Output) -> CommandResult {
    let config = &load_config(edge, output)?.config;
    let agents: Vec<&AgentConfig> = match agent {
        None => config.agents.iter().collect(),
        Some(id) => vec![find_agent(config, Some(id))?],
    };
    if output.json {
        let agents: Vec<Value> = agents.iter().map(|agent| agent_json(config, agent)).collect();
        output.value(&json!({
            "file": config.file.as_ref().map(|file| file.to_string_lossy()),
            "settings": settings_json(&config.origins),
            "agents": agents,
        }));
        return Ok(Exit::Ok);
    }
    let file = config.file.as_ref().map(|file| file.display().to_string());
    output.line(format_args!(
        "{STRONG}{}{STRONG:#}",
        file.as_deref().unwrap_or("built-in default (no file)")
    ));
    section(&config.origins, file.as_deref(), output);
    for agent in agents {
        show_agent(config, agent, file.as_deref(), output);
    }
    Ok(Exit::Ok)
}

fn show_agent(config: &Config, agent: &AgentConfig, file: Option<&str>, output: &mut Output) {
    let is_default = config.agents.first().is_some_and(|first| first.id == agent.id);
    let remark = if is_default { " (default)" } else { "" };
    output.line(format_args!("\n{STRONG}agent {}{STRONG:#}{remark}", agent.id));
    if !agent.mcp.enabled {
        section(&agent.origins, file, output);
        output.line("   MCP is disabled");
        return;
    }
    section(&[&agent.origins[..], &agent.mcp.origins.settings].concat(), file, output);
    for (name, settings) in &agent.mcp.origins.servers {
        let remark = match held_back(agent, name) {
            Some(why) => format!("  {BAD}cannot start: {why}{BAD:#}"),
            None => String::new(),
        };
        output.line(format_args!("\n  {STRONG}server {name}{STRONG:#}{remark}"));
        section(settings, file, output);
    }
}

fn held_back(agent: &AgentConfig, name: &ServerName) -> Option<String> {
    let why = agent.mcp.held_back.get(name)?;
    let verb = if why.unset_variables.len() == 1 { "is" } else { "are" };
    Some(format!("{} {verb} not set", why.unset_variables.join(", ")))
}

/// Writes settings in three columns: key, value, origin. On a narrow terminal, one line each.
pub(super) fn section(settings: &[Setting], file: Option<&str>, output: &mut Output) {
    let rows = settings.iter().map(|setting| {
        let value = match &setting.value {
            Value::String(text) => text.clone(),
            // With spaces, so that a long list is wrapped between two elements.
            Value::Array(list) => {
                let list: Vec<String> = list.iter().map(Value::to_string).collect();
                format!("[{}]", list.join(", "))
            }
            other => other.to_string(),
        };
        let origin = origin(&setting.origin, &setting.key, file);
        [setting.key.clone(), value, origin].map(|text| printable(&text).into_owned())
    });
    if output.width() < NARROW {
        for [key, value, origin] in rows {
            output.line(format_args!("   {key} = {value}  {FAINT}({origin}){FAINT:#}"));
        }
        return;
    }
    output.table(rows.map(|[key, value, origin]| {
        let origin = Cell::new(origin).add_attribute(Attribute::Dim);
        vec![Cell::new(format!("  {key}")), Cell::new(value), origin]
    }));
}

/// Formats the section and the line of a setting, without the key, which has its own column.
fn origin(origin: &SettingOrigin, key: &str, file: Option<&str>) -> String {
    let (location, path) = match origin {
        SettingOrigin::Default => return "default".to_owned(),
        SettingOrigin::Inferred { from } => return format!("derived from {from}"),
        SettingOrigin::File { location, path } => (location, path),
    };
    let place = path.find("mcp.servers").map(|at| &path[..at + "mcp".len()]);
    let place = place.or_else(|| path.split_once(".servers").map(|(place, _)| place));
    let place = place.unwrap_or(path);
    let place = place.strip_suffix(key).map_or(place, |place| place.trim_end_matches('.'));
    let line = match file {
        Some(file) if file == location.file => format!("line {}", location.line),
        _ => format!("{}:{}", location.file, location.line),
    };
    if place.is_empty() { line } else { format!("{place}, {line}") }
}

fn agent_json(config: &Config, agent: &AgentConfig) -> Value {
    let servers: Map<String, Value> = agent
        .mcp
        .origins
        .servers
        .iter()
        .map(|(name, settings)| {
            let unset = agent.mcp.held_back.get(name).map(|why| &why.unset_variables);
            let server = json!({ "settings": settings_json(settings), "unsetVariables": unset });
            (name.to_string(), server)
        })
        .collect();
    json!({
        "id": agent.id.as_str(),
        "default": config.agents.first().is_some_and(|first| first.id == agent.id),
        "settings": settings_json(&agent.origins),
        "mcp": {
            "enabled": agent.mcp.enabled,
            "settings": settings_json(&agent.mcp.origins.settings),
            "servers": servers,
        },
    })
}

pub(super) fn settings_json(settings: &[Setting]) -> Value {
    let by_key = settings.iter().map(|setting| {
        (setting.key.clone(), json!({ "value": setting.value, "origin": setting.origin }))
    });
    Value::Object(by_key.collect())
}
