//! The WebSocket client: a [`Surface`] at the other end of a socket.

mod dial;
mod pending;
mod run;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use self::pending::Pending;
use crate::connect::{CancelParams, ClientInfo, HelloOk, caps};
use crate::error::{ErrorShape, detail};
use crate::event::{EventReceiver, EventSender, EventSource};
use crate::frame;
use crate::method::{Method, Request, Response};
use crate::surface::{AskError, Surface};
use openclaw_secrets::SecretString;

/// The id of requests to cancel another one: their answers are not waited for.
const CANCEL_ID: &str = "cancel";
/// How many requests wait to be written.
const OUTBOX: usize = 64;
/// How many events are kept for a listener that is slow.
const EVENTS: usize = 1_024;

/// Whom to call, as whom.
#[derive(Debug, Clone)]
pub struct Options {
    /// `ws://host:port/path`.
    pub url: String,
    /// What lets us in.
    pub token: Option<SecretString>,
    /// Who we are.
    pub client: ClientInfo,
    /// `operator` or `node`.
    pub role: String,
    /// What we want to do.
    pub scopes: Vec<String>,
    /// What we can show: some of [`caps`].
    pub caps: Vec<String>,
    /// How long connecting and the handshake may take.
    pub connect_timeout: Duration,
    /// How long an answer may take. That the gateway is there is watched apart from this.
    pub request_timeout: Duration,
}

impl Options {
    /// An operator's command line, which may do everything.
    #[must_use]
    pub fn new(url: impl Into<String>, token: Option<SecretString>, version: &str) -> Self {
        let scopes = ["admin", "read", "write", "approvals", "questions"];
        Self {
            url: url.into(),
            token,
            client: ClientInfo {
                version: version.to_owned(),
                platform: std::env::consts::OS.to_owned(),
                ..ClientInfo::default()
            },
            role: "operator".to_owned(),
            scopes: scopes.map(|scope| format!("operator.{scope}")).to_vec(),
            caps: vec![caps::TOOL_EVENTS.to_owned()],
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(600),
        }
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is none.
    #[error("invalid gateway address `{0}`: expected `ws://host:port`")]
    Address(String),
    /// Nobody listens there.
    #[error("no gateway answers at {address}: {error}")]
    Unreachable {
        /// Where.
        address: String,
        /// What came instead.
        error: std::io::Error,
    },
    /// It took too long.
    #[error("the gateway did not answer in time")]
    TimedOut,
    /// Something else listens there.
    #[error("not a gateway: {0}")]
    NoGateway(String),
    /// It wants a token.
    #[error("the gateway requires a token")]
    TokenMissing,
    /// The token is wrong.
    #[error("the gateway rejected the token")]
    TokenMismatch,
    /// Too many wrong tokens came from here.
    #[error("too many wrong tokens; retry in {} s", .retry_after.as_secs())]
    RateLimited {
        /// When to try again.
        retry_after: Duration,
    },
    /// The two sides share no version.
    #[error("the gateway speaks another version of the protocol: {0}")]
    ProtocolMismatch(ErrorShape),
    /// It says no for another reason.
    #[error("the gateway rejected the connection: {0}")]
    Refused(ErrorShape),
}

/// A connection to a gateway. It ends when this is dropped.
#[derive(Debug)]
pub struct Client {
    hello: HelloOk,
    pending: Arc<Pending>,
    outbox: mpsc::Sender<String>,
    /// The task alone can tell: with the connection, events end.
    events: EventSource,
    request_timeout: Duration,
    task: JoinHandle<()>,
}

impl Client {
    /// Connects and shakes hands.
    ///
    /// # Errors
    /// If there is no gateway, or it refuses.
    pub async fn connect(options: &Options) -> Result<Self, ConnectError> {
        let dialled = timeout(options.connect_timeout, dial::dial(options)).await;
        let (socket, hello) = dialled.map_err(|_| ConnectError::TimedOut)??;
        let pending = Arc::new(Pending::default());
        let events = EventSender::new(EVENTS);
        let (outbox, waiting) = mpsc::channel(OUTBOX);
        let tick = Duration::from_millis(hello.policy.tick_interval_ms);
        let source = events.source();
        let run = run::run(socket, waiting, Arc::clone(&pending), events, tick);
        let task = tokio::spawn(run);
        let request_timeout = options.request_timeout;
        Ok(Self { hello, pending, outbox, events: source, request_timeout, task })
    }

    /// What the gateway said about itself.
    #[must_use]
    pub fn hello(&self) -> &HelloOk {
        &self.hello
    }

    /// Whether the gateway says that it has this method.
    #[must_use]
    pub fn has_method(&self, method: &str) -> bool {
        self.hello.features.methods.iter().any(|known| known == method)
    }

    /// Whether the connection is still there.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        !self.task.is_finished()
    }

    /// Asks by name and in JSON, for methods that [`Method`](crate::Method) does not have.
    ///
    /// # Errors
    /// What the gateway answers instead; or that the connection is lost, or the time is over.
    pub async fn request(
        &self,
        method: &str,
        params: Option<Box<RawValue>>,
    ) -> Result<Box<RawValue>, ErrorShape> {
        let waiting = self.pending.open()?;
        let cancel = OnDrop::new(self, waiting.id());
        let text = frame::request(waiting.id(), method, params.as_deref())
            .map_err(|error| ErrorShape::invalid(error.to_string()))?;
        let limit = self.hello.policy.max_payload;
        if text.len() as u64 > limit {
            let message = format!("`{method}` is too large: the gateway takes {limit} bytes");
            return Err(ErrorShape::invalid(message));
        }
        let answered = timeout(self.request_timeout, async {
            // If the connection is gone, whoever waits is told by it.
            let _ = self.outbox.send(text).await;
            waiting.answer().await
        });
        let answered = answered.await;
        if answered.is_ok() {
            cancel.disarm();
        }
        answered.unwrap_or_else(|_| {
            let message = format!("the gateway did not answer `{method}` in time");
            Err(ErrorShape::unavailable(message).with_detail(detail::TIMED_OUT))
        })
    }
}

/// Tells the gateway that a request needs no answer any more, if this is dropped before there is one.
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
            frame::request(CANCEL_ID, Method::RequestCancel.name(), Some(&params))
        });
        if let Ok(text) = text {
            // Where there is no room the gateway does not read either: the request ends with the connection.
            let _ = self.client.outbox.try_send(text);
        }
    }
}

impl Surface for Client {
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Response, AskError>> {
        Box::pin(async move {
            let method = request.method();
            let params = request.params().map_err(|error| AskError::Params { method, error })?;
            drop(request);
            let result = self.request(method.name(), Some(params)).await?;
            Response::read(method, &result).map_err(|error| AskError::Answer { method, error })
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
