//! `openclaw demo-server`: an MCP server on stdin and stdout, for testing clients.

use super::block_on;
use crate::error::{CommandError, CommandResult};
use crate::exit::Exit;

/// Serves until stdin closes.
pub(crate) fn run() -> CommandResult {
    block_on(async {
        openclaw_mcp_server::demo::serve_stdio().await.map_err(|error| {
            CommandError::failed(error.to_string()).hint("start it from an MCP client")
        })
    })?;
    Ok(Exit::Ok)
}
