//! Connecting: address, socket, challenge, `connect`, `hello-ok`.

use std::time::Duration;

use serde::Serialize;
use tokio::net::TcpStream;
use tungstenite::client::IntoClientRequest as _;

use super::device::Handshake;
use super::{Address, ConnectError, ConnectOptions, tls};
use crate::PROTOCOL_VERSION;
use crate::connect::{Auth, Challenge, ConnectParams, HelloOk};
use crate::error::{ErrorShape, detail};
use crate::event::names;
use crate::frame::{self, Frame};
use crate::method::Method;
use crate::socket::{SendLimits, Socket, SocketError, Tcp};

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

pub(super) async fn dial(options: &ConnectOptions) -> Result<(Socket, HelloOk), ConnectError> {
    let address = Address::parse(&options.url)?;
    if !address.is_tls() && !address.is_loopback() && !options.allow_plaintext {
        return Err(ConnectError::Plaintext(address.to_string()));
    }
    let stream = TcpStream::connect((address.host(), address.port())).await;
    let stream = stream.and_then(|stream| {
        stream.set_nodelay(true)?;
        Ok(stream)
    });
    let stream = stream
        .map_err(|error| ConnectError::Unreachable { address: address.to_string(), error })?;
    let stream = match address.is_tls() {
        true => tls::secure(stream, &address, options.fingerprint).await?,
        false => Tcp::new(stream),
    };
    let request = options.url.as_str().into_client_request();
    let request = request.map_err(|_| ConnectError::Address(options.url.clone()))?;
    let socket = Socket::dialled(stream, request, MAX_MESSAGE, LIMITS).await;
    let mut socket = socket.map_err(|error| ConnectError::NoGateway(error.to_string()))?;
    let hello = shake_hands(&mut socket, options).await?;
    Ok((socket, hello))
}

async fn shake_hands(
    socket: &mut Socket,
    options: &ConnectOptions,
) -> Result<HelloOk, ConnectError> {
    let challenge = wait_for(socket, |frame| match frame {
        Frame::Event { event, payload, .. } if event == names::CONNECT_CHALLENGE => Some(payload),
        _ => None,
    })
    .await?;
    let device = options.device.as_ref().map(|device| {
        let challenge = challenge.as_deref().map_or("null", |payload| payload.get());
        let challenge: Challenge = serde_json::from_str(challenge)?;
        Ok(device.sign(&Handshake {
            challenge: &challenge,
            client: &options.client,
            role: &options.role,
            scopes: &options.scopes,
            token: options.token.as_ref(),
        }))
    });
    let device = device
        .transpose()
        .map_err(|error: serde_json::Error| ConnectError::NoGateway(error.to_string()))?;
    let auth = options.token.clone().map(|token| Auth { token: Some(token), ..Auth::default() });
    let params = ConnectParams {
        min_protocol: PROTOCOL_VERSION,
        max_protocol: PROTOCOL_VERSION,
        client: options.client.clone(),
        caps: Some(options.caps.clone()),
        commands: (!options.commands.is_empty()).then(|| options.commands.clone()),
        computer_use: None,
        worker_runs: None,
        permissions: None,
        path_env: None,
        role: Some(options.role.clone()),
        scopes: Some(options.scopes.clone()),
        device,
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
    Err(ConnectError::NoGateway("it sent no challenge".to_owned()))
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
        Some(detail::PAIRING_REQUIRED) => ConnectError::NotPaired { request: error.request_id() },
        Some(detail::DEVICE_IDENTITY_REQUIRED) => ConnectError::DeviceRequired,
        _ => ConnectError::Refused(error),
    }
}
