//! The places in a file that may define servers (C2), for edits.

use jsonc_parser::cst::{CstInputValue, CstObject};
use serde_json::Value;

use crate::decode::Segment;
use crate::edit::{Document, EditError};
use crate::name::ServerName;

/// Where new servers are added.
const USUAL: [&str; 2] = ["mcp", "servers"];
/// The layer below `USUAL`: its fields apply unless overridden.
const BELOW: [&str; 5] = ["plugins", "entries", "mcp-client", "config", "servers"];
/// The lowest layer: the servers of other programs, as they were pasted.
const PASTED: [&str; 1] = ["mcpServers"];
/// The layer above `USUAL`, for all agents.
const ABOVE: [&str; 4] = ["agents", "defaults", "mcp", "servers"];

impl Document {
    /// Returns every server in the file with its path (`agents.list[0].mcp.servers.x`), lowest
    /// layer first.
    pub fn servers(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for (path, servers) in self.server_tables() {
            let names = servers.properties().into_iter().filter_map(|entry| entry.decoded_name());
            for name in names.filter(|name| name != "$include") {
                let path = format!("{path}{}", Segment::Key(name.clone()));
                found.push((name, path));
            }
        }
        found
    }

    /// Returns the path at which [`put_server`](Self::put_server) adds a server.
    pub fn server_path(name: &ServerName) -> String {
        format!("{}{}", USUAL.join("."), Segment::Key(name.to_string()))
    }

    /// Adds a server to the file, replacing one of the same name. Overrides by agents are kept.
    ///
    /// # Errors
    /// If a value on the way is not an object.
    pub fn put_server(&self, name: &ServerName, entry: &Value) -> Result<(), EditError> {
        let [pasted, below, usual] =
            [&PASTED[..], &BELOW, &USUAL].map(|way| [way, &[name.as_str()]].concat());
        self.remove(&pasted);
        self.remove(&below);
        self.set(&usual, entry)
    }

    /// Removes a server from every place. Returns the paths it was removed from.
    pub fn remove_server(&self, name: &str) -> Vec<String> {
        let mut removed = Vec::new();
        for (path, servers) in self.server_tables() {
            if let Some(entry) = servers.get(name) {
                entry.remove();
                removed.push(format!("{path}{}", Segment::Key(name.to_owned())));
            }
        }
        removed
    }

    /// Enables or disables a server in every place. Returns the paths of its entries.
    ///
    /// # Errors
    /// If one of its entries is not an object.
    pub fn enable_server(&self, name: &str, enabled: bool) -> Result<Vec<String>, EditError> {
        let mut changed = Vec::new();
        for (path, servers) in self.server_tables() {
            if servers.get(name).is_none() {
                continue;
            }
            let path = format!("{path}{}", Segment::Key(name.to_owned()));
            let entry = servers.object_value(name);
            let entry = entry.ok_or_else(|| EditError::NotAnObject(path.clone()))?;
            match (entry.get("enabled"), enabled) {
                // Enabled is the default.
                (Some(setting), true) => setting.remove(),
                (Some(setting), false) => setting.set_value(CstInputValue::Bool(false)),
                (None, true) => {}
                (None, false) => drop(entry.append("enabled", CstInputValue::Bool(false))),
            }
            changed.push(path);
        }
        Ok(changed)
    }

    /// Returns the objects that contain servers by name, with their paths.
    fn server_tables(&self) -> Vec<(String, CstObject)> {
        let mut tables = Vec::new();
        for way in [&PASTED[..], &BELOW, &USUAL, &ABOVE] {
            tables.extend(self.object_at(way).map(|servers| (path_of(way), servers)));
        }
        let Some(agents) = self.object_at(&["agents"]) else { return tables };
        let list = agents.array_value("list").map(|list| list.elements()).unwrap_or_default();
        let listed = list.into_iter().enumerate().filter_map(|(index, agent)| {
            Some((format!("agents.list{}", Segment::Index(index)), agent.as_object()?))
        });
        let entries = agents.object_value("entries").map(|entries| entries.properties());
        let named = entries.unwrap_or_default().into_iter().filter_map(|agent| {
            let id = Segment::Key(agent.decoded_name()?);
            Some((format!("agents.entries{id}"), agent.object_value()?))
        });
        for (path, agent) in listed.chain(named) {
            let servers = agent.object_value("mcp").and_then(|mcp| mcp.object_value("servers"));
            tables.extend(servers.map(|servers| (format!("{path}.mcp.servers"), servers)));
        }
        tables
    }
}

fn path_of(way: &[&str]) -> String {
    let path: String =
        way.iter().map(|step| Segment::Key((*step).to_owned()).to_string()).collect();
    path.trim_start_matches('.').to_owned()
}
