//! Compares a server's lists before and after a refresh.

use std::collections::BTreeMap;

use openclaw_mcp::inventory::Inventory;
use openclaw_mcp::server::{Server, Unavailable};
use openclaw_mcp_client::listing::ListedTool;
use openclaw_protocol::mcp::Refreshed;

use super::problem::{Problem, ProblemKind};

/// What a server offers now, and how its tools have changed.
pub(super) fn refreshed(server: &Server, before: &Inventory) -> Refreshed {
    let after = server.cache().inventory();
    let (old, new) = (by_name(before), by_name(&after));
    let gone = old.keys().filter(|name| !new.contains_key(*name));
    let (mut added, mut changed) = (Vec::new(), Vec::new());
    for (name, tool) in &new {
        match old.get(name) {
            None => added.push((*name).to_owned()),
            Some(old) if old != tool => changed.push((*name).to_owned()),
            Some(_) => {}
        }
    }
    Refreshed {
        name: server.name().to_string(),
        ok: true,
        tools: Some(after.tools.len() as u64),
        resources: Some((after.resources.len() + after.templates.len()) as u64),
        prompts: Some(after.prompts.len() as u64),
        added: Some(added),
        removed: Some(gone.map(|name| (*name).to_owned()).collect()),
        changed: Some(changed),
        error: None,
        needs_login: false,
        hint: None,
        last_lines: Vec::new(),
    }
}

/// The result for a server whose lists cannot be read.
pub(super) fn not_refreshed(server: &Server, why: Unavailable) -> Refreshed {
    let Problem { kind, message, hint, last_lines } = Problem::from(why);
    Refreshed {
        name: server.name().to_string(),
        ok: false,
        tools: None,
        resources: None,
        prompts: None,
        added: None,
        removed: None,
        changed: None,
        error: Some(message),
        needs_login: kind == ProblemKind::NeedsLogin,
        hint,
        last_lines,
    }
}

fn by_name(inventory: &Inventory) -> BTreeMap<&str, &ListedTool> {
    inventory.tools.iter().map(|tool| (tool.name.as_str(), &**tool)).collect()
}
