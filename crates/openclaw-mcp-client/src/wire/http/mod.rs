//! A connection over HTTP: every message is a POST of its own, answered with JSON or with a stream
//! of events that contains the response.
//!
//! There is no reader or writer task. A call reads its own response, so that it needs no task and
//! no queue; other messages on its stream (requests from the server, notifications) are passed to
//! `rmcp`. Besides the calls there is at most one long-lived stream: for messages that the server
//! initiates or, on the transport of 2024-11-05, for everything.

mod body;
mod call;
mod exchange;
mod headers;
mod http_client;
mod legacy_sse;
mod listen;
mod post;
mod reach;
mod rmcp_http;
mod route;
mod session;
mod sse;
mod stream;
mod tasks;
mod tls_error;

pub(super) use call::{call_tool, request};
pub(crate) use headers::RESERVED;
pub(crate) use http_client::{
    ConnectorError, Forwarded, HttpClient, OpenConnection, RequestTarget, ServerRoute, Stream,
};
pub(crate) use reach::NoSuchHost;
pub(crate) use rmcp_http::RmcpHttp;
pub(crate) use session::agreed_version;
pub(crate) use tls_error::describe as describe_tls_error;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use openclaw_budget::ByteBudget;
use openclaw_oauth::authorizer::Authorizer;
use openclaw_oauth::grant::Grant;
use openclaw_secrets::Redactor;
use tokio::sync::{Semaphore, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::Closed;
use super::calls::{CallReply, PendingCalls};
use super::deliver::{Waiters, Wanted, deliver};
use super::ending::CloseReason;
use super::inbox::ToRmcp;
use super::last_activity::LastActivity;
use super::pending_requests::PendingRequests;
use super::skipped::SkippedLines;
use route::Route;
use tasks::Tasks;

/// Maximum number of simultaneous POSTs that expect no response: each is a connection, and a server
/// decides how many responses it requests from us, and how long it takes to accept them.
const MAX_NOTICES: usize = 16;
/// The memory of responses that are being read.
const MAX_RESPONSES: usize = 128 * 1024 * 1024;

/// The state that both lanes of a connection share.
pub(crate) struct HttpWire {
    client: HttpClient,
    target: RequestTarget,
    /// Authorizes the requests; `None` for a server with its own key.
    auth: Option<Authorizer>,
    /// How messages are currently sent.
    route: watch::Sender<Arc<Route>>,
    /// The parameters of the accepted `initialize`, for renewing the session.
    introduction: OnceLock<Bytes>,
    /// The protocol version of that handshake.
    agreed_on: OnceLock<String>,
    /// How often messages that the server initiated may have been missed: the session was renewed,
    /// or its stream was opened again.
    interruptions: watch::Sender<u64>,
    /// Whether it is known if the server offers a stream of its own.
    has_stream_settled: watch::Sender<bool>,
    /// Held by the task that renews the session.
    renewal: tokio::sync::Mutex<()>,
    calls: Mutex<PendingCalls>,
    to_rmcp: ToRmcp,
    /// Requests from the server that are not answered yet.
    asked: PendingRequests,
    /// Limits the POSTs that expect no response.
    notices: Semaphore,
    /// `rmcp` has started to receive.
    is_rmcp_there: AtomicBool,
    /// The pending requests of `rmcp`, by number.
    requests: Mutex<HashMap<u64, AbortHandle>>,
    tasks: Tasks,
    /// The memory of responses that are being read.
    responses: Arc<ByteBudget>,
    ending: CloseReason,
    pub(super) heard: LastActivity,
    /// The session was deleted on the server, or its deletion has started.
    is_parted: AtomicBool,
    skipped: SkippedLines,
}

impl HttpWire {
    fn new(
        client: HttpClient,
        target: RequestTarget,
        auth: Option<Authorizer>,
        skipped: SkippedLines,
        to_rmcp: ToRmcp,
    ) -> Self {
        Self {
            client,
            target,
            auth,
            route: watch::Sender::new(Arc::new(Route::modern())),
            introduction: OnceLock::new(),
            agreed_on: OnceLock::new(),
            interruptions: watch::Sender::new(0),
            has_stream_settled: watch::Sender::new(false),
            renewal: tokio::sync::Mutex::default(),
            calls: Mutex::default(),
            to_rmcp,
            asked: PendingRequests::default(),
            notices: Semaphore::new(MAX_NOTICES),
            is_rmcp_there: AtomicBool::new(false),
            requests: Mutex::default(),
            tasks: Tasks::default(),
            responses: ByteBudget::new(MAX_RESPONSES),
            ending: CloseReason::default(),
            heard: LastActivity::default(),
            is_parted: AtomicBool::new(false),
            skipped,
        }
    }

    /// The lock is held briefly, and never across an `await`.
    pub(super) fn calls(&self) -> MutexGuard<'_, PendingCalls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn requests(&self) -> MutexGuard<'_, HashMap<u64, AbortHandle>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn route(&self) -> Arc<Route> {
        Arc::clone(&self.route.borrow())
    }

    pub(super) fn closed(&self) -> Option<&Closed> {
        self.ending.reason()
    }

    pub(super) async fn until_closed(&self) -> Closed {
        self.ending.until().await
    }

    pub(super) fn session_id(&self) -> Option<String> {
        self.route().session.as_ref()?.to_str().ok().map(str::to_owned)
    }

    pub(super) fn grant(&self) -> Option<Arc<Grant>> {
        self.auth.as_ref()?.in_use()
    }

    /// Subscribes to interruptions of what the server initiates.
    pub(super) fn interruptions(&self) -> watch::Receiver<u64> {
        self.interruptions.subscribe()
    }

    fn interrupted(&self) {
        self.interruptions.send_modify(|count| *count += 1);
    }

    /// Closes the connection: pending calls fail. The first reason counts.
    fn close(&self, reason: Closed) {
        self.ending.set(reason);
        // Futures wait for all of them.
        drop(self.calls().clear());
    }

    /// Returns the redactor of the server's secrets.
    pub(super) fn redactor(&self) -> &Redactor {
        self.skipped.redactor()
    }

    /// Routes a message to its receiver.
    async fn deliver(
        &self,
        message: &[u8],
        wanted: Option<Wanted>,
    ) -> Result<Option<CallReply>, Closed> {
        self.heard.note(Instant::now());
        let delivered = deliver(message, wanted, self, &self.to_rmcp).await;
        delivered.map_err(|_| self.closed().cloned().unwrap_or(Closed::ByUs))
    }
}

impl Waiters for HttpWire {
    fn with_calls<T>(&self, act: impl FnOnce(&mut PendingCalls) -> T) -> T {
        act(&mut self.calls())
    }

    fn skipped(&self) -> &SkippedLines {
        &self.skipped
    }

    fn is_rmcp_there(&self) -> bool {
        self.is_rmcp_there.load(Ordering::Relaxed)
    }
}
