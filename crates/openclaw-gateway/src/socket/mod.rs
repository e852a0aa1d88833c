//! The server in front of the gateway: HTTP, WebSocket, authentication and limits.

mod access;
mod admission;
mod attempts;
mod bearer;
mod body;
mod connection;
mod connection_info;
mod handshake;
mod http;
pub mod hub;
mod listener;
mod metrics;
mod origin;
mod pages;
mod watched;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use openclaw_mcp_server::hub::Hub;
use openclaw_mcp_server::hub::http::HubHttp;
use openclaw_metrics::prometheus::Format;
use openclaw_protocol::connect::{ClientInfo, Snapshot};
use openclaw_protocol::frame;
use openclaw_protocol::socket::{Backlog, SendLimits};
use openclaw_protocol::{ErrorShape, EventReceiver, Method};
use openclaw_secrets::SecretString;
use openclaw_trace::SpanContext;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::tokens::TokenStore;
pub(crate) use handshake::random_hex;
pub use listener::{Bound, Listening, bind};

/// Serves the callers of the socket.
///
/// The methods are called while a client waits, and must not block.
pub trait CallerService: Send + Sync + fmt::Debug {
    /// Opens a caller's end of the gateway, which is dropped when the caller disconnects.
    ///
    /// # Errors
    /// Returns the error for a caller that is rejected.
    fn open(&self, caller: Caller) -> Result<Arc<dyn Endpoint>, ErrorShape>;

    /// The gateway's part of `hello-ok` for a caller.
    fn hello(&self, caller: &Caller) -> HelloInfo;

    /// Whether requests can be served.
    fn is_ready(&self) -> bool;

    /// The document at `/oauth/client-metadata.json`, if there is one.
    fn client_metadata(&self) -> Option<Value>;

    /// The hub at `/mcp`, if there is one.
    fn hub(&self) -> Option<(Arc<Hub>, Arc<HubHttp>)> {
        None
    }

    /// Who may read `/metrics`; `None` if it is not served.
    fn metrics_access(&self) -> Option<Arc<MetricsAccess>> {
        None
    }

    /// The exposition at `/metrics`; `None` if nothing is counted.
    fn metrics(&self, _: Format) -> Option<String> {
        None
    }

    /// The folder of the Control UI, if it is served.
    fn control_ui(&self) -> Option<PathBuf> {
        None
    }

    /// Origins of allowed web pages, such as `https://example.com`. Their hosts are accepted as
    /// `Host`, too.
    fn allowed_origins(&self) -> Vec<String>;
}

/// One caller's end of the gateway for the socket: methods by name, JSON in and out.
///
/// Dropping the future of a request cancels it.
pub trait Endpoint: Send + Sync + fmt::Debug {
    /// Answers a request.
    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Option<Box<RawValue>>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, ErrorShape>>;

    /// Called when the caller has lost events because it reads too slowly.
    fn lost_events(&self, _events: u64) {}

    /// Called with what tells how far the caller is behind.
    fn sends_through(&self, _backlog: Arc<Backlog>) {}

    /// Like [`request`](Self::request), with options.
    fn request_with<'a>(
        &'a self,
        method: &'a str,
        params: Option<Box<RawValue>>,
        _options: RequestOptions,
    ) -> BoxFuture<'a, Result<Box<RawValue>, ErrorShape>> {
        self.request(method, params)
    }

    /// Subscribes to events from now on.
    fn events(&self) -> EventReceiver;
}

/// Options of a request.
#[derive(Debug, Default)]
pub struct RequestOptions {
    /// The caller's span.
    pub trace: Option<SpanContext>,
    /// Sends a response before the last one.
    pub early: Option<EarlyResponse>,
}

/// Sends a response before the last one, under the same id.
#[derive(Debug)]
pub struct EarlyResponse {
    id: String,
    queue: mpsc::Sender<String>,
}

impl EarlyResponse {
    /// Sends it, once per request. It is dropped if the connection is over.
    pub(crate) fn send(&self, payload: &RawValue) {
        if let Ok(text) = frame::response(&self.id, Ok(payload)) {
            // There is room for one of every request.
            let _ = self.queue.try_send(text);
        }
    }
}

/// An authenticated caller.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The client program, as it identifies itself.
    pub client: ClientInfo,
    /// `operator` or `node`.
    pub role: String,
    /// Granted scopes.
    pub scopes: Vec<String>,
    /// Capabilities of the client.
    pub caps: Vec<String>,
    /// Commands that can be invoked on it, if it is a node.
    pub commands: Vec<String>,
    /// Its remote address.
    pub remote: SocketAddr,
    /// Unique id of its connection.
    pub connection: String,
}

impl Caller {
    /// Whether it may use this method.
    #[must_use]
    pub fn may(&self, method: Method) -> bool {
        method.scope().is_in(&self.scopes)
    }
}

