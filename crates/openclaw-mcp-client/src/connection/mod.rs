//! A connection to a server, local or remote: calls, lists, reads.

mod about;
mod carried;
pub mod era;
mod input_required;
mod listen;
mod lists;
pub mod local;
mod logging;
mod process_watcher;
pub mod remote;
mod requests;
mod service;
mod tasks;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::LogLevel;
use openclaw_oauth::grant::Grant;
use openclaw_secrets::Redactor;
use openclaw_tools::CallOptions;
use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::service::{Peer, RunningService};
use serde_json::Map;
use serde_json::value::to_raw_value;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use crate::connection::era::Era;
use crate::connection::remote::HttpTransport;
use crate::host::ClientSide;
use crate::process::ShutdownTimeouts;
use crate::process::stderr::Stderr;
use crate::wire::json::Json;
use crate::wire::{
    CallError, DirectLane, FastLane, ProgressWatcher, TimeLimits, WireCall, redacted,
};
pub use about::{DeclaredCapabilities, ServerIntroduction, ServerSelfInfo};
use carried::Carried;
use listen::Subscribed;
use process_watcher::ProcessWatcher;
use requests::Meta;
use tasks::{Cancellations, FollowedTask};

/// Timeout for closing the connection.
const GOODBYE: Duration = Duration::from_secs(3);

/// A connection to a server. Dropping it kills a local server's process group.
#[derive(Debug)]
pub struct Connection {
    lane: FastLane,
    client: ClientSide,
    peer: Peer<RoleClient>,
    about: ServerSelfInfo,
    era: Era,
    /// The `_meta` of every request: since 2026-07-28 it replaces the handshake.
    meta: Option<Meta>,
    far_end: RemoteEnd,
    /// The subscription to changes, for servers that require one.
    subscribed: Mutex<Subscribed>,
    /// The resources to watch for changes.
    followed: watch::Sender<BTreeSet<String>>,
    /// The log level that was sent to the server, before 2026-07-28.
    log_level: Mutex<Option<LogLevel>>,
    /// Interruptions since the connection was opened, for servers that have them.
    interruptions: Option<watch::Receiver<u64>>,
    /// Cancellations of tasks whose calls were dropped.
    cancellations: Cancellations,
    /// `None` once the connection is closed.
    rmcp: Mutex<Option<RunningService<RoleClient, ClientSide>>>,
}

/// The other end of a connection.
#[derive(Debug)]
enum RemoteEnd {
    /// A local process.
    Process {
        /// The task that watches the process; `None` once it was shut down.
        leader: Mutex<Option<ProcessWatcher>>,
        /// The process id.
        pid: u32,
        /// The reader of the process's standard error.
        stderr: Stderr,
    },
    /// A remote service.
    Remote {
        /// The transport.
        flavour: HttpTransport,
        /// Host and port.
        address: Option<(String, u16)>,
    },
}

/// A connection after the handshake.
#[derive(Debug)]
struct OpenedConnection {
    lane: FastLane,
    rmcp: RunningService<RoleClient, ClientSide>,
    era: Era,
    /// Whether the server declares tool calls as tasks, up to 2025-11-25. `rmcp` does not know it.
    tasks: bool,
}

/// A call whose result may not be its end.
pub struct Called<'a> {
    /// The call.
    pub call: WireCall<'a>,
    /// When it was started.
    pub started: Instant,
    /// Its time limits.
    pub limits: TimeLimits,
    /// Receives its progress.
    pub watcher: Option<&'a ProgressWatcher>,
    /// Whether requests for input are answered here.
    pub asks: bool,
}

impl Connection {
    fn new(opened: OpenedConnection, client: ClientSide, far_end: RemoteEnd) -> Self {
        let OpenedConnection { lane, rmcp, era, tasks } = opened;
        client.speaks_over(&lane);
        let about = rmcp.peer_info().map(|info| ServerSelfInfo::from(&*info));
        let mut about: ServerSelfInfo = about.unwrap_or_default();
        about.introduction.withhold(|json| redacted::gives_away(json, lane.redactor()));
        if era == Era::Legacy {
            let knows = |version: &str| version >= ProtocolVersion::V_2025_11_25.as_str();
            about.offers.tasks = tasks && about.version.as_deref().is_some_and(knows);
        }
        let meta = (era == Era::Modern).then(|| {
            let mut meta = era::request_meta(client.config());
            logging::request(&mut meta, client.log_level(), about.offers);
            Meta::new(&meta)
        });
        let peer = rmcp.peer().clone();
        let subscribed = Mutex::default();
        let rmcp = Mutex::new(Some(rmcp));
        let followed = watch::Sender::default();
        let log_level = Mutex::default();
        let interruptions = lane.interruptions();
        let cancellations = Cancellations::default();
        Self {
            lane,
            client,
            peer,
            about,
            era,
            meta,
            far_end,
            subscribed,
            followed,
            log_level,
            interruptions,
            cancellations,
            rmcp,
        }
    }

