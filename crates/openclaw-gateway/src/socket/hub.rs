//! `/mcp`: the hub for clients of other programs, over Streamable HTTP, or as lines for a process of
//! this program.

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use openclaw_mcp_server::hub::{ClientOptions, lines};
use openclaw_protocol::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::CallerService;
use super::access::Access;
use super::bearer::authenticate;
use super::listener::Gate;
use super::visit::{RequestInfo, Upgrade};
use crate::tokens::TokenInUse;

/// The protocol of lines, in the header `Upgrade`.
pub const LINES: &str = "openclaw-mcp-lines";
/// How often a token is checked while it is in use.
const CHECK: Duration = Duration::from_secs(30);

/// A client that sends lines.
#[derive(Debug)]
pub(super) struct Lines {
    options: ClientOptions,
    token: Option<TokenInUse>,
}

/// Handles a request to `/mcp`. `Host` and `Origin` were checked.
pub(super) async fn handle(
    State(desk): State<Arc<dyn CallerService>>,
    Extension(gate): Extension<Arc<Gate>>,
    Extension(visit): Extension<RequestInfo>,
    request: Request,
) -> Response {
    let Some((_, http)) = desk.hub() else { return StatusCode::NOT_FOUND.into_response() };
    let access = match authenticate(request.headers(), &visit, &gate, Method::ToolsInvoke.scope()) {
        Ok(access) => access,
        Err(response) => return *response,
    };
    visit.is_authenticated();
    let wants_lines = request.headers().get(header::UPGRADE).is_some_and(|it| it == LINES);
    if !wants_lines {
        return http.handle(request).await.map(Body::new);
    }
    let options = match ClientOptions::from_query(request.uri().query().unwrap_or_default()) {
        Ok(options) => options,
        Err(error) => return (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    };
    let token = match (&gate.options.tokens, &access) {
        (Some(tokens), Access::Token(token)) => Some(TokenInUse::new(tokens, token)),
        _ => None,
    };
    visit.upgrade_to(Upgrade::Lines(Box::new(Lines { options, token })));
    let headers = [(header::CONNECTION, "upgrade"), (header::UPGRADE, LINES)];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

/// Serves a client that sends lines, until it disconnects or its token is revoked.
pub(super) async fn serve_lines(
    desk: &dyn CallerService,
    stream: TcpStream,
    read: Vec<u8>,
    lines: Box<Lines>,
) {
    let Some((hub, _)) = desk.hub() else { return };
    let Lines { options, mut token } = *lines;
    let (input, mut output) = stream.into_split();
    let revoked = async {
        while token.as_mut().is_none_or(TokenInUse::is_valid) {
            sleep(CHECK).await;
        }
    };
    let input = Cursor::new(read).chain(input);
    let served = tokio::select! {
        served = lines::serve(&hub, options, input, &mut output) => served,
        () = revoked => Ok(()),
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a client of the hub is gone");
    }
    let _ = output.shutdown().await;
}
