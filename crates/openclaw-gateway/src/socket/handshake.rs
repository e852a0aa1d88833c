//! The handshake, from the challenge to `hello-ok`.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use openclaw_budget::ByteBudget;
use openclaw_protocol::connect::{
    Challenge, ConnectParams, Features, Granted, HelloKind, HelloOk, Policy, ServerInfo,
};
use openclaw_protocol::frame::{self, Frame};
use openclaw_protocol::socket::{Socket, SocketError};
use openclaw_protocol::{
    ErrorCode, ErrorShape, Method, PROTOCOL_VERSION, Principal, detail, names, params_of,
};
use openclaw_secrets::SecretString;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::Instant;

use super::access::{grant, is_same_machine};
use super::attempts::TokenAttempts;
use super::listener::Gate;
use super::{Caller, CallerService, Endpoint, ListenOptions};
use crate::clock::now_ms;
use crate::tokens::{StoredToken, TokenInUse};

/// Why a connection is rejected.
#[derive(Debug)]
pub(super) enum HandshakeRefusal {
    /// The error was sent; the connection only has to be closed.
    Told {
        /// The close code.
        code: u16,
        /// The close reason.
        reason: &'static str,
    },
    /// The connection is broken, so no error can be sent.
    Socket(SocketError),
}

impl From<SocketError> for HandshakeRefusal {
    fn from(broken: SocketError) -> Self {
        Self::Socket(broken)
    }
}

/// The addresses of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer {
    pub(super) remote: SocketAddr,
    pub(super) local: IpAddr,
}

/// An admitted caller.
#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) surface: Arc<dyn Endpoint>,
    /// The access token that it has authenticated with, if any.
    pub(super) token: Option<TokenInUse>,
    /// The memory of its principal.
    pub(super) budget: Arc<ByteBudget>,
}

/// Performs the handshake. With `Ok`, `hello-ok` is queued.
pub(super) async fn greet(
    socket: &mut Socket,
    peer: Peer,
    gate: &Gate,
    service: &dyn CallerService,
) -> Result<Admitted, HandshakeRefusal> {
    let Gate { options, attempts, budgets } = gate;
    let connection = random_hex();
    let challenge = Challenge { nonce: random_hex(), ts: now_ms() };
    if let Ok(challenge) = to_raw_value(&challenge)
        && let Ok(text) = frame::event(names::CONNECT_CHALLENGE, Some(&challenge), None)
    {
        socket.queue(text)?;
    }
    let text = socket.message().await?;
    let (id, method, params) = match Frame::parse(text.as_str()) {
        Ok(Frame::Request { id, method, params, .. }) => (id, method, params),
        Ok(_) | Err(_) => {
            return Err(HandshakeRefusal::Told { code: 1008, reason: "invalid frame" });
        }
    };
    drop(text);
    let caller = admit(&method, params.as_deref(), peer, connection, options, attempts);
    let welcomed = caller.and_then(|(caller, principal)| {
        let (hello, surface) = welcome(caller, options, service)?;
        let token = TokenInUse::new(options.tokens.as_ref(), &principal);
        Ok((hello, Admitted { surface, token, budget: budgets.of(&principal) }))
    });
    match welcomed {
        Ok((hello, admitted)) => {
            answer(socket, &id, Ok(&hello))?;
            socket.allow(options.limits.message);
            socket.count_in(&admitted.budget);
            Ok(admitted)
        }
        Err(Rejection { error, code, reason }) => {
            answer(socket, &id, Err(&error))?;
            Err(HandshakeRefusal::Told { code, reason })
        }
    }
}

/// The error response, and how to close.
#[derive(Debug)]
pub(super) struct Rejection {
    pub(super) error: ErrorShape,
    code: u16,
    reason: &'static str,
}

impl Rejection {
    fn new(error: ErrorShape, reason: &'static str) -> Self {
        Self { error, code: 1008, reason }
    }
}

fn admit(
    method: &str,
    params: Option<&RawValue>,
    peer: Peer,
    connection: String,
    options: &ListenOptions,
    attempts: &TokenAttempts,
) -> Result<(Caller, Principal), Rejection> {
    if method != Method::Connect.name() {
        let error = ErrorShape::invalid("the first request must be `connect`");
        return Err(Rejection::new(error, "connect first"));
    }
    let params: ConnectParams = params_of(method, params)
        .map_err(|error| Rejection::new(error, "invalid connect params"))?;
    if !(params.min_protocol..=params.max_protocol).contains(&PROTOCOL_VERSION) {
        let (from, to) = (params.min_protocol, params.max_protocol);
        let message = format!(
            "protocol mismatch: the gateway uses version {PROTOCOL_VERSION}, the client {from} to {to}"
        );
        let error = ErrorShape::invalid(message).with_details(&json!({
            "code": detail::PROTOCOL_MISMATCH,
            "clientMinProtocol": params.min_protocol,
            "clientMaxProtocol": params.max_protocol,
            "expectedProtocol": PROTOCOL_VERSION,
        }));
        return Err(Rejection { error, code: 1002, reason: "protocol mismatch" });
    }
    let shown = params.auth.as_ref().and_then(|auth| auth.token.as_ref());
    let principal = check_token(shown, peer, options, attempts)?;
    let role = params.role.unwrap_or_else(|| "operator".to_owned());
    let caller = Caller {
        client: params.client,
        scopes: grant(&principal, &role, params.scopes.unwrap_or_default()),
        role,
        caps: params.caps.unwrap_or_default(),
        commands: params.commands.unwrap_or_default(),
        remote: peer.remote,
        connection,
    };
    Ok((caller, principal))
}

