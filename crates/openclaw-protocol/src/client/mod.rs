//! The WebSocket client: a [`Surface`] over a socket.

mod address;
mod connect;
mod device;
mod dial;
mod foreign;
pub mod node;
mod pending;
mod run;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

pub use self::address::Address;
pub use self::connect::{Connect, PublishingNode};
pub use self::device::{DeviceKey, InvalidKey};
use self::pending::Pending;
pub use self::tls::{Fingerprint, InvalidFingerprint};
use crate::connect::{CancelParams, ClientInfo, HelloOk, caps};
use crate::error::{ErrorCode, ErrorShape, detail};
use crate::event::{EventReceiver, EventSender, EventSource};
use crate::frame;
use crate::method::{Method, Request, Response};
use crate::socket::Socket;
use crate::surface::{RequestError, Surface};
use openclaw_secrets::SecretString;
use openclaw_trace::SpanContext;

/// Id of cancel requests, whose responses are ignored.
const CANCEL_ID: &str = "cancel";
/// Capacity of the queue of outgoing requests.
const OUTBOX: usize = 64;
/// Number of events buffered for a slow listener.
const EVENTS: usize = 1_024;
/// Bounds of the delay before connecting to a gateway that is still starting.
const SHORTEST_RETRY: Duration = Duration::from_millis(100);
const LONGEST_RETRY: Duration = Duration::from_secs(2);

/// Options of a connection to a gateway.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// `ws://host:port/path` or `wss://host:port/path`.
    pub url: String,
    /// The certificate to expect with `wss://`, instead of one that the system trusts.
    pub fingerprint: Option<Fingerprint>,
    /// Whether `ws://` may leave this machine: token and messages are readable on the network.
    pub allow_plaintext: bool,
    /// Gateway token.
    pub token: Option<SecretString>,
    /// Client identification.
    pub client: ClientInfo,
    /// `operator` or `node`.
    pub role: String,
    /// Requested scopes.
    pub scopes: Vec<String>,
    /// Capabilities of the client: some of [`caps`].
    pub caps: Vec<String>,
    /// Commands that a node can execute.
    pub commands: Vec<String>,
    /// Device identity, for gateways that pair devices.
    pub device: Option<DeviceKey>,
    /// Timeout of connecting and the handshake.
    pub connect_timeout: Duration,
    /// Timeout of a request. Liveness of the gateway is monitored independently.
    pub request_timeout: Duration,
}

impl ConnectOptions {
    /// Returns the options of an operator's command line, with all scopes.
    #[must_use]
    pub fn new(url: impl Into<String>, token: Option<SecretString>, version: &str) -> Self {
        let scopes = ["admin", "read", "write", "approvals", "questions"];
        Self {
            url: url.into(),
            fingerprint: None,
            allow_plaintext: false,
            token,
            client: ClientInfo {
                version: version.to_owned(),
                platform: std::env::consts::OS.to_owned(),
                ..ClientInfo::default()
            },
            role: "operator".to_owned(),
            scopes: scopes.map(|scope| format!("operator.{scope}")).to_vec(),
            caps: vec![caps::TOOL_EVENTS.to_owned(), caps::DELTA_TEXT.to_owned()],
            commands: Vec::new(),
            device: None,
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(600),
        }
    }
}

