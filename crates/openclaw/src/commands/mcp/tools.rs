//! `openclaw mcp tools`: what can be called, what may not be, and what was left out.

use std::path::Path;
use std::sync::Arc;

use comfy_table::{Cell, Color};
use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::catalogue::CatalogueTool;
use openclaw_mcp::describe;
use openclaw_mcp::pins::Pin;
use openclaw_mcp::server::Server;
use openclaw_tools::{Decision, Effect};
use serde::Serialize;
use serde_json::Value;

use super::host::{Session, with_servers};
use crate::cli::ToolsArgs;
use crate::edge::Edge;
use crate::exit::Exit;
use crate::output::{BAD, Column, FAINT, Output, STRONG, cut, fit, lines_of, plural, printable};

/// How much of a description is shown where there is room for it.
const DESCRIPTION_CHARS: usize = 400;
/// A name, which is needed as a whole, and what it does.
const COLUMNS: [Column; 2] = [Column { widths: [64, 64], cut }, Column { widths: [10, 10], cut }];
/// How much of a name from outside.
const NAME_CHARS: usize = 64;

/// What can be called, what may not be, and what was left out, for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listing {
    tools: Vec<Entry>,
    left_out: Vec<LeftOut>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    name: String,
    server: String,
    /// What its server calls it.
    tool: String,
    title: Option<String>,
    description: Option<String>,
    effect: &'static str,
    denied_by: Option<String>,
    changed: bool,
    /// Why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    unusable: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_schema: Option<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LeftOut {
    server: String,
    name: String,
    reason: String,
}

pub(super) fn tools(
    args: &ToolsArgs,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
) -> Exit {
    let show = |servers: &[Arc<Server>], session: &Session, output: &mut Output| {
        show(servers, args, session, output)
    };
    with_servers(&args.whose, args.server.as_deref(), flag, edge, output, show)
}

fn show(servers: &[Arc<Server>], args: &ToolsArgs, session: &Session, output: &mut Output) -> Exit {
    let catalogue = session.tools.catalogue();
    let is_wanted =
        |tool: &CatalogueTool| servers.iter().any(|server| server.name() == tool.server().name());
    let tools: Vec<&CatalogueTool> =
        catalogue.all().iter().map(AsRef::as_ref).filter(|tool| is_wanted(tool)).collect();
    let left_out = left_out(servers);
    if output.json {
        let tools = tools.iter().map(|tool| Entry::of(tool, args, session)).collect();
        output.data(&Listing { tools, left_out });
        return Exit::Ok;
    }
    if tools.is_empty() {
        output.line("There are no tools.");
    } else if args.schema {
        tools.iter().for_each(|tool| show_schema(tool, session, output));
    } else {
        table(&tools, session, output);
    }
    for LeftOut { server, name, reason } in left_out {
        output.warning(&format!("{server} left out `{name}`: {reason}"));
    }
    if servers.len() > 1 {
        let (tools, servers) = (plural(tools.len(), "tool"), plural(servers.len(), "server"));
        output.line(format_args!("\n{tools} of {servers}"));
    }
    Exit::Ok
}

/// A line for each: name, and what it does, cut to the width.
fn table(tools: &[&CatalogueTool], session: &Session, output: &mut Output) {
    let rows = tools.iter().map(|tool| {
        let described = match remark(tool, session) {
            Some(remark) => format!("[{remark}] {}", description(tool)),
            None => description(tool),
        };
        vec![tool.spec.name.to_string(), described]
    });
    let rows = fit(&rows.collect::<Vec<_>>(), &COLUMNS, output.width());
    output.table(rows.into_iter().zip(tools).map(|(row, tool)| {
        let [name, described] = [0, 1].map(|at| row.get(at).map_or("", String::as_str));
        let name = Cell::new(name);
        let name = if tool.is_allowed() { name } else { name.fg(Color::DarkGrey) };
        vec![name, Cell::new(printable(described))]
    }));
}

fn show_schema(tool: &CatalogueTool, session: &Session, output: &mut Output) {
    let remark = remark(tool, session).map(|remark| format!("  {BAD}{remark}{BAD:#}"));
    let remark = remark.unwrap_or_default();
    output.line(format_args!("{STRONG}{}{STRONG:#}{remark}", tool.spec.name));
    let (server, name) = (tool.server().name(), outside(&tool.listed().name));
    output.line(format_args!("{FAINT}`{name}` of {server}{FAINT:#}"));
    for line in lines_of(&printable(&description(tool)), usize::from(output.width())) {
        output.line(line);
    }
    let schema = format!("{:#}", tool.spec.input_schema);
    output.line(format_args!("{}\n", printable(&schema)));
}

/// What is special about a tool.
fn remark(tool: &CatalogueTool, session: &Session) -> Option<String> {
    match &tool.decision {
        Decision::Denied { by } => Some(format!("denied by {by}")),
        Decision::Allowed if let Some(flaw) = tool.flaw() => {
            Some(format!("cannot be used: {flaw}"))
        }
        Decision::Allowed if is_changed(tool, session) => {
            Some("changed since it was approved".to_owned())
        }
        Decision::Allowed => None,
    }
}

fn is_changed(tool: &CatalogueTool, session: &Session) -> bool {
    let (server, name) = (tool.server().name().as_str(), tool.listed().name.as_str());
    let pins = session.pins.as_ref();
    let pin = pins.map(|pins| pins.check(server, name, tool.fingerprint()));
    matches!(pin, Some(Pin::Changed { .. }))
}

fn description(tool: &CatalogueTool) -> String {
    let listed = tool.listed();
    let text = listed.description.as_deref().filter(|text| !text.trim().is_empty());
    let text = text.or(listed.title.as_deref()).unwrap_or("(no description)");
    clean_line(Untrusted::new(text), DESCRIPTION_CHARS)
}

fn outside(name: &str) -> String {
    clean_line(Untrusted::new(name), NAME_CHARS)
}

impl Entry {
    /// What its server says is bounded as for a model, unless all of it is wanted.
    fn of(tool: &CatalogueTool, args: &ToolsArgs, session: &Session) -> Self {
        let listed = tool.listed();
        let schema = match args.raw {
            true => Value::Object((*listed.input_schema).clone()),
            false => (*tool.spec.input_schema).clone(),
        };
        Self {
            name: tool.spec.name.to_string(),
            server: tool.server().name().to_string(),
            tool: listed.name.clone(),
            title: match args.raw {
                true => listed.title.clone(),
                false => listed.title.as_deref().map(outside),
            },
            description: match args.raw {
                true => listed.description.clone(),
                false => describe::theirs(listed),
            },
            effect: match tool.spec.effect {
                Effect::ReadOnly => "read-only",
                Effect::Destructive => "destructive",
                Effect::Unknown => "unknown",
            },
            denied_by: match &tool.decision {
                Decision::Denied { by } => Some(by.to_string()),
                Decision::Allowed => None,
            },
            changed: is_changed(tool, session),
            unusable: tool.flaw().map(ToString::to_string),
            input_schema: args.schema.then_some(schema),
        }
    }
}

/// What servers list and cannot be used.
fn left_out(servers: &[Arc<Server>]) -> Vec<LeftOut> {
    let of = |server: &Arc<Server>| {
        let left_out = server.shelf().inventory().left_out.clone();
        let server = server.name().to_string();
        left_out.into_iter().map(move |dropped| LeftOut {
            server: server.clone(),
            name: outside(&dropped.name),
            reason: dropped.reason,
        })
    };
    servers.iter().flat_map(of).collect()
}
