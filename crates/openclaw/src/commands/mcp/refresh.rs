//! `openclaw mcp refresh`: fetches the lists of servers again, and shows what has changed.

use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::mcp::{RefreshParams, RefreshResult, Refreshed};
use openclaw_protocol::rpc;
use serde_json::json;

use super::shell::with_result;
use crate::cli::RefreshArgs;
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::exit::Exit;
use crate::output::{Output, plural, printable};
use openclaw_terminal::style::{BAD, FAINT, GOOD};

/// The maximum length of a tool's name.
const NAME_CHARS: usize = 64;

pub(super) fn refresh(args: &RefreshArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let (agent_id, server) = (args.context.agent.clone(), args.name.clone());
    let params = RefreshParams { agent_id, server };
    let about = (&args.context, args.name.as_deref());
    with_result::<rpc::McpRefresh>(about, params, edge, output, |result, output| {
        show(result, edge, output)
    })
}

fn show(result: &RefreshResult, edge: &Edge, output: &mut Output) -> Exit {
    if output.json {
        output.value(&json!(result));
    } else if result.servers.is_empty() {
        output.line(super::no_servers(edge));
    } else {
        result.servers.iter().for_each(|server| show_server(server, output));
    }
    let mut failed = result.servers.iter().filter(|server| !server.ok);
    match result.ok {
        true => Exit::Ok,
        false if failed.all(|server| server.needs_login) => Exit::NeedsLogin,
        false => Exit::Unavailable,
    }
}

fn show_server(it: &Refreshed, output: &mut Output) {
    let name = &it.name;
    if let Some(error) = &it.error {
        let look = || format!("run `openclaw mcp doctor {name}`");
        let error = CommandError::unavailable(error).hint(it.hint.clone().unwrap_or_else(look));
        return output.error(&error.with(|failure| failure.last_lines.clone_from(&it.last_lines)));
    }
    let count = |count: Option<u64>, thing| {
        plural(count.and_then(|it| usize::try_from(it).ok()).unwrap_or(0), thing)
    };
    let (tools, resources) = (count(it.tools, "tool"), count(it.resources, "resource"));
    let prompts = count(it.prompts, "prompt");
    output.line(format_args!("{GOOD}✓{GOOD:#} {name}: {tools}, {resources}, {prompts}"));
    let mut is_same = true;
    let marks = [("+", GOOD, &it.added), ("-", BAD, &it.removed), ("~", FAINT, &it.changed)];
    for (mark, style, names) in marks {
        for name in names.iter().flatten() {
            is_same = false;
            let name = clean_line(Untrusted::new(name), NAME_CHARS);
            output.line(format_args!("  {style}{mark}{style:#} {}", printable(&name)));
        }
    }
    if is_same {
        output.line(format_args!("  {FAINT}no changes{FAINT:#}"));
    }
}
