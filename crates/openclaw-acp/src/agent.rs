//! The methods of the agent, and the sessions that are open.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, AuthenticateRequest, AuthenticateResponse, ClientCapabilities,
    CloseSessionRequest, CloseSessionResponse, DeleteSessionRequest, DeleteSessionResponse,
    Implementation, InitializeRequest, InitializeResponse, ListSessionsRequest,
    ListSessionsResponse, McpCapabilities, PromptCapabilities, PromptRequest, PromptResponse,
    SessionAdditionalDirectoriesCapabilities, SessionCapabilities, SessionCloseCapabilities,
    SessionDeleteCapabilities, SessionInfo, SessionListCapabilities, SessionResumeCapabilities,
    SetSessionConfigOptionRequest, SetSessionConfigOptionResponse, SetSessionModeRequest,
    SetSessionModeResponse,
};
use agent_client_protocol::{Error, JsonRpcResponse};
use futures_util::future::join_all;
use openclaw_protocol::sessions::{DeleteParams, ListParams};
use openclaw_protocol::{Connect, RequestError, Rpc, Surface, ask, detail, rpc};
use openclaw_trace::SpanContext;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::{internal, invalid_params, not_open, refused};
use crate::outbox::WriteBacklog;
use crate::request::Lenient;
use crate::servers::ServerSetup;
use crate::session::AcpSession;
use crate::turn::{self, title_of};

/// The timeout of a short request to the gateway.
const SHORT: Duration = Duration::from_secs(30);
/// How often, and in which interval, the deletion of a session is tried that was open.
const DELETES: u32 = 50;
const AGAIN: Duration = Duration::from_millis(100);
/// Sessions per page of `session/list`.
const PAGE: u64 = 100;

/// What an ACP agent needs.
pub struct AcpOptions {
    /// The gateway. Each session has its own connection, so that sessions share no lent tools.
    pub connect: Arc<dyn Connect>,
    /// The agent of new sessions; `None` for the default one.
    pub agent: Option<String>,
    /// The folder of listed sessions that are not open.
    pub folder: PathBuf,
    /// Whether an agent works in this folder of a session, not in its own workspace.
    pub works_in: WorksIn,
    /// The MCP servers of sessions.
    pub servers: ServerSetup,
    /// The version of this program.
    pub version: String,
}

/// Whether the agent with this id works in a folder.
pub type WorksIn = Box<dyn Fn(&str, &Path) -> bool + Send + Sync>;

impl fmt::Debug for AcpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("agent", &self.agent).finish_non_exhaustive()
    }
}

/// The agent side of a connection.
pub(crate) struct AcpAgent {
    pub(crate) options: AcpOptions,
    pub(crate) outbox: Arc<WriteBacklog>,
    client: OnceLock<ClientCapabilities>,
    /// A connection for requests that belong to no session, once there is one.
    gateway: tokio::sync::Mutex<Option<Arc<dyn Surface>>>,
    sessions: Mutex<BTreeMap<String, Arc<AcpSession>>>,
    /// Held while a session is opened that exists already, until its history is replayed.
    pub(crate) opening: Arc<tokio::sync::Mutex<()>>,
    /// The requests being answered.
    requests: TaskTracker,
    /// Cancelled when no request is answered any more.
    closed: CancellationToken,
}

impl AcpAgent {
    pub(crate) fn new(options: AcpOptions) -> Self {
        Self {
            options,
            outbox: Arc::default(),
            client: OnceLock::new(),
            gateway: tokio::sync::Mutex::default(),
            sessions: Mutex::default(),
            opening: Arc::default(),
            requests: TaskTracker::new(),
            closed: CancellationToken::new(),
        }
    }