/// Why connecting failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is invalid.
    #[error("invalid gateway URL `{0}`: expected `ws://host:port` or `wss://host:port`")]
    Address(String),
    /// The address is on another machine, and the connection would not be encrypted.
    #[error("the connection to {0} would not be encrypted")]
    Plaintext(String),
    /// Nothing listens at the address.
    #[error("cannot connect to {address}: {error}")]
    Unreachable {
        /// The address.
        address: String,
        /// The underlying error.
        error: std::io::Error,
    },
    /// The TLS handshake failed.
    #[error("TLS connection to {address} failed: {error}")]
    Tls {
        /// The address.
        address: String,
        /// The underlying error.
        error: String,
    },
    /// The certificate of the gateway is not the pinned one.
    #[error("the certificate of {address} is not the pinned one; its fingerprint is {found}")]
    OtherCertificate {
        /// The address.
        address: String,
        /// The fingerprint of its certificate.
        found: Fingerprint,
    },
    /// Connecting or the handshake timed out.
    #[error("the gateway did not respond in time")]
    TimedOut,
    /// The peer is not a gateway.
    #[error("not a gateway: {0}")]
    NoGateway(String),
    /// The gateway requires a token.
    #[error("the gateway requires a token")]
    TokenMissing,
    /// The token is wrong.
    #[error("the gateway rejected the token")]
    TokenMismatch,
    /// Too many wrong tokens were sent from this client.
    #[error("too many wrong tokens; retry in {} s", .retry_after.as_secs())]
    RateLimited {
        /// Delay before the next attempt.
        retry_after: Duration,
    },
    /// The two sides have no protocol version in common.
    #[error("the gateway uses another protocol version: {0}")]
    ProtocolMismatch(ErrorShape),
    /// The gateway does not know this device yet. Its operator must approve it.
    #[error("this device is not approved at the gateway yet")]
    NotPaired {
        /// The id of the request for approval.
        request: Option<String>,
    },
    /// The gateway requires a device identity.
    #[error("the gateway requires a device identity")]
    DeviceRequired,
    /// The gateway rejected the connection for another reason.
    #[error("the gateway rejected the connection: {0}")]
    Refused(ErrorShape),
}

/// A connection to a gateway. It is closed on drop.
#[derive(Debug)]
pub struct Client {
    hello: HelloOk,
    pending: Arc<Pending>,
    outbox: mpsc::Sender<String>,
    /// A weak handle: only the task can send, so event streams end with the connection.
    events: EventSource,
    request_timeout: Duration,
    task: JoinHandle<()>,
}

impl Client {
    /// Connects and performs the handshake.
    ///
    /// # Errors
    /// If no gateway is reachable, or it rejects the connection.
    pub async fn connect(options: &ConnectOptions) -> Result<Self, ConnectError> {
        let dialled = timeout(options.connect_timeout, dial_until_ready(options)).await;
        let (socket, hello) = dialled.map_err(|_| ConnectError::TimedOut)??;
        let pending = Arc::new(Pending::default());
        let events = EventSender::new(EVENTS);
        let (outbox, waiting) = mpsc::channel(OUTBOX);
        let tick = Duration::from_millis(hello.policy.tick_interval_ms);
        let source = events.source();
        let is_foreign = is_foreign(&hello);
        let events = run::Events { sender: events, is_foreign };
        let run = run::run(socket, waiting, Arc::clone(&pending), events, tick);
        let task = tokio::spawn(run);
        let request_timeout = options.request_timeout;
        Ok(Self { hello, pending, outbox, events: source, request_timeout, task })
    }

    /// Returns what the gateway reported in the handshake.
    #[must_use]
    pub fn hello(&self) -> &HelloOk {
        &self.hello
    }

    /// Returns whether the gateway announced this method.
    #[must_use]
    pub fn has_method(&self, method: &str) -> bool {
        has_method(&self.hello, method)
    }

