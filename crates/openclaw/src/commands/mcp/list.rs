//! `openclaw mcp list`: what is configured. Nothing is started.

use std::path::Path;

use comfy_table::{Attribute, Cell};
use openclaw_config::{AgentConfig, Config, HttpFlavour, ServerConfig, Setting, Transport};
use serde_json::{Value, json};

use super::host::agent;
use super::standing;
use crate::cli::ListArgs;
use crate::commands::with_config;
use crate::edge::Edge;
use crate::exit::Exit;
use crate::output::{Output, printable};

/// A server as it is configured.
struct Entry {
    name: String,
    transport: Option<&'static str>,
    target: Option<String>,
    state: &'static str,
    unset: Vec<String>,
    place: String,
}

pub(super) fn list(args: &ListArgs, flag: Option<&Path>, edge: &Edge, output: &mut Output) -> Exit {
    with_config(flag, edge, output, |config, output| {
        let agent = match agent(config, args.whose.agent.as_deref(), output) {
            Ok(agent) => agent,
            Err(exit) => return exit,
        };
        let servers = agent.mcp.origins.servers.iter();
        let entries: Vec<Entry> = servers
            .map(|(name, settings)| Entry::new(name.as_str(), settings, agent, config))
            .collect();
        show(&entries, agent, output);
        Exit::Ok
    })
}

fn show(entries: &[Entry], agent: &AgentConfig, output: &mut Output) {
    if output.json {
        let servers: Vec<Value> = entries.iter().map(Entry::to_json).collect();
        output.value(&json!({ "agent": agent.id.as_str(), "servers": servers }));
        return;
    }
    if !agent.mcp.enabled {
        output.line("MCP is switched off.");
        return;
    }
    if entries.is_empty() {
        output.line("There are no servers. `openclaw mcp add` adds one.");
        return;
    }
    output.table(entries.iter().map(Entry::row));
    for entry in entries.iter().filter(|entry| !entry.unset.is_empty()) {
        let (name, unset) = (&entry.name, entry.unset.join(", "));
        output.warning(&format!("`{name}` will not start: set {unset}"));
    }
}

impl Entry {
    fn new(name: &str, settings: &[Setting], agent: &AgentConfig, config: &Config) -> Self {
        let built_in = "built in".to_owned();
        let place = standing(settings).filter(|_| config.file.is_some()).unwrap_or(built_in);
        let server = agent.mcp.servers.get(name);
        let held_back = agent.mcp.held_back.get(name);
        let written = |key: &str| settings.iter().find(|setting| setting.key == key);
        let written = |key| written(key)?.value.as_str().map(str::to_owned);
        Self {
            name: name.to_owned(),
            transport: server.map(transport),
            // Of one that is held back, what is written is all there is.
            target: server
                .map(ServerConfig::gist)
                .or_else(|| written("command").or_else(|| written("url"))),
            state: match server {
                None => "held back",
                Some(server) if !server.enabled => "disabled",
                Some(server) if server.lazy => "lazy",
                Some(_) => "enabled",
            },
            unset: held_back.map(|why| why.unset_variables.clone()).unwrap_or_default(),
            place,
        }
    }

    fn row(&self) -> Vec<Cell> {
        let target = self.target.as_deref().unwrap_or("–");
        vec![
            Cell::new(&self.name),
            Cell::new(self.transport.unwrap_or("–")),
            Cell::new(self.state),
            Cell::new(printable(target)),
            Cell::new(printable(&self.place)).add_attribute(Attribute::Dim),
        ]
    }

    fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "transport": self.transport,
            "target": self.target,
            "state": self.state,
            "unsetVariables": self.unset,
            "place": self.place,
        })
    }
}

fn transport(server: &ServerConfig) -> &'static str {
    match &server.transport {
        Transport::Stdio(_) => "stdio",
        Transport::Http(http) => match http.flavour {
            HttpFlavour::Streamable => "http",
            HttpFlavour::Sse => "sse",
        },
    }
}
