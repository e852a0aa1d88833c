//! `openclaw mcp-server`: an MCP server for other programs, over stdin and stdout.

use std::path::Path;

use openclaw_mcp_server::{Options, serve_stdio};

use super::link::{Beside, Need, Role};
use super::{block_on, load_config_at, log_warnings};
use crate::cli::McpServerArgs;
use crate::edge::Edge;
use crate::error::{CommandResult, Context as _};
use crate::output::Output;
use crate::signals::Signals;

/// Serves until stdin closes.
pub(crate) fn serve(
    args: &McpServerArgs,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    // The hub branches off here.
    order(args, flag, edge, output)
}

/// Serves `order_openclaw`.
fn order(
    args: &McpServerArgs,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    let paths = edge.paths(flag)?;
    block_on(async {
        // Before any process is spawned: from here on, a signal must not leave one behind.
        let mut signals = Signals::listen().context("cannot start")?;
        let (config, report) = load_config_at(&paths, edge, output)?;
        log_warnings(&report);
        // No user is present: what needs an approval is decided by the configured fallback.
        let need = Need::Agents(Role::Script);
        let gateway = Beside { choice: &args.gateway, need, paths: &paths, edge };
        let serve = async |connect| {
            let options = Options {
                connect,
                agent: args.order.agent.clone(),
                folders: args.order.attach_from.clone(),
                pdf: edge.pdf_reader(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            };
            serve_stdio(options).await.map_err(|error| error.to_string())
        };
        gateway.serve(config, &mut signals, output, serve).await
    })
}
