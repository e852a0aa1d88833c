//! `openclaw mcp status`: the details of one server (L9).

use comfy_table::{Attribute, Cell};
use openclaw_gateway::mcp::status_rows;
use openclaw_mcp::server::StartMode;
use openclaw_mcp::server::status::{ActiveTransport, ServerState, ServerStatus};
use openclaw_protocol::mcp::{AuthAction, AuthParams, GrantInfo, ServerParams};
use openclaw_protocol::rpc;
use serde_json::json;

use super::shell::{Shell, servers_of, with_shell};
use crate::cli::{ContextArgs, StatusArgs};
use crate::commands::link::{Servers, look};
use crate::edge::Edge;
use crate::error::{CommandResult, Context as _};
use crate::exit::Exit;
use crate::output::{Output, printable};

pub(super) fn status(args: &StatusArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    // Started if it is not running: the reason of a failure is part of the status.
    let start = StartMode::Only(args.name.clone());
    let servers = Servers { start, ..servers_of(&args.context, edge) };
    with_shell(servers, edge, output, async |shell, output| {
        shell.tried().await;
        let (agent_id, server) = (args.context.agent.clone(), args.name.clone());
        let params = ServerParams { agent_id, server };
        let status = shell.ask::<rpc::McpStatus>(params, Some(&args.name)).await?;
        let status: ServerStatus =
            serde_json::from_str(status.get()).context("cannot read the status")?;
        let login = login(shell, &args.context, &status).await;
        Ok(show(&status, login.as_ref(), output))
    })
}

/// Returns the login at a server, if it has one.
pub(super) async fn login(
    shell: &Shell<'_>,
    context: &ContextArgs,
    status: &ServerStatus,
) -> Option<GrantInfo> {
    if status.transport == ActiveTransport::Stdio {
        return None;
    }
    let params = AuthParams {
        agent_id: context.agent.clone(),
        server: status.name.clone(),
        action: Some(AuthAction::Status),
        ..AuthParams::default()
    };
    look::<rpc::McpAuth>(shell.surface, params).await.ok()?.grant
}

fn show(status: &ServerStatus, login: Option<&GrantInfo>, output: &mut Output) -> Exit {
    let exit = match status.state {
        ServerState::Ready | ServerState::Idle => Exit::Ok,
        ServerState::NeedsAuth => Exit::NeedsLogin,
        _ => Exit::Unavailable,
    };
    if output.json {
        let mut value = json!(status);
        if let Some(login) = login {
            value["login"] = json!(login);
        }
        output.value(&value);
        return exit;
    }
    output.table(status_rows(status, login).into_iter().map(|(key, value)| {
        vec![Cell::new(key).add_attribute(Attribute::Bold), Cell::new(printable(&value))]
    }));
    exit
}