    /// Calls a tool on the fast lane, with the watcher and the relay of these options; `meta` and `more`
    /// are added to the call. If the server requests input (T11), the call is repeated with it; for a relay
    /// whose client answers such requests itself, the request is the result.
    ///
    /// # Errors
    /// If the server responds with an error, the call times out, or the connection fails.
    pub fn call_tool<'a>(
        &'a self,
        call: WireCall<'a>,
        limits: TimeLimits,
        options: CallOptions<'a>,
    ) -> impl Future<Output = Result<Json, CallError>> + Send + 'a {
        let CallOptions { watcher, relay, .. } = options;
        let carried = self.carried(relay);
        // Not an `async fn`, which would hold its arguments twice.
        async move {
            let Carried { meta, more, relays_input } = carried?;
            let call = WireCall { meta: &meta, more, ..call };
            let started = Instant::now();
            let result = self.lane.call_tool(call, limits, watcher).await?;
            let asks = !relays_input && self.is_incomplete(result.get());
            if !asks && !self.may_be_task(result.get()) {
                return Ok(result);
            }
            let called = Called { call, started, limits, watcher, asks };
            Box::pin(self.continued(called, result)).await
        }
    }

    /// Returns whether the result of a call is its end: neither a task nor, unless that is relayed, a
    /// request for input.
    pub fn is_final(&self, result: &str, relays_input: bool) -> bool {
        (relays_input || !self.is_incomplete(result)) && !self.may_be_task(result)
    }

    /// Waits for the end of a call with another result.
    ///
    /// # Errors
    /// If the server responds with an error, the call times out, or the connection fails.
    pub async fn continued(&self, called: Called<'_>, mut result: Json) -> Result<Json, CallError> {
        let Called { call, started, limits, watcher, asks } = called;
        if asks {
            result = self.asked_back(call, result, limits, watcher).await?;
        }
        if !self.may_be_task(result.get()) {
            return Ok(result);
        }
        let called = FollowedTask { started, limits, watcher, work: call.work };
        self.settled(result, called).await
    }

    /// Returns a way to start calls without a future, if there is room for one.
    pub fn direct(&self) -> Option<DirectLane> {
        self.lane.direct()
    }

    /// Whether the result of a call may be a request for input, or a task (2026-07-28).
    pub fn may_ask_back(&self) -> bool {
        self.meta.is_some()
    }

    /// Checks that the server responds. Since 2026-07-28 there is no ping; `server/discover` is
    /// sent instead, which every server must support and which has no side effects.
    ///
    /// # Errors
    /// If the server does not respond.
    pub async fn ping(&self, limits: TimeLimits) -> Result<(), CallError> {
        let (method, params) = match self.era {
            Era::Modern => ("server/discover", era::question(self.client.config())),
            Era::Legacy => ("ping", to_raw_value(&Map::new()).unwrap_or_default()),
        };
        match self.lane.request(method, &params, limits).await {
            // An error or an invalid response is still a response.
            Ok(_) | Err(CallError::Rpc(_) | CallError::Unreadable { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns what the server reported about itself.
    pub fn about(&self) -> &ServerSelfInfo {
        &self.about
    }

    /// Returns our side of the protocol.
    pub fn client(&self) -> &ClientSide {
        &self.client
    }

    /// Returns the protocol era of the server.
    pub fn era(&self) -> Era {
        self.era
    }

    /// Knows the credentials that the server may echo.
    pub fn redactor(&self) -> &Redactor {
        self.lane.redactor()
    }

    /// Returns the number of pending calls.
    pub fn in_flight(&self) -> usize {
        self.lane.in_flight()
    }

    /// Returns the time since the server last sent a message of any kind.
    pub fn last_activity(&self) -> Duration {
        self.lane.last_activity()
    }

    /// Returns the process id of a local server.
    pub fn pid(&self) -> Option<u32> {
        match &self.far_end {
            RemoteEnd::Process { pid, .. } => Some(*pid),
            RemoteEnd::Remote { .. } => None,
        }
    }

    /// Returns the session id of a remote server, if it has one, for display: it may echo a credential.
    pub fn session_id(&self) -> Option<String> {
        self.lane.session_id().map(|id| self.redactor().redact(&id).into_owned())
    }

    /// Returns the login at a remote server, if there is one.
    pub fn grant(&self) -> Option<Arc<Grant>> {
        self.lane.grant()
    }

    /// Returns the transport of a remote server.
    pub fn flavour(&self) -> Option<HttpTransport> {
        match &self.far_end {
            RemoteEnd::Process { .. } => None,
            RemoteEnd::Remote { flavour, .. } => Some(*flavour),
        }
    }

    /// Returns host and port of a remote server.
    pub fn address(&self) -> Option<(&str, u16)> {
        match &self.far_end {
            RemoteEnd::Process { .. } => None,
            RemoteEnd::Remote { address, .. } => {
                address.as_ref().map(|(host, port)| (host.as_str(), *port))
            }
        }
    }

    /// Waits until a local server's stderr is closed and returns its last lines. Safe to cancel.
    pub async fn last_words(&self) -> Vec<String> {
        match &self.far_end {
            RemoteEnd::Process { stderr, .. } => {
                stderr.settled().await;
                stderr.last_lines()
            }
            RemoteEnd::Remote { .. } => Vec::new(),
        }
    }

    /// Waits until the connection is closed and returns the reason. Safe to cancel.
    pub async fn until_closed(&self) -> String {
        self.lane.until_closed().await.to_string()
    }

    /// Closes the connection and terminates a local server (L5). When this returns, nothing is left
    /// running.
    pub async fn close(&self, patience: ShutdownTimeouts) {
        let Some(mut rmcp) = self.rmcp.lock().await.take() else { return };
        // Closing `rmcp` drops its transport, which closes a local server's input.
        let _ = tokio::time::timeout(GOODBYE, rmcp.close()).await;
        match &self.far_end {
            RemoteEnd::Process { leader, .. } => {
                if let Some(leader) = leader.lock().await.take() {
                    leader.shut_down(patience).await;
                }
            }
            RemoteEnd::Remote { .. } => {}
        }
    }
}
