//! `openclaw mcp reload`: makes the running gateway reload its configuration.

use openclaw_protocol::mcp::{ReloadResult, ServersParams};
use openclaw_protocol::{ask, rpc};
use serde_json::json;

use crate::cli::ReloadArgs;
use crate::commands::link::with_running;
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::exit::Exit;
use crate::output::{Output, printable};
use openclaw_terminal::style::{BAD, FAINT, GOOD};

pub(super) fn reload(args: &ReloadArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let exit = with_running(edge, output, async |surface, output| {
        let params = ServersParams { agent_id: args.whose.agent.clone() };
        let result = ask::<rpc::McpReload>(surface, params).await?;
        show(&result, output)
    })?;
    exit.ok_or_else(|| {
        CommandError::unavailable("the gateway is not running; nothing to reload").hint(
            "run `openclaw gateway start` to start it; without it, commands read the file each time",
        )
    })
}

fn show(result: &ReloadResult, output: &mut Output) -> CommandResult {
    if output.json {
        output.value(&json!(result));
    }
    if !result.ok {
        let issues: Vec<String> = result.issues.iter().map(ToString::to_string).collect();
        let message = "the new configuration has errors; the old one stays active";
        return Err(CommandError::new(Exit::Config, message)
            .cause(issues.join("; "))
            .hint("run `openclaw config validate` to see them"));
    }
    if output.json {
        return Ok(Exit::Ok);
    }
    let marks = [
        ("+", GOOD, &result.added, "added"),
        ("-", BAD, &result.removed, "removed"),
        ("~", FAINT, &result.restarted, "restarted"),
        ("~", FAINT, &result.updated, "updated, still running"),
    ];
    let mut is_same = true;
    for (mark, style, names, what) in marks {
        for name in names {
            is_same = false;
            let name = printable(name);
            output.line(format_args!("{style}{mark}{style:#} {name} {FAINT}({what}){FAINT:#}"));
        }
    }
    if is_same {
        output.line("no changes to servers");
    }
    Ok(Exit::Ok)
}
