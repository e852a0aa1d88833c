//! `openclaw mcp status`: the details of one server (L9).

use std::path::Path;

use comfy_table::{Attribute, Cell};
use openclaw_gateway::mcp::status_rows;
use openclaw_mcp::fleet::StartMode;
use openclaw_mcp::server::status::{ServerState, ServerStatus};
use openclaw_protocol::mcp::ServerParams;
use openclaw_protocol::rpc;
use serde_json::json;

use super::shell::{servers_of, with_shell};
use crate::cli::StatusArgs;
use crate::commands::link::Servers;
use crate::edge::Edge;
use crate::error::{CommandResult, Context as _};
use crate::exit::Exit;
use crate::output::{Output, printable};

pub(super) fn status(
    args: &StatusArgs,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    // Started if it is not running: the reason of a failure is part of the status.
    let start = StartMode::Only(args.name.clone());
    let servers = Servers { start, ..servers_of(&args.context, edge) };
    with_shell(servers, flag, edge, output, async |shell, output| {
        shell.tried().await;
        let (agent_id, server) = (args.context.agent.clone(), args.name.clone());
        let params = ServerParams { agent_id, server };
        let status = shell.ask::<rpc::McpStatus>(params, Some(&args.name)).await?;
        let status: ServerStatus =
            serde_json::from_str(status.get()).context("cannot read the status")?;
        Ok(show(&status, output))
    })
}

fn show(status: &ServerStatus, output: &mut Output) -> Exit {
    let exit = match status.state {
        ServerState::Ready | ServerState::Idle => Exit::Ok,
        _ => Exit::Unavailable,
    };
    if output.json {
        output.value(&json!(status));
        return exit;
    }
    output.table(status_rows(status).into_iter().map(|(key, value)| {
        vec![Cell::new(key).add_attribute(Attribute::Bold), Cell::new(printable(&value))]
    }));
    exit
}
