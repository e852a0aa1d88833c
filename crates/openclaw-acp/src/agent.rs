//! The agent side of an ACP connection: its methods, and the sessions that are open.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, AuthenticateRequest, AuthenticateResponse, CancelNotification,
    ClientCapabilities, CloseSessionRequest, CloseSessionResponse, DeleteSessionRequest,
    DeleteSessionResponse, Implementation, InitializeRequest, InitializeResponse,
    ListSessionsRequest, ListSessionsResponse, LoadSessionRequest, LoadSessionResponse,
    McpCapabilities, NewSessionRequest, NewSessionResponse, PromptCapabilities, PromptRequest,
    PromptResponse, ResumeSessionRequest, ResumeSessionResponse,
    SessionAdditionalDirectoriesCapabilities, SessionCapabilities, SessionCloseCapabilities,
    SessionDeleteCapabilities, SessionInfo, SessionListCapabilities, SessionResumeCapabilities,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{
    Agent as AgentRole, Client, ConnectTo, Error, JsonRpcResponse, Lines, on_receive_notification,
    on_receive_request,
};
use futures_util::future::join_all;
use openclaw_protocol::agents::{Agent as AgentEntry, ListParams as AgentsParams};
use openclaw_protocol::sessions::{DeleteParams, DescribeParams, ListParams};
use openclaw_protocol::{Connect, Rpc, Surface, ask, keys, rpc};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::error::{internal, invalid_params, refused, unknown_session};
use crate::lines;
use crate::request::Lenient;
use crate::servers::{Entry, ServerSetup};
use crate::session::{NewSession, Session};
use crate::{history, turn};

/// The timeout of a short request to the gateway.
const SHORT: Duration = Duration::from_secs(30);
/// How long requests may take to finish after the client has closed its end.
const FINISH: Duration = Duration::from_secs(2);
/// Sessions per page of `session/list`.
const PAGE: u64 = 100;
/// Maximum number of open sessions.
const MAX_SESSIONS: usize = 256;

/// What an ACP agent needs.
pub struct Options {
    /// The gateway. Each session has its own connection, so that sessions share no lent tools.
    pub connect: Arc<dyn Connect>,
    /// The agent of new sessions; `None` for the default one.
    pub agent: Option<String>,
    /// The MCP servers of sessions.
    pub servers: ServerSetup,
    /// The version of this program.
    pub version: String,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("agent", &self.agent).finish_non_exhaustive()
    }
}

/// Why serving ended early.
#[derive(Debug, thiserror::Error)]
#[error("the connection to the client failed: {0}")]
pub struct ServeError(String);

