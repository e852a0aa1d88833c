//! The server for other programs: `order_openclaw` and the tools around it, a client of the gateway's
//! `Surface`.

mod client;
mod handler;

use std::sync::Arc;

use rmcp::transport::stdio_pipes;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::front::lines::{self, LineClient, LineError, LineLimits};
use crate::order::{McpServerOptions, Orders};
use client::ServerClient;
use handler::ServerHandler;

/// Attachments of 20 MB in base64, a message, and some room. Messages to agents are far fewer than requests
/// in progress, so that some of them end soon.
const LIMITS: LineLimits = LineLimits { line: 32 * 1024 * 1024, requests: 256 };

/// Why the server stopped before its client disconnected.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct McpServerError(#[from] LineError);

/// Serves the client on stdin and stdout until stdin closes or `stopped` is ready.
///
/// # Errors
/// If the client sends a line too slowly or without memory for it, or the connection breaks.
pub async fn serve_stdio(
    options: McpServerOptions,
    stopped: impl Future<Output = ()>,
) -> Result<(), McpServerError> {
    let (input, output) = stdio_pipes();
    serve(options, input, output, stopped).await
}

/// Serves the client at the other end of two streams until `input` closes or `stopped` is ready.
/// Running messages are aborted then.
///
/// # Errors
/// If the client sends a line too slowly or without memory for it, or the connection breaks.
pub async fn serve(
    options: McpServerOptions,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
    stopped: impl Future<Output = ()>,
) -> Result<(), McpServerError> {
    let lines = LineClient::local();
    let orders = Arc::new(Orders::new(options));
    let client = Arc::new(ServerClient::new(Arc::clone(&orders), &lines));
    let handler = ServerHandler::new(Arc::clone(&client));
    let calls = Some(Arc::clone(&client));
    let served = tokio::select! {
        served = Box::pin(lines::serve(lines, LIMITS, calls, handler, input, output)) => served,
        () = stopped => Ok(()),
    };
    client.cancel_waiting();
    orders.finish().await;
    Ok(served?)
}
