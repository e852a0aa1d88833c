//! `openclaw mcp tools`: the tools of servers, also those that are denied, unusable or skipped.

use std::collections::BTreeSet;

use comfy_table::{Attribute, Cell, Color};
use openclaw_content::{Untrusted, clean_line, wrap_words};
use openclaw_protocol::mcp::{LeftOut, ListParams, Missing, Tool, ToolsResult};
use openclaw_protocol::rpc;
use serde_json::Value;

use super::parameters;
use super::shell::with_result;
use crate::cli::ToolsArgs;
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::exit::Exit;
use crate::output::{Column, Output, cut, fit, plural, printable};
use openclaw_terminal::style::{BAD, FAINT, STRONG};

/// The name, which is rarely truncated, and the description.
const COLUMNS: [Column; 2] = [Column { widths: [64, 64], cut }, Column { widths: [10, 10], cut }];
/// The maximum length of a description. In a list on a terminal, the width is the limit.
const DESCRIPTION_CHARS: usize = 10_000;
/// The maximum width of a paragraph.
const PARAGRAPH: usize = 100;
/// Below this width, four columns do not fit.
const NARROW: usize = 70;
/// The maximum length of a name from a server.
const NAME_CHARS: usize = 64;

pub(super) fn tools(args: &ToolsArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    // `clap` cannot check this: it does not see a `--json` before the subcommand.
    if args.raw && !output.json {
        return Err(CommandError::usage("`--raw` requires `--json`").hint("add `--json`"));
    }
    let params = ListParams {
        agent_id: args.context.agent.clone(),
        server: args.server.clone(),
        tool: args.tool.clone(),
        schema: Some(args.schema || args.tool.is_some()),
        raw: Some(args.raw),
    };
    let about = (&args.context, args.server.as_deref());
    let show = |result: &ToolsResult, output: &mut Output| show(result, args, output);
    with_result::<rpc::McpTools>(about, params, edge, output, show)
}

fn show(result: &ToolsResult, args: &ToolsArgs, output: &mut Output) -> Exit {
    let ToolsResult { tools, left_out, missing } = result;
    print_missing(missing, output);
    if output.json {
        output.data(result);
        return Exit::Ok;
    }
    if tools.is_empty() {
        output.line("No tools.");
    } else if args.tool.is_some() && !args.schema {
        tools.iter().for_each(|tool| show_one(tool, output));
    } else if args.schema {
        tools.iter().for_each(|tool| show_schema(tool, output));
    } else {
        table(tools, output);
    }
    for LeftOut { server, name, reason } in left_out {
        output.warning(&format!("skipped `{name}` of {server}: {reason}"));
    }
    let servers: BTreeSet<&str> = tools.iter().map(|tool| tool.server.as_str()).collect();
    if servers.len() > 1 {
        let (tools, servers) = (plural(tools.len(), "tool"), plural(servers.len(), "server"));
        output.line(format_args!("\n{tools} of {servers}"));
    }
    Exit::Ok
}

/// Warns about servers that are not available.
pub(super) fn print_missing(missing: &[Missing], output: &mut Output) {
    missing.iter().for_each(|it| output.warning(&it.error));
}

/// Writes one line per tool: name and description, truncated to the width.
fn table(tools: &[Tool], output: &mut Output) {
    let rows = tools.iter().map(|tool| {
        let described = match remark(tool) {
            Some(remark) => format!("[{remark}] {}", description(tool)),
            None => description(tool),
        };
        vec![tool.name.clone(), described]
    });
    let rows = fit(&rows.collect::<Vec<_>>(), &COLUMNS, output.width());
    output.table(rows.into_iter().zip(tools).map(|(row, tool)| {
        let [name, described] = [0, 1].map(|at| row.get(at).map_or("", String::as_str));
        let name = Cell::new(name);
        let is_allowed = tool.denied_by.is_none() && tool.unusable.is_none();
        let name = if is_allowed { name } else { name.fg(Color::DarkGrey) };
        vec![name, Cell::new(printable(described))]
    }));
}

/// Writes the name, the description and a table of the arguments of one tool.
fn show_one(tool: &Tool, output: &mut Output) {
    heading(tool, output);
    let text = tool.description.as_deref().unwrap_or("(no description)");
    for line in text.chars().take(DESCRIPTION_CHARS).collect::<String>().lines() {
        let line = clean_line(Untrusted::new(line), DESCRIPTION_CHARS);
        wrap_words(&printable(&line), text_width(output)).iter().for_each(|it| output.line(it));
    }
    let none = Value::Null;
    let rows = parameters::rows(tool.input_schema.as_ref().unwrap_or(&none));
    if rows.is_empty() {
        output.line("\nNo arguments.");
        return;
    }
    output.line(format_args!("\n{STRONG}Arguments{STRONG:#}"));
    let room = usize::from(output.width());
    if room < NARROW {
        for row in &rows {
            let parameters::ParameterRow { name, kind, remark, description } = row;
            output
                .line(format_args!(" {STRONG}{name}{STRONG:#}  {kind}  {FAINT}{remark}{FAINT:#}"));
            let lines = wrap_words(description, room.saturating_sub(4).max(20));
            lines.iter().for_each(|line| output.line(format_args!("   {line}")));
        }
    } else {
        output.table(rows.into_iter().map(|row| {
            let parameters::ParameterRow { name, kind, remark, description } = row;
            let name = Cell::new(name).add_attribute(Attribute::Bold);
            vec![name, Cell::new(kind), Cell::new(remark), Cell::new(description)]
        }));
    }
    let (server, name) = (&tool.server, clean_line(Untrusted::new(&tool.tool), NAME_CHARS));
    let example = parameters::example(tool.input_schema.as_ref().unwrap_or(&none));
    output.line(format_args!("\n{FAINT}openclaw mcp call {server} {name}{example}{FAINT:#}"));
}

/// The width of a paragraph: long lines are hard to read, also in a file.
fn text_width(output: &Output) -> usize {
    usize::from(output.width()).min(PARAGRAPH)
}

fn heading(tool: &Tool, output: &mut Output) {
    let remark = remark(tool).map(|remark| format!("  {BAD}{remark}{BAD:#}"));
    let remark = remark.unwrap_or_default();
    output.line(format_args!("{STRONG}{}{STRONG:#}{remark}", tool.name));
    let (server, name) = (&tool.server, clean_line(Untrusted::new(&tool.tool), NAME_CHARS));
    output.line(format_args!("{FAINT}`{name}` of {server}{FAINT:#}"));
}

fn show_schema(tool: &Tool, output: &mut Output) {
    heading(tool, output);
    for line in wrap_words(&printable(&description(tool)), usize::from(output.width())) {
        output.line(line);
    }
    let schema = tool.input_schema.as_ref().map(|schema| format!("{schema:#}"));
    output.line(format_args!("{}\n", printable(&schema.unwrap_or_default())));
}

/// Returns why a tool cannot be called as usual.
fn remark(tool: &Tool) -> Option<String> {
    match (&tool.denied_by, &tool.unusable, tool.changed) {
        (Some(by), ..) => Some(format!("denied by {by}")),
        (None, Some(flaw), _) => Some(format!("unusable: {flaw}")),
        (None, None, true) => Some("changed since it was first seen or approved".to_owned()),
        (None, None, false) => None,
    }
}

fn description(tool: &Tool) -> String {
    let text = tool.description.as_deref().unwrap_or("(no description)");
    clean_line(Untrusted::new(text), DESCRIPTION_CHARS)
}
