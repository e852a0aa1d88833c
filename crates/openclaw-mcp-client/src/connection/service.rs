//! Starts the `rmcp` service of a connection.

use std::io;

use futures_util::future::Either;
use rmcp::model::ProtocolVersion;
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, RunningService, RxJsonRpcMessage, TxJsonRpcMessage,
    serve_client_with_lifecycle,
};
use rmcp::transport::Transport;
use rmcp::{ClientHandler, RoleClient};

use crate::connection::era::Era;
use crate::wire::RmcpPipe;
use crate::wire::http::RmcpHttp;

/// The transport of a local or a remote server. One type for both: the service is generic, and would
/// be compiled for each of them.
pub(crate) enum RmcpTransport {
    Local(RmcpPipe),
    Remote(RmcpHttp),
}

/// Starts the service; returns after `rmcp`'s part of the handshake.
///
/// # Errors
/// If the handshake fails.
pub(crate) async fn serve<H: ClientHandler>(
    handler: H,
    lane: RmcpTransport,
    era: Era,
) -> Result<RunningService<RoleClient, H>, ClientInitializeError> {
    let lifecycle = match era {
        Era::Legacy => ClientLifecycleMode::Initialize,
        Era::Modern => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    };
    // Boxed: the future is large and short-lived.
    Box::pin(serve_client_with_lifecycle(handler, lane, lifecycle)).await
}

impl Transport<RoleClient> for RmcpTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        match self {
            Self::Local(lane) => Either::Left(lane.send(message)),
            Self::Remote(lane) => Either::Right(lane.send(message)),
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        match self {
            Self::Local(lane) => lane.receive().await,
            Self::Remote(lane) => lane.receive().await,
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        match self {
            Self::Local(lane) => lane.close().await,
            Self::Remote(lane) => lane.close().await,
        }
    }
}
