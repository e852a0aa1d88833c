//! The HTTP client of one server: a pool of HTTP/1.1 connections to one origin, on plain `hyper`.
//!
//! A general client parses the URL of every request, looks up the pool of its host and spawns a
//! task to return the connection. Here there is one host, and a connection returns to the pool at
//! the end of its response.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{HOST, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::rt::{Read, Write};
use tokio::task::coop::consume_budget;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;
use url::{Position, Url};

use crate::wire::Traffic;

/// Maximum number of idle connections.
const MAX_IDLE: usize = 16;
/// How long an idle connection is kept. Many servers and load balancers close them after a minute
/// or two.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// How long a connection may take to become ready after its response was read.
const SETTLE: Duration = Duration::from_millis(50);

/// An error of a connector; its source chain contains the kind.
pub(crate) type ConnectorError = Box<dyn std::error::Error + Send + Sync>;
/// Opens a connection to the server, or to the proxy in front of it.
pub(crate) type OpenConnection =
    Box<dyn Fn() -> BoxFuture<'static, Result<Box<dyn Stream>, ConnectorError>> + Send + Sync>;

/// A byte stream to the server.
pub(crate) trait Stream: Read + Write + Send + Unpin {}
impl<T: Read + Write + Send + Unpin> Stream for T {}

