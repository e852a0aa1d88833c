//! `openclaw mcp list`: the configured servers. Nothing is started.

use comfy_table::{Attribute, Cell};
use openclaw_config::{AgentConfig, Config, HttpFlavour, ServerConfig, Setting, Transport};
use serde::Serialize;
use serde_json::json;

use super::place_of;
use crate::cli::ListArgs;
use crate::commands::{LoadedConfig, find_agent, load_config, log_warnings};
use crate::edge::Edge;
use crate::error::CommandResult;
use crate::exit::Exit;
use crate::output::{Column, Output, cut, cut_front, fit, printable};

/// Name, transport, state, target, place.
const COLUMNS: [Column; 5] = [
    // Names are truncated last: users type them.
    Column { widths: [64, 64], cut },
    Column { widths: [5, 5], cut },
    Column { widths: [12, 12], cut },
    Column { widths: [40, 12], cut },
    Column { widths: [24, 8], cut: cut_front },
];

/// A server as it is configured.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    name: String,
    transport: Option<&'static str>,
    target: Option<String>,
    state: &'static str,
    #[serde(rename = "unsetVariables")]
    unset: Vec<String>,
    place: String,
}

pub(super) fn list(args: &ListArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let LoadedConfig { config, report, .. } = load_config(edge, output)?;
    log_warnings(&report);
    let agent = find_agent(&config, args.whose.agent.as_deref())?;
    let servers = agent.mcp.origins.servers.iter();
    let entries: Vec<Entry> = servers
        .map(|(name, settings)| Entry::new(name.as_str(), settings, agent, &config))
        .collect();
    show(&entries, agent, edge, output);
    Ok(Exit::Ok)
}

fn show(entries: &[Entry], agent: &AgentConfig, edge: &Edge, output: &mut Output) {
    if output.json {
        output.value(&json!({ "agent": agent.id.as_str(), "servers": entries }));
        return;
    }
    if !agent.mcp.enabled || entries.is_empty() {
        output.line(super::no_servers(edge));
        return;
    }
    let rows = fit(&entries.iter().map(Entry::row).collect::<Vec<_>>(), &COLUMNS, output.width());
    output.table(rows.into_iter().map(|row| {
        let mut cells: Vec<Cell> = row.iter().map(|text| Cell::new(printable(text))).collect();
        let place = cells.pop();
        cells.extend(place.map(|place| place.add_attribute(Attribute::Dim)));
        cells
    }));
    for entry in entries.iter().filter(|entry| !entry.unset.is_empty()) {
        let (name, unset) = (&entry.name, entry.unset.join(", "));
        output.warning(&format!("`{name}` cannot start: set {unset}"));
    }
}

impl Entry {
    fn new(name: &str, settings: &[Setting], agent: &AgentConfig, config: &Config) -> Self {
        let built_in = "built in".to_owned();
        let place = place_of(settings).filter(|_| config.file.is_some()).unwrap_or(built_in);
        let server = agent.mcp.servers.get(name);
        let held_back = agent.mcp.held_back.get(name);
        let written = |key: &str| settings.iter().find(|setting| setting.key == key);
        let written = |key| written(key)?.value.as_str().map(str::to_owned);
        Self {
            name: name.to_owned(),
            transport: server.map(transport),
            // A server that is held back has only its written settings.
            target: server
                .map(ServerConfig::gist)
                .or_else(|| written("command").or_else(|| written("url"))),
            state: match server {
                None => "held back",
                Some(server) if !server.enabled => "disabled",
                Some(server) if server.options.lazy => "lazy",
                Some(_) => "enabled",
            },
            unset: held_back.map(|why| why.unset_variables.clone()).unwrap_or_default(),
            place,
        }
    }

    fn row(&self) -> Vec<String> {
        let state = if self.unset.is_empty() { self.state } else { "cannot start" };
        let target = self.target.as_deref().unwrap_or("–");
        let words = [&self.name, self.transport.unwrap_or("–"), state, target, &self.place];
        words.map(str::to_owned).to_vec()
    }
}

fn transport(server: &ServerConfig) -> &'static str {
    match &server.connection.transport {
        Transport::Stdio(_) => "stdio",
        Transport::Http(http) => match http.flavour {
            HttpFlavour::Streamable => "http",
            HttpFlavour::Sse => "sse",
        },
    }
}
