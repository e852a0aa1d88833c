//! `openclaw secrets check`: checks that all references resolve. Values are never shown.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use comfy_table::{Cell, Color};
use openclaw_config::Config;
use openclaw_secrets::{Checked, SecretRef};
use serde_json::json;

use super::{block_on, load_config};
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::exit::Exit;
use crate::output::{BAD, FAINT, Output, printable};

/// References and the settings that use them.
type References = BTreeMap<SecretRef, BTreeSet<String>>;

pub(crate) fn check(
    flag: Option<&Path>,
    asked: &[String],
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    let mut references = References::new();
    for text in asked {
        let reference = text.parse::<SecretRef>();
        let reference = reference.map_err(|error| CommandError::usage(error.to_string()))?;
        references.insert(reference, BTreeSet::new());
    }
    let config = load_config(flag, edge, output)?.config;
    if asked.is_empty() {
        references = config.secret_references();
    }
    let resolver = edge.resolver(&config);
    let checked = block_on(async { Ok(resolver.check_all(references.keys()).await) })?;
    Ok(report(&config, &references, &checked, output))
}

fn report(
    config: &Config,
    references: &References,
    checked: &[Checked],
    output: &mut Output,
) -> Exit {
    let failed = checked.iter().filter(|checked| checked.error.is_some()).count();
    let exit = if failed == 0 { Exit::Ok } else { Exit::Failed };
    let users = |reference: &SecretRef| {
        let users = references.get(reference).into_iter().flatten();
        users.map(String::as_str).collect::<Vec<_>>()
    };
    if output.json {
        let checked = checked.iter().map(|checked| {
            let error = checked.error.as_ref();
            json!({
                "reference": checked.reference.to_string(),
                "ok": error.is_none(),
                "milliseconds": u64::try_from(checked.took.as_millis()).unwrap_or(u64::MAX),
                "usedBy": users(&checked.reference),
                "error": error.map(ToString::to_string),
                "hint": error.and_then(|error| error.hint()),
            })
        });
        output.value(&json!({ "ok": failed == 0, "secrets": checked.collect::<Vec<_>>() }));
        return exit;
    }
    if checked.is_empty() {
        let disabled = disabled_servers(config);
        let remark = if disabled > 0 { " (disabled servers are not checked)" } else { "" };
        output.line(format_args!("The configuration refers to no secrets{remark}."));
        return exit;
    }
    output.table(checked.iter().map(|checked| {
        let (mark, colour) = match checked.error {
            None => ("✓", Color::Green),
            Some(_) => ("✗", Color::Red),
        };
        vec![
            Cell::new(format!("{mark} {}", checked.reference)).fg(colour),
            Cell::new(format!("{} ms", checked.took.as_millis())),
            Cell::new(users(&checked.reference).join(", ")),
        ]
    }));
    for error in checked.iter().filter_map(|checked| checked.error.as_ref()) {
        output.line(format_args!("\n{BAD}✗{BAD:#} {}", printable(&error.to_string())));
        if let Some(hint) = error.hint() {
            output.line(format_args!("  {FAINT}{}{FAINT:#}", printable(hint)));
        }
    }
    let resolved = checked.len() - failed;
    output.line(format_args!("\n{resolved} of {} secrets resolve", checked.len()));
    exit
}

fn disabled_servers(config: &Config) -> usize {
    let servers = config.agents.iter().flat_map(|agent| agent.mcp.servers.values());
    servers.filter(|server| !server.enabled).count()
}
