//! `/mcp`: the hub for clients of other programs, over Streamable HTTP, or as lines for a process of
//! this program.

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use openclaw_budget::ByteBudget;
use openclaw_mcp_server::hub::{HubClientOptions, lines};
use openclaw_protocol::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::CallerService;
use super::bearer::authenticate;
use super::body::ResponseBody;
use super::listener::Gate;
use super::request_info::{RequestInfo, Upgrade};
use crate::tokens::TokenInUse;

/// The path of the hub.
pub(super) const PATH: &str = "/mcp";
/// The protocol of lines, in the header `Upgrade`.
pub const LINES: &str = "openclaw-mcp-lines";
/// How often a token is checked while it is in use.
const CHECK: Duration = Duration::from_secs(30);

/// A client that sends lines.
#[derive(Debug)]
pub(super) struct LineClient {
    options: HubClientOptions,
    token: Option<TokenInUse>,
    budget: Arc<ByteBudget>,
}

/// Handles a request to [`PATH`]. `Host` and `Origin` were checked.
pub(super) async fn handle(
    desk: &dyn CallerService,
    gate: &Gate,
    visit: &RequestInfo,
    request: Request<Incoming>,
) -> Response<ResponseBody> {
    let Some((hub, http)) = desk.hub() else { return respond(StatusCode::NOT_FOUND) };
    let principal = match authenticate(request.headers(), visit, gate, Method::ToolsInvoke.scope())
    {
        Ok(principal) => principal,
        Err(response) => return response.map(ResponseBody::from),
    };
    visit.is_authenticated();
    let wants_lines = request.headers().get(header::UPGRADE).is_some_and(|it| it == LINES);
    if !wants_lines {
        let budget = gate.budgets.of(&principal);
        return http.handle(request, &budget).await.map(ResponseBody::from);
    }
    let options = match HubClientOptions::from_query(request.uri().query().unwrap_or_default()) {
        Ok(options) => options,
        Err(error) => return respond((StatusCode::BAD_REQUEST, error.to_string())),
    };
    // Here, where there is a way to report it.
    if let Err(error) = hub.check(&options) {
        return respond((StatusCode::BAD_REQUEST, error.to_string()));
    }
    let token = TokenInUse::of(gate.options.tokens.as_ref(), &principal);
    let budget = gate.budgets.of(&principal);
    visit.upgrade_to(Upgrade::Lines(Box::new(LineClient { options, token, budget })));
    let headers = [(header::CONNECTION, "upgrade"), (header::UPGRADE, LINES)];
    respond((StatusCode::SWITCHING_PROTOCOLS, headers))
}

fn respond(response: impl IntoResponse) -> Response<ResponseBody> {
    response.into_response().map(ResponseBody::from)
}

/// Serves a client that sends lines, until it disconnects or its token is revoked.
pub(super) async fn serve_lines(
    desk: &dyn CallerService,
    stream: TcpStream,
    read: Vec<u8>,
    lines: Box<LineClient>,
) {
    let Some((hub, _)) = desk.hub() else { return };
    let LineClient { options, mut token, budget } = *lines;
    let (input, mut output) = stream.into_split();
    let revoked = async {
        while token.as_mut().is_none_or(TokenInUse::is_valid) {
            sleep(CHECK).await;
        }
    };
    let input = Cursor::new(read).chain(input);
    let served = tokio::select! {
        served = lines::serve(&hub, options, &budget, input, &mut output) => served,
        () = revoked => Ok(()),
    };
    if let Err(error) = served {
        tracing::debug!(%error, "the connection to a hub client ended");
    }
    let _ = output.shutdown().await;
}
