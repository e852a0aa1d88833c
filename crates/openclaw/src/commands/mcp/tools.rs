//! `openclaw mcp tools`: what can be called, what may not be, and what was left out.

use std::path::Path;
use std::sync::Arc;

use comfy_table::{Cell, Color};
use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::catalogue::CatalogueTool;
use openclaw_mcp::pins::Pin;
use openclaw_mcp::server::Server;
use openclaw_tools::{Decision, Effect};
use serde_json::{Value, json};

use super::host::{Need, Session, with_session};
use super::servers::cut;
use crate::cli::ToolsArgs;
use crate::edge::Edge;
use crate::exit::Exit;
use crate::output::{BAD, FAINT, Output, STRONG, plural, printable};

/// How much of a description is shown where there is room for it.
const DESCRIPTION_CHARS: usize = 400;
/// How much of a name from outside.
const NAME_CHARS: usize = 64;

pub(super) fn tools(
    args: &ToolsArgs,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
) -> Exit {
    let need = Need { agent: args.whose.agent.as_deref(), ..Need::default() };
    with_session(need, flag, edge, output, async |session, output| {
        match session.gather(args.server.as_deref(), output).await {
            Ok(servers) => show(&servers, args.schema, session, output),
            Err(exit) => exit,
        }
    })
}

fn show(servers: &[Arc<Server>], schema: bool, session: &Session, output: &mut Output) -> Exit {
    let catalogue = session.tools.catalogue();
    let is_wanted =
        |tool: &CatalogueTool| servers.iter().any(|server| server.name() == tool.server().name());
    let tools: Vec<&CatalogueTool> =
        catalogue.all().iter().map(AsRef::as_ref).filter(|tool| is_wanted(tool)).collect();
    if output.json {
        let listed: Vec<Value> = tools.iter().map(|tool| to_json(tool, schema, session)).collect();
        output.value(&json!({ "tools": listed, "leftOut": left_out(servers) }));
        return Exit::Ok;
    }
    if tools.is_empty() {
        output.line("There are no tools.");
    } else if schema {
        tools.iter().for_each(|tool| show_schema(tool, session, output));
    } else {
        table(&tools, session, output);
    }
    for entry in left_out(servers) {
        let (server, name, reason) = (&entry["server"], &entry["name"], &entry["reason"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let message = format!("{} left out `{}`: {}", text(server), text(name), text(reason));
        output.warning(&message);
    }
    if servers.len() > 1 {
        let (tools, servers) = (plural(tools.len(), "tool"), plural(servers.len(), "server"));
        output.line(format_args!("\n{tools} of {servers}"));
    }
    Exit::Ok
}

/// A line for each: name, and what it does, cut to the width.
fn table(tools: &[&CatalogueTool], session: &Session, output: &mut Output) {
    let longest = tools.iter().map(|tool| tool.spec.name.as_str().len()).max().unwrap_or(0);
    let room = usize::from(output.width()).saturating_sub(longest + 5).max(20);
    output.table(tools.iter().map(|tool| {
        let name = Cell::new(&tool.spec.name);
        let name = if tool.is_allowed() { name } else { name.fg(Color::DarkGrey) };
        let description = match remark(tool, session) {
            Some(remark) => cut(&format!("[{remark}] {}", description(tool)), room),
            None => cut(&description(tool), room),
        };
        vec![name, Cell::new(description)]
    }));
}

fn show_schema(tool: &CatalogueTool, session: &Session, output: &mut Output) {
    let remark = remark(tool, session).map(|remark| format!("  {BAD}{remark}{BAD:#}"));
    let remark = remark.unwrap_or_default();
    output.line(format_args!("{STRONG}{}{STRONG:#}{remark}", tool.spec.name));
    let (server, name) = (tool.server().name(), outside(&tool.listed().name));
    output.line(format_args!("{FAINT}`{name}` of {server}{FAINT:#}"));
    output.line(printable(&description(tool)));
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

fn to_json(tool: &CatalogueTool, schema: bool, session: &Session) -> Value {
    let denied_by = match &tool.decision {
        Decision::Denied { by } => Some(by),
        Decision::Allowed => None,
    };
    let mut value = json!({
        "name": tool.spec.name.as_str(),
        "server": tool.server().name().as_str(),
        "tool": tool.listed().name,
        "title": tool.listed().title,
        "description": tool.listed().description,
        "effect": match tool.spec.effect {
            Effect::ReadOnly => "read-only",
            Effect::Destructive => "destructive",
            Effect::Unknown => "unknown",
        },
        "deniedBy": denied_by,
        "changed": is_changed(tool, session),
    });
    if let Some(flaw) = tool.flaw() {
        value["unusable"] = flaw.to_string().into();
    }
    if schema {
        value["inputSchema"] = Value::Object((*tool.listed().input_schema).clone());
    }
    value
}

/// What servers list and cannot be used.
fn left_out(servers: &[Arc<Server>]) -> Vec<Value> {
    let of = |server: &Arc<Server>| {
        let left_out = server.shelf().inventory().left_out.clone();
        let name = server.name().to_string();
        left_out.into_iter().map(move |dropped| {
            json!({ "server": name, "name": outside(&dropped.name), "reason": dropped.reason })
        })
    };
    servers.iter().flat_map(of).collect()
}
