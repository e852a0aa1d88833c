//! `openclaw mcp servers`: starts all servers, and shows their state.

use std::collections::BTreeMap;

use openclaw_gateway::mcp::{ListStyle, server_list};
use openclaw_mcp::server::StartMode;
use openclaw_mcp::server::status::{AuthKind, ServerStatus};
use openclaw_protocol::mcp::{GrantInfo, ServersParams, ServersResult};
use openclaw_protocol::rpc;
use serde_json::json;

use super::shell::{servers_of, with_shell};
use super::status::login;
use crate::cli::ServersArgs;
use crate::commands::link::{Servers, missing_servers};
use crate::edge::Edge;
use crate::error::CommandResult;
use crate::exit::Exit;
use crate::output::{BAD, FAINT, GOOD, Output, STRONG, WARNING};

pub(super) fn servers(args: &ServersArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let servers = Servers { start: StartMode::Eager, ..servers_of(&args.context, edge) };
    with_shell(servers, edge, output, async |shell, output| {
        shell.tried().await;
        let params = ServersParams { agent_id: args.context.agent.clone() };
        let result = shell.ask::<rpc::McpServers>(params, None).await?;
        let servers = result.servers.iter();
        let statuses: Vec<ServerStatus> =
            servers.filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect();
        let mut logins = BTreeMap::new();
        for status in statuses.iter().filter(|it| output.json && it.auth == AuthKind::OAuth) {
            if let Some(grant) = login(shell, &args.context, status).await {
                logins.insert(status.name.clone(), grant);
            }
        }
        tell(&result, &statuses, &logins, edge, output)
    })
}

fn tell(
    result: &ServersResult,
    statuses: &[ServerStatus],
    logins: &BTreeMap<String, GrantInfo>,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    if output.json {
        let mut value = json!(result);
        for server in value["servers"].as_array_mut().into_iter().flatten() {
            let login = server["name"].as_str().and_then(|name| logins.get(name));
            if let Some(login) = login {
                server["login"] = json!(login);
            }
        }
        output.value(&value);
    } else if statuses.is_empty() {
        output.line(super::no_servers(edge));
    } else {
        show(statuses, output);
    }
    match result.missing.is_empty() {
        true => Ok(Exit::Ok),
        // The result itself reports them.
        false if output.json => Ok(Exit::Unavailable),
        false => Err(missing_servers(&result.missing)),
    }
}

/// Shows servers with their state.
pub(crate) fn show(statuses: &[ServerStatus], output: &mut Output) {
    let width = usize::from(output.width());
    let (strong, faint, good, warning, bad) = (STRONG, FAINT, GOOD, WARNING, BAD);
    let style = ListStyle { width, strong, faint, good, warning, bad };
    output.laid_out(&server_list(statuses, &style));
}