/// Returns whoever has this token.
pub(super) fn check_token(
    shown: Option<&SecretString>,
    peer: Peer,
    options: &ListenOptions,
    attempts: &TokenAttempts,
) -> Result<Principal, Rejection> {
    let Some(own) = options.token.as_ref().filter(|token| !token.is_empty()) else {
        return Ok(Principal::Operator);
    };
    let now = Instant::now();
    let (address, is_local) = (peer.remote.ip(), is_same_machine(peer.remote.ip(), peer.local));
    let principal = if shown == Some(own) {
        Some(if is_local { Principal::Operator } else { Principal::RemoteOperator })
    } else {
        let tokens = options.tokens.as_ref();
        let found = tokens.zip(shown).and_then(|(tokens, shown)| tokens.find(shown));
        found.map(StoredToken::principal)
    };
    if let Some(wait) = attempts.refused(address, now)
        // All processes of this machine share its address: one that guesses must not lock out the
        // others.
        && !(principal.is_some() && is_local)
    {
        let message = format!("too many wrong tokens; retry in {} s", wait.as_secs() + 1);
        let mut error =
            ErrorShape::new(ErrorCode::Unavailable, message).with_detail(detail::AUTH_RATE_LIMITED);
        error.retryable = Some(true);
        error.retry_after_ms = Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1));
        return Err(Rejection::new(error, "too many wrong tokens"));
    }
    match principal {
        Some(Principal::RemoteOperator) if !options.token_is_shared => {
            let message = "unauthorized: this token is accepted on the gateway's machine only; \
                           run `openclaw gateway token create` there";
            let error = ErrorShape::invalid(message).with_detail(detail::AUTH_TOKEN_MISMATCH);
            return Err(Rejection::new(error, "unauthorized"));
        }
        Some(principal) => return Ok(principal),
        None => {}
    }
    let (message, code) = match shown {
        Some(_) => {
            if attempts.wrong(address, now) {
                let seconds = options.limits.wrong_tokens_window.as_secs();
                tracing::warn!(%address, seconds, "too many wrong tokens; the address is blocked");
            }
            ("unauthorized: wrong token", detail::AUTH_TOKEN_MISMATCH)
        }
        None => ("unauthorized: token required", detail::AUTH_TOKEN_MISSING),
    };
    Err(Rejection::new(ErrorShape::invalid(message).with_detail(code), "unauthorized"))
}

fn welcome(
    caller: Caller,
    options: &ListenOptions,
    service: &dyn CallerService,
) -> Result<(Box<RawValue>, Arc<dyn Endpoint>), Rejection> {
    let greeting = service.hello(&caller);
    let limits = &options.limits;
    let hello = HelloOk {
        kind: HelloKind::HelloOk,
        protocol: PROTOCOL_VERSION,
        server: ServerInfo {
            version: greeting.version,
            build_id: None,
            boot_id: None,
            conn_id: caller.connection.clone(),
        },
        features: Features {
            methods: greeting.methods,
            events: greeting.events,
            capabilities: Some(greeting.capabilities).filter(|some| !some.is_empty()),
        },
        snapshot: greeting.snapshot,
        auth: Granted { role: caller.role.clone(), scopes: caller.scopes.clone() },
        policy: Policy {
            max_payload: limits.message as u64,
            max_buffered_bytes: limits.send.bytes as u64,
            tick_interval_ms: u64::try_from(limits.tick.as_millis()).unwrap_or(u64::MAX),
        },
    };
    let hello = to_raw_value(&hello).map_err(|error| {
        Rejection::new(ErrorShape::unavailable(error.to_string()), "internal error")
    })?;
    let surface = service.open(caller).map_err(|error| Rejection::new(error, "refused"))?;
    Ok((hello, surface))
}

fn answer(
    socket: &mut Socket,
    id: &str,
    outcome: Result<&RawValue, &ErrorShape>,
) -> Result<(), SocketError> {
    match frame::response(id, outcome) {
        Ok(text) => socket.queue(text),
        Err(error) => Err(SocketError::Protocol(error.to_string())),
    }
}

/// 128 random bits. Falls back to the time: the ids need not be secret.
pub(crate) fn random_hex() -> String {
    let mut bytes = [0; 16];
    if getrandom::fill(&mut bytes).is_err() {
        bytes = u128::from(now_ms()).to_be_bytes();
    }
    format!("{:032x}", u128::from_be_bytes(bytes))
}
