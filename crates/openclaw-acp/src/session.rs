//! A session of an editor: its connection to the gateway, its MCP servers, and its running turn.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_client_protocol::Client;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AvailableCommand, ClientCapabilities, Notice, NoticeSeverity, SessionId, SessionUpdate,
};
use openclaw_protocol::chat::AbortParams;
use openclaw_protocol::sessions::SetExtraToolsParams;
use openclaw_protocol::tools::Risk;
use openclaw_protocol::{Connect, EventReceiver, PublishingNode, Surface, ask, rpc};
use openclaw_trace::Tracer;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::calls::OpenCall;
use crate::commands;
use crate::content::chunk;
use crate::editor_tools::EditorTools;
use crate::lending::LentTool;
use crate::options::SessionOptions;
use crate::outbox::WriteBacklog;
use crate::servers::{EditorServer, ServerSetup, SessionServers};
use crate::updates::Updates;

/// How long the gateway may take to abort a turn at the end of a session.
const ABORT: Duration = Duration::from_secs(2);
/// How long the tasks of a session may take to end.
const TASKS: Duration = Duration::from_secs(2);
/// How long changes of the commands are collected: servers that start at the same time make one list.
const MENU: Duration = Duration::from_millis(50);

/// What a session is opened with.
pub(crate) struct NewSession {
    pub(crate) key: String,
    pub(crate) agent: String,
    /// The folder of the agent's own file tools.
    pub(crate) workspace: Option<PathBuf>,
    /// The folder that turns work in, if it is not the agent's own workspace.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) cwd: PathBuf,
    pub(crate) more_folders: Vec<PathBuf>,
    pub(crate) surface: Arc<dyn Surface>,
    pub(crate) connect: Arc<dyn Connect>,
    pub(crate) cx: ConnectionTo<Client>,
    pub(crate) client: ClientCapabilities,
    pub(crate) outbox: Arc<WriteBacklog>,
}

/// A session. The gateway's session key is its id.
pub(crate) struct AcpSession {
    pub(crate) id: SessionId,
    pub(crate) key: String,
    pub(crate) agent: String,
    pub(crate) workspace: Option<PathBuf>,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) cwd: PathBuf,
    pub(crate) surface: Arc<dyn Surface>,
    pub(crate) connect: Arc<dyn Connect>,
    pub(crate) cx: ConnectionTo<Client>,
    pub(crate) updates: Updates,
    pub(crate) client: ClientCapabilities,
    pub(crate) editor_tools: EditorTools,
    pub(crate) servers: Option<SessionServers>,
    /// How long a prompt waits for servers that are starting.
    pub(crate) patience: Duration,
    /// Records the spans of prompts.
    pub(crate) tracer: Tracer,
    pub(crate) state: Mutex<SessionState>,
    /// Cancelled when the session is closed.
    pub(crate) ended: CancellationToken,
    pub(crate) tasks: TaskTracker,
    /// Held while tools are being lent. Contains the node that publishes them, if the gateway takes no
    /// tools for a session.
    pub(crate) lending: tokio::sync::Mutex<Option<Arc<PublishingNode>>>,
    /// Notified when the list of commands may have changed.
    pub(crate) menu: Notify,
}

