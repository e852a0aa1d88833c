//! `openclaw acp`: an agent for editors, over stdin and stdout.

use std::time::Duration;

use openclaw_acp::{AcpOptions, ServerSetup, serve};
use openclaw_mcp::call::bridge::CallServices;
use openclaw_mcp_server::hub::stdio;

use super::link::{self, ClientRole, GatewayTarget, Need, StdioGateway, state_files};
use super::workspace::EditorFolders;
use crate::cli::AcpArgs;
use crate::edge::Edge;
use crate::error::CommandResult;
use crate::output::Output;

/// How long the first prompt waits for MCP servers of the editor.
const SERVERS: Duration = Duration::from_secs(20);

pub(crate) fn acp(args: &AcpArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    // The user can be asked, through the editor.
    let need = Need::Agents(ClientRole::Chatting);
    let max_servers = edge.editor_limit("OPENCLAW_ACP_MAX_SERVERS")?;
    let max_tools = edge.editor_limit("OPENCLAW_ACP_MAX_TOOLS")?;
    let target = GatewayTarget::find(&args.gateway, edge)?;
    let is_elsewhere = target.named().is_some();
    let gateway = StdioGateway { target, need, edge };
    gateway.serve(output, |client, output| {
        let mut config = client.config;
        config.acp.max_servers = max_servers.unwrap_or(config.acp.max_servers);
        config.acp.max_tools = max_tools.unwrap_or(config.acp.max_tools);
        let editor_folders = EditorFolders::new(&config, &client.paths, is_elsewhere, edge);
        let spill = state_files::spill(&client.paths.state, output);
        let servers = ServerSetup {
            context: link::dial_context(&config, &client.paths, edge),
            config,
            services: CallServices { spill, tracer: edge.tracer.clone(), ..CallServices::none() },
            patience: SERVERS,
        };
        let options = AcpOptions {
            connect: client.connect,
            works_in: Box::new(move |agent, folder| editor_folders.are_used(agent, folder)),
            agent: args.agent.clone(),
            folder: edge.folder(),
            servers,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        async {
            let (input, out) = stdio();
            let served = serve(options, input, out).await;
            served.map_err(|error| error.to_string())
        }
    })
}
