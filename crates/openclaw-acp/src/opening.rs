//! Opening sessions: `session/new`, `session/load` and `session/resume`.

use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    LoadSessionRequest, LoadSessionResponse, NewSessionRequest, NewSessionResponse,
    ResumeSessionRequest, ResumeSessionResponse, SessionId,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Client, Error, JsonRpcRequest};
use futures_util::FutureExt as _;
use openclaw_protocol::agents::{Agent as AgentEntry, ListParams as AgentsParams};
use openclaw_protocol::sessions::{DescribeParams, Row};
use openclaw_protocol::{keys, rpc};
use serde_json::Value;

use crate::agent::AcpAgent;
use crate::error::{internal, invalid_params, unknown_session};
use crate::folders::SessionFolders;
use crate::ids::fresh_id;
use crate::request::Lenient;
use crate::servers::EditorServer;
use crate::session::{AcpSession, NewSession};
use crate::{events, history};

/// Maximum number of open sessions.
const MAX_SESSIONS: usize = 256;

/// A request that opens a session.
pub(crate) trait OpensSession: JsonRpcRequest + Send + 'static {
    /// Whether the session exists already.
    const EXISTS: bool;
    /// Whether the history is replayed.
    const REPLAYS: bool;

    /// Returns the session, if it exists already, and its folders: the current one first.
    fn parts(self) -> (Option<SessionId>, PathBuf, Vec<PathBuf>);

    fn response(session: &AcpSession) -> Self::Response;
}

impl OpensSession for NewSessionRequest {
    const EXISTS: bool = false;
    const REPLAYS: bool = false;

    fn parts(self) -> (Option<SessionId>, PathBuf, Vec<PathBuf>) {
        (None, self.cwd, self.additional_directories)
    }

    fn response(session: &AcpSession) -> NewSessionResponse {
        NewSessionResponse::new(session.client.session.clone())
            .modes(session.options.modes())
            .config_options(session.options.list())
    }
}

impl OpensSession for LoadSessionRequest {
    const EXISTS: bool = true;
    const REPLAYS: bool = true;

    fn parts(self) -> (Option<SessionId>, PathBuf, Vec<PathBuf>) {
        (Some(self.session_id), self.cwd, self.additional_directories)
    }

    fn response(session: &AcpSession) -> LoadSessionResponse {
        LoadSessionResponse::new()
            .modes(session.options.modes())
            .config_options(session.options.list())
    }
}

impl OpensSession for ResumeSessionRequest {
    const EXISTS: bool = true;
    const REPLAYS: bool = false;

    fn parts(self) -> (Option<SessionId>, PathBuf, Vec<PathBuf>) {
        (Some(self.session_id), self.cwd, self.additional_directories)
    }

    fn response(session: &AcpSession) -> ResumeSessionResponse {
        ResumeSessionResponse::new()
            .modes(session.options.modes())
            .config_options(session.options.list())
    }
}

/// An agent of the gateway.
struct ChosenAgent {
    id: String,
    workspace: Option<PathBuf>,
}

impl AcpAgent {
    /// Answers a request that opens a session.
    pub(crate) fn opens<R: OpensSession>(
        self: &Arc<Self>,
        request: Lenient<R>,
        responder: Responder<R::Response>,
        cx: ConnectionTo<Client>,
    ) {
        let agent = Arc::clone(self);
        // Queued here, in the order of the messages: of two requests for the same session, the later
        // one is to win.
        let queued = R::EXISTS.then(|| {
            let mut turn = Box::pin(Arc::clone(&self.opening).lock_owned());
            let held = turn.as_mut().now_or_never();
            (turn, held)
        });
        self.spawn(async move {
            // Held until the response, so that their replays do not mix.
            let _opening = match queued {
                Some((_, Some(held))) => Some(held),
                Some((turn, None)) => Some(turn.await),
                None => None,
            };
            let opened = async {
                let (request, servers) = request.check()?;
                let session = agent.open(request.parts(), servers, cx).await?;
                if R::REPLAYS {
                    // Before the response, which says that the replay is complete.
                    let AcpSession { gateway, client, describer, tasks, .. } = &*session;
                    history::replay(gateway, client, describer, tasks.ended()).await?;
                }
                Ok(session)
            };
            match opened.await {
                Ok(session) => {
                    tokio::select! {
                        () = session.client.updates.flushed() => {}
                        // It was closed meanwhile.
                        () = session.tasks.ended().cancelled() => {}
                    }
                    let _ = responder.respond(R::response(&session));
                    // After the response: only now does the client know the session.
                    session.commands.show();
                }
                Err(error) => drop(responder.respond_with_error(error)),
            }
        });
    }

