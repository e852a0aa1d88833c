//! `openclaw demo-server`: an MCP server to try clients with, on stdin and stdout.

use crate::exit::Exit;
use crate::output::Output;

/// Serves until stdin closes.
pub(crate) fn run(output: &mut Output) -> Exit {
    // One thread: it starts at once, and a demonstration needs no more.
    let outcome = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())
        .and_then(|runtime| {
            let served = runtime.block_on(openclaw_mcp_server::demo::serve_stdio());
            // A thread that waits for input must not keep the program from ending.
            runtime.shutdown_background();
            served.map_err(|error| error.to_string())
        });
    match outcome {
        Ok(()) => Exit::Ok,
        Err(error) => {
            let hint = "it is meant to be started by an MCP client, which speaks first";
            output.problem(&error, Some(hint));
            Exit::Failed
        }
    }
}