/// The changing part of a session.
#[derive(Default)]
pub(crate) struct SessionState {
    pub(crate) turn: Option<PromptTurn>,
    /// The number of turns so far.
    pub(crate) turns: u64,
    /// Whether the client knows the title.
    pub(crate) has_title: bool,
    /// The calls of the running turn.
    pub(crate) calls: Vec<OpenCall>,
    /// The session's own tools that the user always allows, as they were then.
    pub(crate) allowed: Vec<LentTool>,
    /// The tools that are lent; `None` before the first time.
    pub(crate) lent: Option<Vec<LentTool>>,
    /// The revision of the servers' lists that they were taken from.
    pub(crate) lent_revision: Option<u64>,
    /// The tools that could not be lent, so that they are reported once.
    pub(crate) refused: Vec<String>,
    /// The servers that were reported as not available, and whether they were still starting then.
    pub(crate) failed: BTreeMap<String, bool>,
    /// Until when prompts wait for servers that are starting; `None` before the first prompt.
    pub(crate) waits_until: Option<Instant>,
    /// Whether the connection to the gateway was lost.
    pub(crate) is_gateway_gone: bool,
    /// Whether the client knows the session.
    is_known: bool,
    /// The model and the mode.
    pub(crate) options: SessionOptions,
    /// The commands that the client knows.
    pub(crate) commands: Option<Vec<AvailableCommand>>,
    /// The side effects of the agent's own tools, for their kind; `None` before they are known.
    pub(crate) risks: Option<BTreeMap<String, Risk>>,
    /// Messages to show at the start of the next turn.
    notes: Vec<String>,
    /// Decisions of the user that the gateway waits for, to be withdrawn when made elsewhere.
    pub(crate) open_questions: Vec<(String, CancellationToken)>,
}

/// A running turn.
pub(crate) struct PromptTurn {
    pub(crate) run: String,
    /// Cancelled by the client.
    pub(crate) cancelled: CancellationToken,
    /// Cancelled when the turn is over: its calls of lent tools end.
    pub(crate) over: CancellationToken,
    pub(crate) end: Option<oneshot::Sender<TurnEnd>>,
    /// The text that was sent since the last call.
    pub(crate) text: String,
    /// Whether the prompt is a command, whose answer is laid out in columns.
    pub(crate) is_command: bool,
    /// Whether events were lost, perhaps the end.
    pub(crate) has_gap: bool,
    /// Whether messages of this program can be shown in it.
    pub(crate) is_started: bool,
}

/// How a turn ended.
#[derive(Debug)]
pub(crate) enum TurnEnd {
    /// With this reason of the gateway.
    Stopped(Option<String>),
    /// The turn failed.
    Failed(String),
    /// The connection to the gateway was lost.
    GatewayGone,
}

impl AcpSession {
    /// Opens a session: its servers connect in the background.
    pub(crate) fn start(
        new: NewSession,
        servers: Vec<EditorServer>,
        setup: &ServerSetup,
    ) -> Arc<Self> {
        let NewSession { key, agent, workspace, folder, cwd, more_folders, surface, .. } = new;
        let NewSession { connect, cx, client, outbox, .. } = new;
        let id = SessionId::new(key.as_str());
        let folders: Vec<PathBuf> = std::iter::once(cwd.clone()).chain(more_folders).collect();
        // Subscribed before anything is requested, so that no event is missed.
        let events = surface.events();
        let session = Arc::new_cyclic(|session| Self {
            servers: SessionServers::start(servers, &agent, &folders, setup, session),
            patience: setup.patience,
            tracer: setup.services.tracer.clone(),
            editor_tools: EditorTools::new(&client, folders),
            updates: Updates::new(id.clone(), cx.clone(), outbox),
            id,
            key,
            agent,
            workspace,
            folder,
            cwd,
            surface,
            connect,
            cx,
            client,
            state: Mutex::default(),
            ended: CancellationToken::new(),
            tasks: TaskTracker::new(),
            lending: tokio::sync::Mutex::default(),
            menu: Notify::new(),
        });
        session.spawn({
            let session = Arc::clone(&session);
            async move { session.follow(events).await }
        });
        session.spawn({
            let session = Arc::clone(&session);
            async move { session.keep_lending().await }
        });
        session.spawn({
            let session = Arc::clone(&session);
            async move { session.updates.keep_sending().await }
        });
        session.spawn({
            let session = Arc::clone(&session);
            async move {
                loop {
                    session.menu.notified().await;
                    sleep(MENU).await;
                    commands::announce(&session).await;
                }
            }
        });
        session
    }