    /// Opens a session, replacing the one with the same id.
    async fn open(
        &self,
        (id, cwd, more_folders): (Option<SessionId>, PathBuf, Vec<PathBuf>),
        servers: Option<Value>,
        cx: ConnectionTo<Client>,
    ) -> Result<Arc<AcpSession>, Error> {
        if !cwd.is_absolute() || more_folders.iter().any(|folder| !folder.is_absolute()) {
            return Err(invalid_params("`cwd` and `additionalDirectories` must be absolute paths"));
        }
        // One that is missing may be on the machine of the editor.
        if cwd.is_file() {
            return Err(invalid_params("`cwd` is not a folder"));
        }
        let entries = EditorServer::read_all(servers.as_ref(), &self.options.servers.config.acp)
            .map_err(invalid_params)?;
        let (key, agent, row) = match id {
            None => {
                let agent = self.chosen(None).await?;
                (format!("agent:{}:acp-{}", agent.id, fresh_id()), agent, None)
            }
            Some(id) => {
                let row = self.stored(&id.0).await?;
                let owner = row.as_ref().and_then(|row| row.agent_id.as_deref());
                let agent = self.chosen(owner.or(keys::agent_of(&id.0))).await?;
                (id.0.to_string(), agent, row)
            }
        };
        let is_full = {
            let open = self.sessions();
            open.len() >= MAX_SESSIONS && !open.contains_key(&key)
        };
        if is_full {
            return Err(internal(format!("{MAX_SESSIONS} sessions are open; close some")));
        }
        let surface = self.options.connect.connect().await.map_err(internal)?;
        // Only now: if there is no gateway, the session stays as it is.
        let before = self.sessions().remove(&key);
        if let Some(before) = before {
            before.close().await;
        }
        let folder = openclaw_files::canonical(&cwd).ok();
        let folder = folder.filter(|folder| (self.options.works_in)(&agent.id, folder));
        // Subscribed before anything is requested, so that no event is missed.
        let events = surface.events();
        let session = AcpSession::start(
            NewSession {
                key: key.clone(),
                agent: agent.id,
                folders: SessionFolders {
                    client: std::iter::once(cwd).chain(more_folders).collect(),
                    workspace: folder.clone().or(agent.workspace),
                    turns: folder,
                },
                surface,
                connect: Arc::clone(&self.options.connect),
                cx,
                client: self.client(),
                outbox: Arc::clone(&self.outbox),
            },
            entries,
            &self.options.servers,
        );
        let session = Arc::new(session);
        session.tasks.spawn(events::follow(Arc::clone(&session), events));
        let replaced = self.sessions().insert(key, Arc::clone(&session));
        if let Some(replaced) = replaced {
            replaced.close().await;
        }
        session.options.learn(row.as_ref()).await;
        Ok(session)
    }

    /// Finds a session: `None` if it is open, but has no messages yet and is not stored.
    async fn stored(&self, id: &str) -> Result<Option<Row>, Error> {
        let params = DescribeParams { key: id.to_owned(), ..DescribeParams::default() };
        let row = self.look::<rpc::SessionsDescribe>(params).await?.session;
        if row.is_none() && self.find(id).is_none() {
            return Err(unknown_session(id));
        }
        Ok(row)
    }

    /// Finds an agent of the gateway: the named one, that of the command line, or the default one.
    async fn chosen(&self, id: Option<&str>) -> Result<ChosenAgent, Error> {
        let known = self.look::<rpc::AgentsList>(AgentsParams::default()).await?;
        let id = id.or(self.options.agent.as_deref()).unwrap_or(&known.default_id);
        let ids: Vec<&str> = known.agents.iter().map(|agent| agent.id.as_str()).collect();
        let unknown = format!("unknown agent `{id}`; configured: {}", ids.join(", "));
        let found = known.agents.into_iter().find(|agent| agent.id == id);
        let Some(AgentEntry { id, workspace, .. }) = found else { return Err(internal(unknown)) };
        Ok(ChosenAgent { id, workspace: workspace.map(PathBuf::from) })
    }
}