    pub(crate) fn sessions(&self) -> MutexGuard<'_, BTreeMap<String, Arc<AcpSession>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<AcpSession>> {
        self.sessions().get(id).cloned()
    }

    fn open_session(&self, id: &str) -> Result<Arc<AcpSession>, Error> {
        self.find(id).ok_or_else(|| not_open(id))
    }

    pub(crate) fn client(&self) -> ClientCapabilities {
        self.client.get().cloned().unwrap_or_default()
    }

    /// Cancels the prompts of all sessions.
    pub(crate) fn cancel_all(&self) {
        let open: Vec<Arc<AcpSession>> = self.sessions().values().cloned().collect();
        open.iter().for_each(|session| session.turn.cancel());
    }

    /// Waits until all requests are answered.
    pub(crate) async fn finished(&self) {
        self.requests.close();
        self.requests.wait().await;
    }

    /// Drops the requests that are not answered yet, and closes all sessions.
    pub(crate) async fn close(&self) {
        self.closed.cancel();
        self.finished().await;
        let open = std::mem::take(&mut *self.sessions());
        join_all(open.into_values().map(|session| async move { session.close().await })).await;
    }

    pub(crate) fn initialize(&self, request: InitializeRequest) -> InitializeResponse {
        // Of two requests, the first one counts.
        let _ = self.client.set(request.client_capabilities);
        let sessions = SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .delete(SessionDeleteCapabilities::new())
            .additional_directories(SessionAdditionalDirectoriesCapabilities::new())
            .resume(SessionResumeCapabilities::new())
            .close(SessionCloseCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(
                PromptCapabilities::new().image(true).audio(true).embedded_context(true),
            )
            .mcp_capabilities(McpCapabilities::new().http(true).sse(true))
            .session_capabilities(sessions);
        let us =
            Implementation::new("openclaw", &self.options.version).title("OpenClaw".to_owned());
        InitializeResponse::new(ProtocolVersion::V1).agent_capabilities(capabilities).agent_info(us)
    }

    /// Runs the answer to a request outside the dispatch loop.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let closed = self.closed.clone();
        self.requests.spawn(async move {
            tokio::select! {
                () = work => {}
                () = closed.cancelled() => {}
            }
        });
    }

    fn respond<R: JsonRpcResponse>(
        &self,
        responder: Responder<R>,
        work: impl Future<Output = Result<R, Error>> + Send + 'static,
    ) {
        self.spawn(async move {
            // It fails only if the client is gone.
            let _ = responder.respond_with_result(work.await);
        });
    }

    /// Answers a request with one of the methods below.
    pub(crate) fn answer<Q, R, F>(
        self: &Arc<Self>,
        request: Lenient<Q>,
        responder: Responder<R>,
        method: impl FnOnce(Arc<Self>, Q) -> F + Send + 'static,
    ) where
        Q: Send + 'static,
        R: JsonRpcResponse,
        F: Future<Output = Result<R, Error>> + Send + 'static,
    {
        let agent = Arc::clone(self);
        self.respond(responder, async move { method(agent, request.check()?.0).await });
    }

    /// No authentication is offered, and none is needed.
    pub(crate) async fn authenticate(
        self: Arc<Self>,
        _: AuthenticateRequest,
    ) -> Result<AuthenticateResponse, Error> {
        Ok(AuthenticateResponse::new())
    }

    pub(crate) async fn close_session(
        self: Arc<Self>,
        request: CloseSessionRequest,
    ) -> Result<CloseSessionResponse, Error> {
        let id = &*request.session_id.0;
        let session = self.sessions().remove(id).ok_or_else(|| not_open(id))?;
        session.close().await;
        Ok(CloseSessionResponse::new())
    }

    pub(crate) async fn delete_session(
        self: Arc<Self>,
        request: DeleteSessionRequest,
    ) -> Result<DeleteSessionResponse, Error> {
        let key = request.session_id.0.to_string();
        let open = self.sessions().remove(&key);
        // A turn that was aborted may take a moment to end.
        let mut tries = if open.is_some() { DELETES } else { 1 };
        if let Some(session) = open {
            session.close().await;
        }
        let params = DeleteParams { key, ..DeleteParams::default() };
        loop {
            tries -= 1;
            match self.look::<rpc::SessionsDelete>(params.clone()).await {
                Err(_) if tries > 0 => sleep(AGAIN).await,
                deleted => return deleted.map(|_| DeleteSessionResponse::new()),
            }
        }
    }

    pub(crate) async fn set_mode(
        self: Arc<Self>,
        request: SetSessionModeRequest,
    ) -> Result<SetSessionModeResponse, Error> {
        let session = self.open_session(&request.session_id.0)?;
        session.options.set_mode(&request.mode_id.0).await?;
        session.options.show();
        Ok(SetSessionModeResponse::new())
    }

    pub(crate) async fn set_option(
        self: Arc<Self>,
        request: SetSessionConfigOptionRequest,
    ) -> Result<SetSessionConfigOptionResponse, Error> {
        let session = self.open_session(&request.session_id.0)?;
        let Some(value) = request.value.as_value_id() else {
            return Err(invalid_params("`value` must be the id of a value"));
        };
        session.options.set(&request.config_id.0, &value.0).await?;
        Ok(SetSessionConfigOptionResponse::new(session.options.list()))
    }

    pub(crate) fn prompt(
        self: &Arc<Self>,
        request: Lenient<PromptRequest>,
        responder: Responder<PromptResponse>,
    ) {
        let cancelled = responder.cancellation();
        // Begun here, in the order of the messages: a cancellation that follows must find it.
        let begun = request.check().and_then(|(request, _)| {
            let session = self.open_session(&request.session_id.0)?;
            let trace = request
                .meta
                .as_ref()
                .and_then(|meta| SpanContext::find(|name| meta.get(name)?.as_str()));
            turn::begin(&session, request.prompt, trace.as_ref())
        });
        self.respond(responder, async move { begun?.run(cancelled).await });
    }

    pub(crate) async fn list_sessions(
        self: Arc<Self>,
        request: ListSessionsRequest,
    ) -> Result<ListSessionsResponse, Error> {
        if request.cwd.as_ref().is_some_and(|cwd| !cwd.is_absolute()) {
            return Err(invalid_params("`cwd` must be an absolute path"));
        }
        let offset: u64 = match request.cursor.as_deref() {
            None => 0,
            Some(cursor) => cursor.parse().map_err(|_| invalid_params("invalid `cursor`"))?,
        };
        let params = ListParams {
            limit: Some(PAGE),
            offset: Some(offset),
            include_derived_titles: Some(true),
            agent_id: self.options.agent.clone(),
            ..ListParams::default()
        };
        let rows = self.look::<rpc::SessionsList>(params).await?.sessions;
        let next = (rows.len() as u64 >= PAGE).then(|| offset.saturating_add(PAGE).to_string());
        let wanted =
            request.cwd.as_ref().map(|cwd| openclaw_files::canonical(cwd).unwrap_or(cwd.clone()));
        let here: PathBuf = request.cwd.unwrap_or_else(|| self.options.folder.clone());
        let sessions = rows.into_iter().filter_map(|row| {
            let folder = row.workspace.as_ref().map(PathBuf::from);
            // A conversation without a folder can be loaded in any.
            if folder.is_some() && wanted.is_some() && folder != wanted {
                return None;
            }
            let open = self.find(&row.key).map(|it| it.describer.folders.cwd().to_owned());
            let cwd = open.or(folder).unwrap_or_else(|| here.clone());
            let updated = row.updated_at.and_then(timestamp);
            Some(SessionInfo::new(row.key.clone(), cwd).updated_at(updated).title(title_of(row)))
        });
        Ok(ListSessionsResponse::new(sessions.collect()).next_cursor(next))
    }

    /// Sends a short request to the gateway, with a timeout. A connection that was lost is opened
    /// again.
    pub(crate) async fn look<R: Rpc>(&self, params: R::Params) -> Result<R::Result, Error>
    where
        R::Params: Clone,
    {
        let asking = async |gateway: Arc<dyn Surface>| {
            let answer = timeout(SHORT, ask::<R>(&*gateway, params.clone())).await;
            answer.map_err(|_| internal("the gateway did not respond in time"))
        };
        let known = self.gateway.lock().await.clone();
        if let Some(gateway) = known {
            match asking(gateway).await? {
                Err(error) if is_lost(&error) => *self.gateway.lock().await = None,
                answer => return answer.map_err(|error| refused(&error)),
            }
        }
        let gateway = self.options.connect.connect().await.map_err(internal)?;
        *self.gateway.lock().await = Some(Arc::clone(&gateway));
        asking(gateway).await?.map_err(|error| refused(&error))
    }
}

/// Whether the connection was lost, so that the request may succeed on another one.
fn is_lost(error: &RequestError) -> bool {
    let RequestError::Refused(shape) = error else { return false };
    shape.detail().as_deref() == Some(detail::CONNECTION_LOST)
}

/// A time in milliseconds since 1970, as in RFC 3339.
fn timestamp(millis: f64) -> Option<String> {
    #[expect(clippy::cast_possible_truncation, reason = "milliseconds fit for a long time")]
    let time = jiff::Timestamp::from_millisecond(millis as i64).ok()?;
    Some(time.to_string())
}
