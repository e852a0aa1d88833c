//! `openclaw mcp refresh`: lists what servers have anew, and tells what has changed.

use std::path::Path;

use openclaw_content::{Untrusted, clean_line};
use openclaw_gateway::mcp;
use openclaw_protocol::mcp::{RefreshParams, RefreshResult, Refreshed};
use openclaw_protocol::rpc;
use serde_json::json;

use super::beside::beside;
use super::host::{Need, tell, with_session};
use crate::cli::RefreshArgs;
use crate::edge::Edge;
use crate::exit::Exit;
use crate::output::{BAD, FAINT, GOOD, Output, plural, printable};

/// How much of a tool's name is shown.
const NAME_CHARS: usize = 64;

pub(super) fn refresh(
    args: &RefreshArgs,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
) -> Exit {
    let exit = beside(&args.by, flag, edge, output, async |gateway, output| {
        let (agent_id, server) = (args.whose.agent.clone(), args.name.clone());
        let params = RefreshParams { agent_id, server };
        let result: RefreshResult = gateway.ask::<rpc::McpRefresh>(params, output).await?;
        if !output.json {
            result.servers.iter().for_each(|it| show(it, output));
        }
        Ok(conclude(&result, output))
    });
    exit.unwrap_or_else(|| read(args, flag, edge, output))
}

fn read(args: &RefreshArgs, flag: Option<&Path>, edge: &Edge, output: &mut Output) -> Exit {
    let need = Need::of(&args.whose);
    with_session(need, flag, edge, output, async |session, output| {
        let all = match &args.name {
            Some(name) => match session.server(name, output) {
                Ok(server) => vec![server],
                Err(exit) => return exit,
            },
            None => session.tools.servers().iter().collect(),
        };
        let mut servers = Vec::new();
        for server in all {
            let before = session.remembered(server);
            match session.start(server).await {
                Ok(()) => {
                    let it = mcp::refreshed(server, &before);
                    if !output.json {
                        show(&it, output);
                    }
                    servers.push(it);
                }
                Err(unavailable) => {
                    if !output.json {
                        tell(&unavailable, output);
                    }
                    servers.push(mcp::not_refreshed(server, unavailable.reason()));
                }
            }
        }
        conclude(&RefreshResult { ok: servers.iter().all(|it| it.ok), servers }, output)
    })
}

fn conclude(result: &RefreshResult, output: &mut Output) -> Exit {
    if output.json {
        output.value(&json!(result));
    } else if result.servers.is_empty() {
        output.line("There are no servers. `openclaw mcp add` adds one.");
    }
    if result.ok { Exit::Ok } else { Exit::Unavailable }
}

fn show(it: &Refreshed, output: &mut Output) {
    let name = &it.name;
    if let Some(error) = &it.error {
        let hint = format!("`openclaw mcp doctor {name}` looks closer");
        return output.problem(error, Some(&hint));
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
        output.line(format_args!("  {FAINT}nothing has changed{FAINT:#}"));
    }
}
