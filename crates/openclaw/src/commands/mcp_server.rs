//! `openclaw mcp-server`: an MCP server for other programs, over stdin and stdout.

use openclaw_mcp_server::{McpServerOptions, serve_stdio};

use super::link::{ClientRole, GatewayTarget, Need, StdioGateway};
use crate::cli::McpServerArgs;
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::output::Output;

/// Serves until stdin closes.
pub(crate) fn serve(args: &McpServerArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    match args.hub.hub {
        true => super::hub::serve(args, edge, output),
        false => order(args, edge, output),
    }
}

/// Serves `order_openclaw`.
fn order(args: &McpServerArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    if let Some(folder) = args.order.attach_from.iter().find(|folder| !folder.is_dir()) {
        let words = format!("`--attach-from {}` is not a folder", folder.display());
        return Err(CommandError::usage(words));
    }
    let need = Need::Agents(ClientRole::Chatting);
    let target = GatewayTarget::find(&args.gateway, edge)?;
    let gateway = StdioGateway { target, need, edge };
    gateway.serve(output, |client, _| {
        let stopped = client.stopped();
        let options = McpServerOptions {
            // A client that cannot be asked: what needs an approval is decided by the fallback.
            connect: client.connect_as(ClientRole::Serving),
            connect_asking: client.connect,
            agent: args.order.agent.clone(),
            folders: args.order.attach_from.clone(),
            pdf: edge.pdf_reader(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            tracer: edge.tracer.clone(),
        };
        async { serve_stdio(options, stopped).await.map_err(|error| error.to_string()) }
    })
}