/// Serves a client until it closes `input`, then stops the MCP servers of all sessions.
///
/// # Errors
/// If reading or writing fails.
pub async fn serve(
    options: Options,
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> Result<(), ServeError> {
    let agent = Arc::new(Agent {
        options,
        client: OnceLock::new(),
        gateway: OnceCell::new(),
        sessions: Mutex::default(),
        requests: TaskTracker::new(),
    });
    let is_gone = Arc::<AtomicBool>::default();
    let outgoing = Box::pin(lines::outgoing(output, Arc::clone(&is_gone)));
    let transport = Lines::new(outgoing, Box::pin(lines::incoming(input)));
    let served = connection(&agent, transport).await;
    let open = std::mem::take(&mut *agent.lock());
    join_all(open.into_values().map(|session| async move { session.close().await })).await;
    match served {
        // A client that is killed closes both ends, in any order.
        Err(error) if !is_gone.load(Ordering::Relaxed) => Err(ServeError(error.message)),
        _ => Ok(()),
    }
}

/// Runs the connection. Handlers hold its dispatch loop: they only spawn.
async fn connection(
    agent: &Arc<Agent>,
    transport: impl ConnectTo<AgentRole> + 'static,
) -> Result<(), Error> {
    macro_rules! on {
        ($builder:expr, $request:ty, $method:ident) => {{
            let agent = Arc::clone(agent);
            $builder.on_receive_request(
                async move |request: Lenient<$request>, responder, cx| {
                    Arc::clone(&agent).$method(request, responder, cx);
                    Ok(())
                },
                on_receive_request!(),
            )
        }};
    }
    let builder = AgentRole.v1().name("openclaw");
    let builder = {
        let agent = Arc::clone(agent);
        builder.on_receive_request(
            async move |request: InitializeRequest, responder, _| {
                responder.respond(agent.initialize(request))
            },
            on_receive_request!(),
        )
    };
    let builder = on!(builder, AuthenticateRequest, authenticate);
    let builder = on!(builder, NewSessionRequest, new_session);
    let builder = on!(builder, LoadSessionRequest, load_session);
    let builder = on!(builder, ResumeSessionRequest, resume_session);
    let builder = on!(builder, ListSessionsRequest, list_sessions);
    let builder = on!(builder, CloseSessionRequest, close_session);
    let builder = on!(builder, DeleteSessionRequest, delete_session);
    let builder = on!(builder, PromptRequest, prompt);
    let builder = {
        let agent = Arc::clone(agent);
        builder.on_receive_notification(
            async move |cancel: CancelNotification, _| {
                // Without a prompt there is nothing to cancel, and nobody to tell.
                if let Some(session) = agent.find(&cancel.session_id.0) {
                    session.cancel();
                }
                Ok(())
            },
            on_receive_notification!(),
        )
    };
    let closing = Arc::clone(agent);
    builder
        .on_close(async move |_| {
            let open: Vec<Arc<Session>> = closing.lock().values().cloned().collect();
            open.iter().for_each(|session| session.cancel());
            closing.requests.close();
            let _ = timeout(FINISH, closing.requests.wait()).await;
            Ok(())
        })
        .connect_to(transport)
        .await
}

struct Agent {
    options: Options,
    client: OnceLock<ClientCapabilities>,
    /// A connection for requests that belong to no session.
    gateway: OnceCell<Arc<dyn Surface>>,
    sessions: Mutex<BTreeMap<String, Arc<Session>>>,
    /// The requests being answered.
    requests: TaskTracker,
}

/// An agent of the gateway.
struct ChosenAgent {
    id: String,
    workspace: Option<PathBuf>,
}

impl Agent {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, id: &str) -> Option<Arc<Session>> {
        self.lock().get(id).cloned()
    }

    fn initialize(&self, request: InitializeRequest) -> InitializeResponse {
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

    /// Answers a request outside the dispatch loop.
    fn answer<T: JsonRpcResponse>(
        &self,
        responder: Responder<T>,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) {
        self.requests.spawn(async move {
            // It fails only if the client is gone.
            let _ = responder.respond_with_result(work.await);
        });
    }

    fn authenticate(
        self: Arc<Self>,
        request: Lenient<AuthenticateRequest>,
        responder: Responder<AuthenticateResponse>,
        _: ConnectionTo<Client>,
    ) {
        // No authentication is offered, and none is needed.
        let answer = request.check().map(|_| AuthenticateResponse::new());
        self.answer(responder, async move { answer });
    }

    fn new_session(
        self: Arc<Self>,
        request: Lenient<NewSessionRequest>,
        responder: Responder<NewSessionResponse>,
        cx: ConnectionTo<Client>,
    ) {
        let agent = Arc::clone(&self);
        self.requests.spawn(async move {
            let opened = async {
                let (request, servers) = request.check()?;
                let chosen = agent.chosen(None).await?;
                let key = format!("agent:{}:acp-{}", chosen.id, fresh_name());
                let folders = Folders::new(request.cwd, request.additional_directories)?;
                agent.open(key, chosen, folders, servers, cx).await
            };
            match opened.await {
                Ok(session) => {
                    let _ = responder.respond(NewSessionResponse::new(session.id.clone()));
                    // After the response: only now does the client know the session.
                    session.is_known();
                }
                Err(error) => drop(responder.respond_with_error(error)),
            }
        });
    }

    fn load_session(
        self: Arc<Self>,
        request: Lenient<LoadSessionRequest>,
        responder: Responder<LoadSessionResponse>,
        cx: ConnectionTo<Client>,
    ) {
        let agent = Arc::clone(&self);
        self.requests.spawn(async move {
            let opened = async {
                let (request, servers) = request.check()?;
                let folders = Folders::new(request.cwd, request.additional_directories)?;
                let session = agent.reopen(&request.session_id.0, folders, servers, cx).await?;
                // Before the response, which says that the replay is complete.
                history::replay(&session).await?;
                Ok(session)
            };
            match opened.await {
                Ok(session) => {
                    let _ = responder.respond(LoadSessionResponse::new());
                    session.is_known();
                }
                Err(error) => drop(responder.respond_with_error(error)),
            }
        });
    }

    fn resume_session(
        self: Arc<Self>,
        request: Lenient<ResumeSessionRequest>,
        responder: Responder<ResumeSessionResponse>,
        cx: ConnectionTo<Client>,
    ) {
        let agent = Arc::clone(&self);
        self.requests.spawn(async move {
            let opened = async {
                let (request, servers) = request.check()?;
                let folders = Folders::new(request.cwd, request.additional_directories)?;
                agent.reopen(&request.session_id.0, folders, servers, cx).await
            };
            match opened.await {
                Ok(session) => {
                    let _ = responder.respond(ResumeSessionResponse::new());
                    session.is_known();
                }
                Err(error) => drop(responder.respond_with_error(error)),
            }
        });
    }

    fn list_sessions(
        self: Arc<Self>,
        request: Lenient<ListSessionsRequest>,
        responder: Responder<ListSessionsResponse>,
        _: ConnectionTo<Client>,
    ) {
        let agent = Arc::clone(&self);
        self.answer(responder, async move { agent.list(request.check()?.0).await });
    }

    fn close_session(
        self: Arc<Self>,
        request: Lenient<CloseSessionRequest>,
        responder: Responder<CloseSessionResponse>,
        _: ConnectionTo<Client>,
    ) {
        let agent = Arc::clone(&self);
        self.answer(responder, async move {
            let (request, _) = request.check()?;
            let id = &*request.session_id.0;
            let session = agent.lock().remove(id).ok_or_else(|| unknown_session(id))?;
            session.close().await;
            Ok(CloseSessionResponse::new())
        });
    }

    fn delete_session(
        self: Arc<Self>,
        request: Lenient<DeleteSessionRequest>,
        responder: Responder<DeleteSessionResponse>,
        _: ConnectionTo<Client>,
    ) {
        let agent = Arc::clone(&self);
        self.answer(responder, async move {
            let (request, _) = request.check()?;
            let key = request.session_id.0.to_string();
            let open = agent.lock().remove(&key);
            if let Some(session) = open {
                session.close().await;
            }
            let params = DeleteParams { key, ..DeleteParams::default() };
            agent.look::<rpc::SessionsDelete>(params).await?;
            Ok(DeleteSessionResponse::new())
        });
    }

    fn prompt(
        self: Arc<Self>,
        request: Lenient<PromptRequest>,
        responder: Responder<PromptResponse>,
        _: ConnectionTo<Client>,
    ) {
        let cancelled = responder.cancellation();
        // Begun here, in the order of the messages: a cancellation that follows must find it.
        let begun = request.check().and_then(|(request, _)| {
            let id = &*request.session_id.0;
            let session = self.find(id).ok_or_else(|| unknown_session(id))?;
            turn::begin(&session, request.prompt)
        });
        self.answer(responder, async move { begun?.run(cancelled).await });
    }

    /// Opens a session that exists.
    async fn reopen(
        &self,
        id: &str,
        folders: Folders,
        servers: Option<Value>,
        cx: ConnectionTo<Client>,
    ) -> Result<Arc<Session>, Error> {
        let params = DescribeParams { key: id.to_owned(), ..DescribeParams::default() };
        let found = self.look::<rpc::SessionsDescribe>(params).await?.session;
        let is_open = self.find(id).is_some();
        let of_key = keys::agent_of(id).map(ToOwned::to_owned);
        let owner = match found {
            Some(row) => row.agent_id.or(of_key),
            // A session without messages is not stored yet.
            None if is_open => of_key,
            None => return Err(unknown_session(id)),
        };
        let chosen = self.chosen(owner.as_deref()).await?;
        self.open(id.to_owned(), chosen, folders, servers, cx).await
    }

    /// Opens a session, replacing the one with the same id.
    async fn open(
        &self,
        key: String,
        agent: ChosenAgent,
        folders: Folders,
        servers: Option<Value>,
        cx: ConnectionTo<Client>,
    ) -> Result<Arc<Session>, Error> {
        let Folders { cwd, more } = folders;
        let entries = Entry::read_all(servers.as_ref(), &self.options.servers.config.acp)
            .map_err(invalid_params)?;
        if self.lock().len() >= MAX_SESSIONS {
            return Err(internal(format!("{MAX_SESSIONS} sessions are open; close some")));
        }
        let before = self.lock().remove(&key);
        if let Some(before) = before {
            before.close().await;
        }
        let surface = self.options.connect.connect().await.map_err(internal)?;
        let session = Session::start(
            NewSession {
                key: key.clone(),
                agent: agent.id,
                workspace: agent.workspace,
                cwd,
                more_folders: more,
                surface,
                cx,
                client: self.client.get().cloned().unwrap_or_default(),
            },
            entries,
            &self.options.servers,
        );
        let replaced = self.lock().insert(key, Arc::clone(&session));
        if let Some(replaced) = replaced {
            replaced.close().await;
        }
        Ok(session)
    }

    async fn list(&self, request: ListSessionsRequest) -> Result<ListSessionsResponse, Error> {
        let offset = match request.cursor.as_deref() {
            None => 0,
            Some(cursor) => cursor.parse().map_err(|_| invalid_params("invalid cursor"))?,
        };
        let params = ListParams {
            limit: Some(PAGE),
            offset: Some(offset),
            include_derived_titles: Some(true),
            agent_id: self.options.agent.clone(),
            ..ListParams::default()
        };
        let rows = self.look::<rpc::SessionsList>(params).await?.sessions;
        let next = (rows.len() as u64 >= PAGE).then(|| (offset + PAGE).to_string());
        let here = request.cwd.clone().or_else(|| std::env::current_dir().ok());
        let here = here.unwrap_or_else(|| PathBuf::from("/"));
        let sessions = rows.into_iter().map(|row| {
            // A conversation belongs to no folder: it can be loaded in any.
            let cwd = self.find(&row.key).map_or_else(|| here.clone(), |it| it.cwd.clone());
            let title = row.label.or(row.derived_title).or(row.display_name);
            SessionInfo::new(row.key, cwd)
                .title(title)
                .updated_at(row.updated_at.and_then(timestamp))
        });
        Ok(ListSessionsResponse::new(sessions.collect()).next_cursor(next))
    }

    /// Sends a short request to the gateway, with a timeout.
    async fn look<R: Rpc>(&self, params: R::Params) -> Result<R::Result, Error> {
        let connecting = self.gateway.get_or_try_init(|| self.options.connect.connect());
        let gateway = connecting.await.map_err(internal)?;
        let answer = timeout(SHORT, ask::<R>(&**gateway, params)).await;
        let answer = answer.map_err(|_| internal("the gateway did not respond in time"))?;
        answer.map_err(|error| refused(&error))
    }

    /// Finds an agent of the gateway: the named one, that of the command line, or the default one.
    async fn chosen(&self, id: Option<&str>) -> Result<ChosenAgent, Error> {
        let known = self.look::<rpc::AgentsList>(AgentsParams::default()).await?;
        let id = id.or(self.options.agent.as_deref()).unwrap_or(&known.default_id);
        let found = known.agents.into_iter().find(|agent| agent.id == id);
        let Some(AgentEntry { id, workspace, .. }) = found else {
            return Err(internal(format!("unknown agent `{id}`")));
        };
        Ok(ChosenAgent { id, workspace: workspace.map(PathBuf::from) })
    }
}

/// The folders of a session.
struct Folders {
    cwd: PathBuf,
    more: Vec<PathBuf>,
}

impl Folders {
    fn new(cwd: PathBuf, more: Vec<PathBuf>) -> Result<Self, Error> {
        if !cwd.is_absolute() || more.iter().any(|folder| !folder.is_absolute()) {
            return Err(invalid_params("`cwd` and `additionalDirectories` must be absolute paths"));
        }
        Ok(Self { cwd, more })
    }
}

/// A time in milliseconds since 1970, as in RFC 3339.
fn timestamp(millis: f64) -> Option<String> {
    #[expect(clippy::cast_possible_truncation, reason = "milliseconds fit for a long time")]
    let time = jiff::Timestamp::from_millisecond(millis as i64).ok()?;
    Some(time.to_string())
}

/// A name for a new session. It need not be secret.
pub(crate) fn fresh_name() -> String {
    let mut bytes = [0; 8];
    if getrandom::fill(&mut bytes).is_err() {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let nanos = since.unwrap_or_default().as_nanos().to_be_bytes();
        bytes.copy_from_slice(&nanos[8..]);
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