    /// Runs a task until it is done, or the session ends.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let ended = self.ended.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = ended.cancelled() => {}
                () = task => {}
            }
        });
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles the events of the gateway, in order.
    async fn follow(self: Arc<Self>, mut events: EventReceiver) {
        while let Some(event) = events.next().await {
            self.on_event(event);
        }
        // The gateway is gone: the session cannot go on, and its servers are not needed.
        self.lock().is_gateway_gone = true;
        self.finish_turn(TurnEnd::GatewayGone);
        if let Some(servers) = &self.servers {
            servers.stop().await;
        }
    }

    /// Sends a piece of the agent's answer.
    pub(crate) fn say(&self, text: impl Into<String>) {
        self.updates.send(SessionUpdate::AgentMessageChunk(chunk(text)));
    }

    /// Shows a message of this program: now if the client has a place for it or a turn is running,
    /// otherwise at the start of the next turn.
    pub(crate) fn note(&self, text: &str) {
        tracing::info!(session = %self.key, "{text}");
        let has_notices = self.client.session.as_ref().is_some_and(|it| it.notices.is_some());
        if has_notices {
            let (title, more) = text.split_once('\n').unwrap_or((text, ""));
            let more = (!more.is_empty()).then(|| more.to_owned());
            let notice = Notice::new(NoticeSeverity::Warning, title).description(more);
            self.updates.send(SessionUpdate::Notice(notice));
            return;
        }
        let mut state = self.lock();
        if state.turn.as_ref().is_some_and(|turn| turn.is_started) {
            drop(state);
            self.say(format!("\n\n{text}\n\n"));
        } else {
            state.notes.push(text.to_owned());
        }
    }

    /// Shows the messages that wait for a turn.
    pub(crate) fn show_notes(&self) {
        let notes = {
            let mut state = self.lock();
            state.turn.iter_mut().for_each(|turn| turn.is_started = true);
            std::mem::take(&mut state.notes)
        };
        for note in notes {
            self.say(format!("{note}\n\n"));
        }
    }

    /// Called when the client knows the session: only then may it receive the list of commands.
    pub(crate) fn is_known(&self) {
        self.lock().is_known = true;
        self.menu.notify_one();
    }

    /// Sends the list of commands again if the servers of the gateway have changed it.
    pub(crate) fn refresh_commands(&self) {
        if self.lock().is_known {
            self.menu.notify_one();
        }
    }

    /// Cancels the running turn, if there is one.
    pub(crate) fn cancel(&self) {
        if let Some(turn) = &self.lock().turn {
            turn.cancelled.cancel();
        }
    }

    /// Ends the running turn.
    pub(crate) fn finish_turn(&self, end: TurnEnd) {
        if let Some(turn) = &mut self.lock().turn {
            turn.over.cancel();
            if let Some(sender) = turn.end.take() {
                let _ = sender.send(end);
            }
        }
    }

    /// Asks the gateway to abort a run.
    pub(crate) async fn abort(&self, run: &str) {
        let params = AbortParams {
            session_key: self.key.clone(),
            run_id: Some(run.to_owned()),
            ..AbortParams::default()
        };
        // Its end is reported by an event.
        let _ = timeout(ABORT, ask::<rpc::ChatAbort>(&*self.surface, params)).await;
    }

    /// Ends the session: aborts its turn and stops its servers. The conversation is kept.
    pub(crate) async fn close(&self) {
        let run = self.lock().turn.as_ref().map(|turn| turn.run.clone());
        if let Some(run) = run {
            self.cancel();
            self.abort(&run).await;
        }
        self.finish_turn(TurnEnd::Stopped(Some("cancelled".to_owned())));
        self.ended.cancel();
        self.tasks.close();
        let servers = async {
            if let Some(servers) = &self.servers {
                servers.stop().await;
            }
        };
        // The connection stays open as long as a request holds the session: a session that is
        // opened again must not find these tools.
        let params =
            SetExtraToolsParams { session_key: self.key.clone(), ..SetExtraToolsParams::default() };
        let unlent = timeout(TASKS, ask::<rpc::SessionsSetExtraTools>(&*self.surface, params));
        let unpublished = timeout(TASKS, async { *self.lending.lock().await = None });
        let _ = tokio::join!(servers, unlent, unpublished, timeout(TASKS, self.tasks.wait()));
    }
}
