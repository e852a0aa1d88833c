//! Connecting: address, socket, challenge, `connect`, `hello-ok`.

use std::time::Duration;

use http::Uri;
use serde::Serialize;
use tokio::net::TcpStream;
use tungstenite::client::IntoClientRequest as _;

use super::{ConnectError, Options};
use crate::PROTOCOL_VERSION;
use crate::connect::{Auth, ConnectParams, HelloOk};
use crate::error::{ErrorShape, detail};
use crate::event::names;
use crate::frame::{self, Frame};
use crate::method::Method;
use crate::socket::{SendLimits, Socket, SocketError};

/// Maximum size of a received message. Gateways send larger messages than they accept.
const MAX_MESSAGE: usize = 64 * 1024 * 1024;
/// Send limits, for a gateway that does not read.
const LIMITS: SendLimits =
    SendLimits { bytes: 64 * 1024 * 1024, frames: 256, pause: 1, stall: Duration::from_secs(30) };
/// Maximum number of frames received before the expected one.
const MAX_PREAMBLE: usize = 16;
/// Default retry delay, if a gateway does not specify one.
const RETRY: Duration = Duration::from_secs(60);
/// Id of the first request; later ones are numbers.
const CONNECT_ID: &str = "connect";

pub(super) async fn dial(options: &Options) -> Result<(Socket, HelloOk), ConnectError> {
    let (host, port) = address(&options.url)?;
    let stream = TcpStream::connect((&*host, port)).await.and_then(|stream| {
        stream.set_nodelay(true)?;
        Ok(stream)
    });
    let stream = stream
        .map_err(|error| ConnectError::Unreachable { address: format!("{host}:{port}"), error })?;
    let request = options.url.as_str().into_client_request();
    let request = request.map_err(|_| ConnectError::Address(options.url.clone()))?;
    let socket = Socket::dialled(stream, request, MAX_MESSAGE, LIMITS).await;
    let mut socket = socket.map_err(|error| ConnectError::NoGateway(error.to_string()))?;
    let hello = shake_hands(&mut socket, options).await?;
    Ok((socket, hello))
}

fn address(url: &str) -> Result<(String, u16), ConnectError> {
    let wrong = || ConnectError::Address(url.to_owned());
    let uri: Uri = url.parse().map_err(|_| wrong())?;
    // This client has no TLS: gateways listen on the local host.
    if uri.scheme_str() != Some("ws") {
        return Err(wrong());
    }
    let host = uri.host().ok_or_else(wrong)?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Ok((host.to_owned(), uri.port_u16().unwrap_or(80)))
}

async fn shake_hands(socket: &mut Socket, options: &Options) -> Result<HelloOk, ConnectError> {
    wait_for(socket, |frame| match frame {
        Frame::Event { event, .. } if event == names::CONNECT_CHALLENGE => Some(()),
        _ => None,
    })
    .await?;
    let auth = options.token.clone().map(|token| Auth { token: Some(token), ..Auth::default() });
    let params = ConnectParams {
        min_protocol: PROTOCOL_VERSION,
        max_protocol: PROTOCOL_VERSION,
        client: options.client.clone(),
        caps: Some(options.caps.clone()),
        commands: None,
        computer_use: None,
        worker_runs: None,
        permissions: None,
        path_env: None,
        role: Some(options.role.clone()),
        scopes: Some(options.scopes.clone()),
        device: None,
        auth,
        locale: None,
        user_agent: None,
    };
    socket.queue(connect(&params)?).map_err(|broken| lost(&broken))?;
    let outcome = wait_for(socket, |frame| match frame {
        Frame::Response { id, outcome } if id == CONNECT_ID => Some(outcome),
        _ => None,
    })
    .await?;
    let payload = outcome.map_err(refused)?;
    let payload = payload.as_deref().map_or("null", |payload| payload.get());
    serde_json::from_str(payload).map_err(|error| ConnectError::NoGateway(error.to_string()))
}

fn connect(params: &impl Serialize) -> Result<String, ConnectError> {
    let text = serde_json::value::to_raw_value(params)
        .and_then(|params| frame::request(CONNECT_ID, Method::Connect.name(), Some(&params), None));
    text.map_err(|error| ConnectError::NoGateway(error.to_string()))
}

/// Reads frames until `wanted` accepts one.
async fn wait_for<T>(
    socket: &mut Socket,
    wanted: impl Fn(Frame) -> Option<T>,
) -> Result<T, ConnectError> {
    for _ in 0..MAX_PREAMBLE {
        let text = socket.message().await.map_err(|broken| lost(&broken))?;
        let frame = Frame::parse(text.as_str());
        let frame = frame.map_err(|error| ConnectError::NoGateway(error.to_string()))?;
        if let Some(found) = wanted(frame) {
            return Ok(found);
        }
    }
    Err(ConnectError::NoGateway("no handshake".to_owned()))
}

fn lost(broken: &SocketError) -> ConnectError {
    ConnectError::NoGateway(broken.to_string())
}

fn refused(error: ErrorShape) -> ConnectError {
    match error.detail().as_deref() {
        Some(detail::AUTH_TOKEN_MISSING) => ConnectError::TokenMissing,
        Some(detail::AUTH_TOKEN_MISMATCH) => ConnectError::TokenMismatch,
        Some(detail::AUTH_RATE_LIMITED) => ConnectError::RateLimited {
            retry_after: error.retry_after_ms.map_or(RETRY, Duration::from_millis),
        },
        Some(detail::PROTOCOL_MISMATCH) => ConnectError::ProtocolMismatch(error),
        _ => ConnectError::Refused(error),
    }
}
