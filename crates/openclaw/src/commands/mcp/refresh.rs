//! `openclaw mcp refresh`: lists what servers have anew, and tells what has changed.

use std::collections::BTreeMap;
use std::path::Path;

use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::inventory::Inventory;
use openclaw_mcp::listing::ListedTool;
use openclaw_mcp::server::Server;
use serde_json::{Value, json};

use super::host::{Need, tell, with_session};
use crate::cli::RefreshArgs;
use crate::edge::Edge;
use crate::exit::Exit;
use crate::output::{BAD, FAINT, GOOD, Output, plural, printable};

/// How much of a tool's name is shown.
const NAME_CHARS: usize = 64;

/// What has changed about a server's tools.
#[derive(Debug, Default, PartialEq, Eq)]
struct Changed {
    added: Vec<String>,
    removed: Vec<String>,
    changed: Vec<String>,
}

pub(super) fn refresh(
    args: &RefreshArgs,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
) -> Exit {
    let need = Need::of(&args.whose);
    with_session(need, flag, edge, output, async |session, output| {
        let servers = match &args.name {
            Some(name) => match session.server(name, output) {
                Ok(server) => vec![server],
                Err(exit) => return exit,
            },
            None => session.tools.servers().iter().collect(),
        };
        let mut exit = Exit::Ok;
        let mut told = Vec::new();
        for server in servers {
            let before = session.remembered(server);
            if let Err(unavailable) = session.start(server).await {
                exit = Exit::Unavailable;
                match output.json {
                    true => told.push(failed(server, &unavailable.reason())),
                    false => drop(tell(&unavailable, output)),
                }
                continue;
            }
            let after = server.shelf().inventory();
            let changed = Changed::between(&before, &after);
            match output.json {
                true => told.push(changed.to_json(server, &after)),
                false => changed.show(server, &after, output),
            }
        }
        if output.json {
            output.value(&json!({ "ok": exit == Exit::Ok, "servers": told }));
        } else if session.tools.servers().is_empty() {
            output.line("There are no servers. `openclaw mcp add` adds one.");
        }
        exit
    })
}

fn failed(server: &Server, reason: &str) -> Value {
    json!({ "name": server.name().as_str(), "ok": false, "error": reason })
}

impl Changed {
    fn between(before: &Inventory, after: &Inventory) -> Self {
        let by_name = |inventory: &Inventory| -> BTreeMap<String, ListedTool> {
            let tools = inventory.tools.iter();
            tools.map(|tool| (tool.name.clone(), (**tool).clone())).collect()
        };
        let (before, after) = (by_name(before), by_name(after));
        let gone = before.keys().filter(|name| !after.contains_key(*name));
        let mut changed = Self { removed: gone.cloned().collect(), ..Self::default() };
        for (name, tool) in &after {
            match before.get(name) {
                None => changed.added.push(name.clone()),
                Some(old) if old != tool => changed.changed.push(name.clone()),
                Some(_) => {}
            }
        }
        changed
    }

    fn show(&self, server: &Server, after: &Inventory, output: &mut Output) {
        let tools = plural(after.tools.len(), "tool");
        let (resources, prompts) = (
            plural(after.resources.len() + after.templates.len(), "resource"),
            plural(after.prompts.len(), "prompt"),
        );
        let name = server.name();
        output.line(format_args!("{GOOD}✓{GOOD:#} {name}: {tools}, {resources}, {prompts}"));
        if *self == Self::default() {
            output.line(format_args!("  {FAINT}nothing has changed{FAINT:#}"));
        }
        let marks =
            [("+", GOOD, &self.added), ("-", BAD, &self.removed), ("~", FAINT, &self.changed)];
        for (mark, style, names) in marks {
            for name in names {
                let name = clean_line(Untrusted::new(name), NAME_CHARS);
                output.line(format_args!("  {style}{mark}{style:#} {}", printable(&name)));
            }
        }
    }

    fn to_json(&self, server: &Server, after: &Inventory) -> Value {
        json!({
            "name": server.name().as_str(),
            "ok": true,
            "tools": after.tools.len(),
            "resources": after.resources.len() + after.templates.len(),
            "prompts": after.prompts.len(),
            "added": self.added,
            "removed": self.removed,
            "changed": self.changed,
        })
    }
}
