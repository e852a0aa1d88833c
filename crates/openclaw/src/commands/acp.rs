//! `openclaw acp`: an agent for editors, over stdin and stdout.

use std::path::Path;
use std::time::Duration;

use openclaw_acp::{Options, ServerSetup, serve};
use openclaw_mcp::call::bridge::CallServices;

use super::link::{self, Beside, Need, Role, keep};
use super::{block_on, load_config_at, log_warnings};
use crate::cli::AcpArgs;
use crate::edge::Edge;
use crate::error::{CommandResult, Context as _};
use crate::output::Output;
use crate::signals::Signals;

/// How long the first prompt waits for MCP servers of the editor.
const SERVERS: Duration = Duration::from_secs(20);

pub(crate) fn acp(
    args: &AcpArgs,
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
        let services =
            CallServices { spill: keep::spill(&paths.state, output), ..CallServices::none() };
        let servers = ServerSetup {
            context: link::dial_context(&config, &paths, edge),
            config: config.clone(),
            services,
            patience: SERVERS,
        };
        // The user can be asked, through the editor.
        let need = Need::Agents(Role::Chatting);
        let gateway = Beside { choice: &args.gateway, need, paths: &paths, edge };
        let agent = args.agent.clone();
        let serve = async |connect| {
            let version = env!("CARGO_PKG_VERSION").to_owned();
            let options = Options { connect, agent, servers, version };
            let served = serve(options, tokio::io::stdin(), tokio::io::stdout()).await;
            served.map_err(|error| error.to_string())
        };
        gateway.serve(config, &mut signals, output, serve).await
    })
}