    /// Returns whether the gateway is of another program: it has none of our own methods.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        is_foreign(&self.hello)
    }

    /// Returns whether the connection is open.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        !self.task.is_finished()
    }

    /// Sends a request by method name and raw JSON, for methods that [`Method`](crate::Method)
    /// lacks.
    ///
    /// # Errors
    /// The gateway's error response; or that the connection was lost, or the request timed out.
    pub async fn request(
        &self,
        method: &str,
        params: Option<Box<RawValue>>,
    ) -> Result<Box<RawValue>, ErrorShape> {
        self.request_in(method, params, None).await
    }

    /// Like [`request`](Self::request), as a part of a span.
    async fn request_in(
        &self,
        method: &str,
        params: Option<Box<RawValue>>,
        trace: Option<&SpanContext>,
    ) -> Result<Box<RawValue>, ErrorShape> {
        let waiting = self.pending.open(method)?;
        let cancel = OnDrop::new(self, waiting.id());
        let text = frame::request(waiting.id(), method, params.as_deref(), trace)
            .map_err(|error| ErrorShape::invalid(error.to_string()))?;
        let limit = self.hello.policy.max_payload;
        if text.len() as u64 > limit {
            let message = format!("`{method}` is too large: the gateway accepts {limit} bytes");
            return Err(ErrorShape::invalid(message));
        }
        let answered = timeout(self.request_timeout, async {
            // If the connection is gone, the pending request fails anyway.
            let _ = self.outbox.send(text).await;
            waiting.answer().await
        });
        let answered = answered.await;
        if answered.is_ok() {
            cancel.disarm();
        }
        answered.unwrap_or_else(|_| {
            let message = format!("the gateway did not respond to `{method}` in time");
            Err(ErrorShape::unavailable(message).with_detail(detail::TIMED_OUT))
        })
    }
}

fn has_method(hello: &HelloOk, method: &str) -> bool {
    hello.features.methods.iter().any(|known| known == method)
}

fn is_foreign(hello: &HelloOk) -> bool {
    !has_method(hello, Method::McpServers.name())
}

/// Connects; again if the gateway is still starting.
async fn dial_until_ready(options: &ConnectOptions) -> Result<(Socket, HelloOk), ConnectError> {
    loop {
        match dial::dial(options).await {
            Err(ConnectError::Refused(error)) if error.code == ErrorCode::Unavailable => {
                let Some(delay) = error.retry_after_ms else {
                    return Err(ConnectError::Refused(error));
                };
                let delay = Duration::from_millis(delay);
                sleep(delay.clamp(SHORTEST_RETRY, LONGEST_RETRY)).await;
            }
            done => return done,
        }
    }
}

/// Cancels a request at the gateway if dropped before the response arrived.
struct OnDrop<'a> {
    client: &'a Client,
    id: Option<String>,
}

impl<'a> OnDrop<'a> {
    fn new(client: &'a Client, id: &str) -> Self {
        let can_cancel = client.has_method(Method::RequestCancel.name());
        Self { client, id: can_cancel.then(|| id.to_owned()) }
    }

    fn disarm(mut self) {
        self.id = None;
    }
}

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let params = serde_json::value::to_raw_value(&CancelParams { id });
        let text = params.and_then(|params| {
            frame::request(CANCEL_ID, Method::RequestCancel.name(), Some(&params), None)
        });
        if let Ok(text) = text {
            // A full outbox means that the gateway does not read: the request ends with the
            // connection.
            let _ = self.client.outbox.try_send(text);
        }
    }
}

impl Surface for Client {
    fn call_in(
        &self,
        request: Request,
        trace: Option<SpanContext>,
    ) -> BoxFuture<'_, Result<Response, RequestError>> {
        Box::pin(async move {
            let method = request.method();
            let request = match self.is_foreign() {
                false => request,
                true => match foreign::call(self, request).await {
                    Ok(answered) => return Ok(answered?),
                    Err(request) => request,
                },
            };
            let params =
                request.params().map_err(|error| RequestError::Params { method, error })?;
            drop(request);
            // Other gateways refuse fields that the protocol does not have.
            let trace = match self.is_foreign() {
                true => trace.map(|it| it.ids()),
                false => trace,
            };
            let result = self.request_in(method.name(), Some(params), trace.as_ref()).await?;
            let response = Response::read(method, &result);
            let response = response.map_err(|error| RequestError::Answer { method, error })?;
            Ok(if self.is_foreign() { foreign::response(response) } else { response })
        })
    }

    fn events(&self) -> EventReceiver {
        self.events.listen()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.task.abort();
    }
}