/// Why a request, or reading its response, failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("cannot connect")]
    Connect(#[source] ConnectorError),
    #[error("timed out after {} ms", .0.as_millis())]
    ConnectTimedOut(Duration),
    #[error("connection lost")]
    Broken(#[source] hyper::Error),
}

/// How a server is reached.
pub(crate) struct ServerRoute {
    pub(crate) connect: OpenConnection,
    pub(crate) connect_timeout: Duration,
    /// Whether a proxy is used: it may be the cause of a failure.
    pub(crate) is_proxied: bool,
    /// Set for a proxy that forwards requests instead of tunnelling them: they contain the whole
    /// URL.
    pub(crate) forwarded: Option<Forwarded>,
    /// Headers added to every request that does not set them itself.
    pub(crate) headers: HeaderMap,
    /// Counts the bytes of bodies.
    pub(crate) traffic: Traffic,
}

/// What is added to requests to a forwarding proxy.
pub(crate) struct Forwarded {
    pub(crate) authorization: Option<HeaderValue>,
}

/// A URL, prepared for requests.
#[derive(Debug, Clone)]
pub(crate) struct RequestTarget {
    pub(super) url: Url,
    uri: Uri,
    host: HeaderValue,
}

/// A client of one server.
#[derive(Clone)]
pub(crate) struct HttpClient(Arc<Inner>);

struct Inner {
    reach: ServerRoute,
    idle: Mutex<Vec<Idle>>,
}

struct Idle {
    connection: Connection,
    since: Instant,
}

/// Dropping it closes the connection.
struct Connection {
    sender: SendRequest<Full<Bytes>>,
    _task: AbortOnDropHandle<()>,
}

impl HttpClient {
    pub(crate) fn new(reach: ServerRoute) -> Self {
        Self(Arc::new(Inner { reach, idle: Mutex::default() }))
    }

    pub(super) fn is_proxied(&self) -> bool {
        self.0.reach.is_proxied
    }

    /// Prepares a URL for this client's requests; `None` if HTTP cannot express it.
    pub(crate) fn target(&self, url: Url) -> Option<RequestTarget> {
        let from = match self.0.reach.forwarded {
            Some(_) => Position::BeforeScheme,
            None => Position::BeforePath,
        };
        let uri = url[from..Position::AfterQuery].parse().ok()?;
        let host = HeaderValue::from_str(&url[Position::BeforeHost..Position::AfterPort]).ok()?;
        Some(RequestTarget { url, uri, host })
    }

    /// Sends a request. The body of the response is not read yet; dropping it closes the
    /// connection.
    ///
    /// # Errors
    /// If connecting fails or the connection breaks. A request that an idle connection did not
    /// accept is sent on a new one.
    pub(super) async fn send(
        &self,
        method: Method,
        target: &RequestTarget,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<PooledBody>, HttpError> {
        self.0.reach.traffic.sent(body.len());
        let request = self.request(method, target, headers, body);
        let Some(connection) = self.kept().await else { return self.send_anew(request).await };
        match self.send_on(connection, request).await {
            Ok(response) => Ok(response),
            Err((_, Some(unsent))) => Box::pin(self.send_anew(unsent)).await,
            Err((error, None)) => Err(error),
        }
    }

    async fn send_anew(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<PooledBody>, HttpError> {
        let connection = Box::pin(self.connect()).await?;
        self.send_on(connection, request).await.map_err(|(error, _)| error)
    }

    /// The error contains the request, if nothing of it was sent.
    async fn send_on(
        &self,
        mut connection: Connection,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<PooledBody>, (HttpError, Option<Request<Full<Bytes>>>)> {
        match connection.sender.try_send_request(request).await {
            Ok(response) => {
                let lease = Lease { connection, client: self.clone() };
                let traffic = self.0.reach.traffic.clone();
                Ok(response.map(|incoming| PooledBody::new(incoming, lease, traffic)))
            }
            Err(mut error) => {
                let unsent = error.take_message();
                Err((HttpError::Broken(error.into_error()), unsent))
            }
        }
    }

    fn request(
        &self,
        method: Method,
        target: &RequestTarget,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Request<Full<Bytes>> {
        let ServerRoute { forwarded, headers: always, .. } = &self.0.reach;
        headers.insert(HOST, target.host.clone());
        if let Some(Forwarded { authorization: Some(authorization) }) = forwarded {
            headers.insert(PROXY_AUTHORIZATION, authorization.clone());
        }
        for (name, value) in always {
            headers.entry(name).or_insert_with(|| value.clone());
        }
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = target.uri.clone();
        *request.headers_mut() = headers;
        request
    }

    async fn connect(&self) -> Result<Connection, HttpError> {
        let patience = self.0.reach.connect_timeout;
        let connecting = timeout(patience, (self.0.reach.connect)()).await;
        let stream = connecting.map_err(|_| HttpError::ConnectTimedOut(patience))?;
        let stream = stream.map_err(HttpError::Connect)?;
        let (sender, connection) = http1::handshake(stream).await.map_err(HttpError::Broken)?;
        let task = tokio::spawn(async move {
            // The error is reported by the pending request.
            let _ = connection.await;
        });
        Ok(Connection { sender, _task: AbortOnDropHandle::new(task) })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an idle connection: the most recent one, which is the least likely to be closed.
    async fn kept(&self) -> Option<Connection> {
        loop {
            let Idle { mut connection, since } = self.idle().pop()?;
            if connection.sender.is_ready() && since.elapsed() < IDLE_TIMEOUT {
                return Some(connection);
            }
            // The end of a response is read shortly before its connection is ready again.
            let settled = since.elapsed() < SETTLE && !connection.sender.is_closed();
            if settled && matches!(timeout(SETTLE, connection.sender.ready()).await, Ok(Ok(()))) {
                return Some(connection);
            }
        }
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("idle", &self.idle().len()).finish_non_exhaustive()
    }
}

/// The body of a response. Once read to its end, it returns the connection to the pool.
pub(super) struct PooledBody {
    incoming: Incoming,
    lease: Option<Lease>,
    traffic: Traffic,
}

struct Lease {
    connection: Connection,
    client: HttpClient,
}

impl PooledBody {
    fn new(incoming: Incoming, lease: Lease, traffic: Traffic) -> Self {
        let mut body = Self { incoming, lease: Some(lease), traffic };
        body.settle();
        body
    }

    /// Returns the next chunk; `None` at the end. Safe to cancel.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        // Other tasks, and the timeout of the caller, get their turn, however fast a server sends.
        consume_budget().await;
        while let Some(frame) = self.incoming.frame().await {
            let frame = frame.map_err(HttpError::Broken)?;
            self.settle();
            // Otherwise trailers, which are ignored.
            if let Ok(data) = frame.into_data() {
                self.traffic.received(data.len());
                return Ok(Some(data));
            }
        }
        self.give_back();
        Ok(None)
    }

    fn settle(&mut self) {
        if self.incoming.is_end_stream() {
            self.give_back();
        }
    }

    fn give_back(&mut self) {
        let Some(Lease { connection, client }) = self.lease.take() else { return };
        let mut idle = client.idle();
        if !connection.sender.is_closed() && idle.len() < MAX_IDLE {
            idle.push(Idle { connection, since: Instant::now() });
        }
    }
}

impl fmt::Debug for PooledBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("is_over", &self.lease.is_none()).finish_non_exhaustive()
    }
}