/// What a gateway reports about itself.
#[derive(Debug, Clone, Default)]
pub struct HelloInfo {
    /// Version of the gateway.
    pub version: String,
    /// Names of its methods.
    pub methods: Vec<String>,
    /// Names of its events.
    pub events: Vec<String>,
    /// Further capabilities.
    pub capabilities: Vec<String>,
    /// Its current state.
    pub snapshot: Snapshot,
}

/// Minimum length of the token if other machines can connect, in characters.
pub const MIN_REMOTE_TOKEN: usize = 16;

/// Options for listening.
#[derive(Debug, Clone)]
pub struct ListenOptions {
    /// The address; usually loopback.
    pub bind: IpAddr,
    /// The port; 0 for any.
    pub port: u16,
    /// The gateway's own token, with all scopes. Without one, only callers on this machine are
    /// accepted.
    pub token: Option<SecretString>,
    /// Whether that token is accepted from other machines, without administration.
    pub token_is_shared: bool,
    /// Access tokens with limited scopes.
    pub tokens: Option<TokenStore>,
    /// Limits of the socket.
    pub limits: SocketLimits,
}

/// Who may read `/metrics`, besides callers with the scope for it.
#[derive(Debug, Clone, Default)]
pub struct MetricsAccess {
    /// A token for nothing else.
    pub token: Option<SecretString>,
}

impl MetricsAccess {
    /// Checks that the token cannot be guessed if other machines can connect.
    ///
    /// # Errors
    /// If it is too short.
    pub(crate) fn check(&self, bind: IpAddr) -> Result<(), ListenError> {
        let length = self.token.as_ref().map(|token| token.expose().chars().count());
        let is_short = length.is_some_and(|length| length < MIN_REMOTE_TOKEN);
        match is_short && !bind.to_canonical().is_loopback() {
            true => Err(ListenError::ShortMetricsToken(bind)),
            false => Ok(()),
        }
    }
}

/// Limits of the socket.
#[derive(Debug, Clone, Copy)]
pub struct SocketLimits {
    /// Maximum size of a message before authentication, in bytes.
    pub stranger_message: usize,
    /// Maximum size of a message, in bytes.
    pub message: usize,
    /// Timeout for authentication, from the first byte on.
    pub authenticate: Duration,
    /// An authenticated HTTP connection is closed if it is unused for this long, or if its client does
    /// not read; at most after twice as long.
    pub unused: Duration,
    /// Maximum number of authenticated connections.
    pub connections: usize,
    /// Maximum number of unauthenticated connections.
    pub strangers: usize,
    /// Maximum number of unauthenticated connections per address.
    pub strangers_per_address: usize,
    /// Maximum number of concurrent requests per caller; more wait in its socket.
    pub requests: usize,
    /// Limits on data buffered for a caller that does not read.
    pub send: SendLimits,
    /// Maximum number of bytes that clients with one token may have in unfinished messages, requests in
    /// progress, and results that they do not read.
    pub client_memory: usize,
    /// The same for all clients together.
    pub memory: usize,
    /// How long a client may pause within a message.
    pub pause: Duration,
    /// How long a client may take to send a message.
    pub sending: Duration,
    /// Interval of ticks and pings.
    pub tick: Duration,
    /// Maximum number of wrong tokens per address within `wrong_tokens_window`.
    pub wrong_tokens: u32,
    /// How long an address is blocked after too many wrong tokens.
    pub wrong_tokens_window: Duration,
}

impl Default for SocketLimits {
    fn default() -> Self {
        Self {
            stranger_message: 64 * 1024,
            message: 25 * 1024 * 1024,
            authenticate: Duration::from_secs(10),
            unused: Duration::from_secs(30),
            connections: 256,
            // Together with the above, this fits the usual limit of 1,024 open files.
            strangers: 512,
            strangers_per_address: 384,
            requests: 64,
            send: SendLimits {
                bytes: 50 * 1024 * 1024,
                frames: 4_096,
                pause: 1024 * 1024,
                stall: Duration::from_secs(20),
            },
            client_memory: 128 * 1024 * 1024,
            memory: 256 * 1024 * 1024,
            pause: Duration::from_secs(30),
            sending: Duration::from_secs(5 * 60),
            tick: Duration::from_secs(30),
            wrong_tokens: 10,
            wrong_tokens_window: Duration::from_secs(60),
        }
    }
}

/// Why the socket cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Other machines can connect, and there is no token.
    #[error("other machines can reach {0}: a token is required")]
    NeedsToken(IpAddr),
    /// Other machines can connect, and the token can be guessed.
    #[error(
        "other machines can reach {0}: the token must have at least {MIN_REMOTE_TOKEN} characters"
    )]
    ShortToken(IpAddr),
    /// Other machines can connect, and the token for `/metrics` can be guessed.
    #[error(
        "other machines can reach {0}: `metrics.token` must have at least {MIN_REMOTE_TOKEN} characters"
    )]
    ShortMetricsToken(IpAddr),
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {error}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The cause.
        error: std::io::Error,
    },
}
