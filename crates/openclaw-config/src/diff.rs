//! What changed between two configurations, server by server: for hot reload (C9).

use std::collections::BTreeMap;

use crate::model::McpConfig;
use crate::name::ServerName;
use crate::server::ServerConfig;

/// What became of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is new, or can be started only now.
    Added,
    /// It is gone, or cannot be started any more.
    Removed,
    /// It must be started anew with other settings.
    Changed,
    /// It can be left alone.
    Same,
}

impl McpConfig {
    /// What became of each server of `self` in `newer`. Where a value comes from does not count,
    /// only what it is.
    ///
    /// ```
    /// # use std::path::Path;
    /// # use openclaw_config::{Change, Surroundings, load_text};
    /// # let load = |text| load_text(Path::new("c"), text, Surroundings { variable: &|_| None, home: None });
    /// let old = load("{ mcp: { servers: { a: { command: 'x' }, b: { command: 'x' } } } }").config.unwrap();
    /// let new = load("{ mcp: { servers: { b: { command: 'y' }, c: { command: 'z' } } } }").config.unwrap();
    /// let changes = old.agents[0].mcp.diff(&new.agents[0].mcp);
    /// assert_eq!(changes["a"], Change::Removed);
    /// assert_eq!(changes["b"], Change::Changed);
    /// assert_eq!(changes["c"], Change::Added);
    /// ```
    pub fn diff(&self, newer: &Self) -> BTreeMap<ServerName, Change> {
        let change = |old: Option<&ServerConfig>, new: Option<&ServerConfig>| match (old, new) {
            (Some(old), Some(new)) if old == new => Change::Same,
            (Some(_), Some(_)) => Change::Changed,
            (Some(_), None) => Change::Removed,
            (None, _) => Change::Added,
        };
        self.servers
            .keys()
            .chain(newer.servers.keys())
            .map(|name| (name.clone(), change(self.servers.get(name), newer.servers.get(name))))
            .collect()
    }
}
