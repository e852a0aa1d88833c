//! `/mcp`: the hub for clients of other programs, over Streamable HTTP, or as lines for a process of
//! this program.

use std::io::Cursor;

use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use openclaw_mcp_server::hub::{HubCaller, HubClientOptions, lines};
use openclaw_protocol::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::CallerService;
use super::bearer::authenticate;
use super::body::ResponseBody;
use super::connection_info::{ConnectionInfo, Upgrade};
use super::listener::{Ending, Gate};
use crate::tokens::TokenInUse;

/// The path of the hub.
pub(super) const PATH: &str = "/mcp";
/// The protocol of lines, in the header `Upgrade`.
pub const LINES: &str = "openclaw-mcp-lines";

/// A client that sends lines.
#[derive(Debug)]
pub(super) struct HubSocket {
    caller: HubCaller,
    options: HubClientOptions,
    token: Option<TokenInUse>,
}

/// Handles a request to [`PATH`]. `Host` and `Origin` were checked.
pub(super) async fn handle(
    service: &dyn CallerService,
    gate: &Gate,
    connection: &ConnectionInfo,
    request: Request<Incoming>,
) -> Response<ResponseBody> {
    let Some((hub, http)) = service.hub() else { return respond(StatusCode::NOT_FOUND) };
    let principal =
        match authenticate(request.headers(), connection, gate, Method::ToolsInvoke.scope()) {
            Ok(principal) => principal,
            Err(response) => return response.map(ResponseBody::from),
        };
    connection.is_authenticated();
    let wants_lines = request.headers().get(header::UPGRADE).is_some_and(|it| it == LINES);
    if !wants_lines {
        let caller = HubCaller { budget: gate.budgets.of(&principal), principal };
        return http.handle(&caller, request).await.map(ResponseBody::from);
    }
    let options = match HubClientOptions::from_query(request.uri().query().unwrap_or_default()) {
        Ok(options) => options,
        Err(error) => return respond((StatusCode::BAD_REQUEST, error.to_string())),
    };
    // Here, where there is a way to report it.
    if let Err(error) = hub.check(&options) {
        return respond((StatusCode::BAD_REQUEST, error.to_string()));
    }
    let token = TokenInUse::new(gate.options.tokens.as_ref(), &principal);
    let caller = HubCaller { budget: gate.budgets.of(&principal), principal };
    connection.upgrade_to(Upgrade::Lines(Box::new(HubSocket { caller, options, token })));
    let headers = [(header::CONNECTION, "upgrade"), (header::UPGRADE, LINES)];
    respond((StatusCode::SWITCHING_PROTOCOLS, headers))
}

fn respond(response: impl IntoResponse) -> Response<ResponseBody> {
    response.into_response().map(ResponseBody::from)
}

/// Serves a client that sends lines, until it disconnects or its token is revoked.
pub(super) async fn serve_lines(
    service: &dyn CallerService,
    gate: &Gate,
    stream: TcpStream,
    read: Vec<u8>,
    lines: Box<HubSocket>,
) {
    let Some((hub, _)) = service.hub() else { return };
    let HubSocket { caller, options, mut token } = *lines;
    let (input, mut output) = stream.into_split();
    let revoked = async {
        while token.as_mut().is_none_or(TokenInUse::is_valid) {
            sleep(gate.options.limits.tick).await;
        }
    };
    let input = Cursor::new(read).chain(input);
    let served = tokio::select! {
        served = lines::serve(&hub, caller, options, input, &mut output) => served,
        () = revoked => Ok(()),
    };
    if let Err(error) = served {
        tracing::debug!(%error, "the connection to a hub client ended");
    }
    let _ = output.shutdown().await;
}

/// Ends what belongs to tokens that were revoked, until the gateway stops.
pub(super) async fn end_revoked(service: &dyn CallerService, gate: &Gate, ending: &Ending) {
    let (Some((_, http)), Some(tokens)) = (service.hub(), &gate.options.tokens) else { return };
    loop {
        tokio::select! {
            () = ending.begun() => return,
            () = sleep(gate.options.limits.tick) => {}
        }
        // Read if there is such a token, and once for all of them.
        let mut valid = None;
        http.end_revoked(|principal| {
            let valid = valid.get_or_insert_with(|| tokens.principals());
            valid.contains(principal)
        });
    }
}
