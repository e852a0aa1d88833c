//! A session of an editor: composes its services, and owns its connection to the gateway, its MCP
//! servers and its tasks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_client_protocol::Client;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{ClientCapabilities, SessionId};
use openclaw_protocol::{Connect, Surface};
use openclaw_trace::Tracer;

use crate::catalog::ToolCatalog;
use crate::client::SessionClient;
use crate::commands::{CommandMenu, SentCommands};
use crate::current_turn::{CurrentTurn, TurnEnd};
use crate::describe::CallDescriber;
use crate::editor_tools::EditorTools;
use crate::elicit::SessionElicitations;
use crate::folders::SessionFolders;
use crate::gateway::GatewaySession;
use crate::lending::Lending;
use crate::lent_calls::LentCalls;
use crate::lent_tools::EditorLentTools;
use crate::open_calls::OpenCalls;
use crate::options::SessionOptions;
use crate::outbox::WriteBacklog;
use crate::permission::Permissions;
use crate::publish::Publisher;
use crate::questions::OpenQuestions;
use crate::servers::{EditorServer, ServerSetup, SessionServers};
use crate::tasks::SessionTasks;

/// How long the tasks of a session may take to end.
const TASKS: Duration = Duration::from_secs(2);

/// What a session is opened with.
pub(crate) struct NewSession {
    pub(crate) key: String,
    pub(crate) agent: String,
    pub(crate) folders: SessionFolders,
    pub(crate) surface: Arc<dyn Surface>,
    pub(crate) connect: Arc<dyn Connect>,
    pub(crate) cx: ConnectionTo<Client>,
    pub(crate) client: ClientCapabilities,
    pub(crate) outbox: Arc<WriteBacklog>,
}

/// A session. The gateway's session key is its id.
pub(crate) struct AcpSession {
    pub(crate) gateway: Arc<GatewaySession>,
    pub(crate) client: Arc<SessionClient>,
    pub(crate) turn: Arc<CurrentTurn>,
    pub(crate) calls: Arc<OpenCalls>,
    pub(crate) describer: Arc<CallDescriber>,
    pub(crate) options: Arc<SessionOptions>,
    pub(crate) commands: Arc<CommandMenu>,
    pub(crate) questions: Arc<OpenQuestions>,
    pub(crate) permissions: Arc<Permissions>,
    pub(crate) elicitations: Arc<SessionElicitations>,
    pub(crate) servers: Option<Arc<SessionServers>>,
    pub(crate) lent_calls: Arc<LentCalls>,
    pub(crate) lending: Arc<Lending>,
    pub(crate) tasks: SessionTasks,
    /// Records the spans of prompts.
    pub(crate) tracer: Tracer,
    /// Whether the client knows the title.
    pub(crate) has_title: AtomicBool,
    is_gateway_gone: AtomicBool,
}

impl AcpSession {
    /// Opens a session: its servers connect in the background.
    pub(crate) fn start(new: NewSession, servers: Vec<EditorServer>, setup: &ServerSetup) -> Self {
        let id = SessionId::new(new.key.as_str());
        let gateway =
            Arc::new(GatewaySession { key: new.key, agent: new.agent, surface: new.surface });
        let client = Arc::new(SessionClient::new(id, new.client, new.cx, new.outbox));
        let folders = Arc::new(new.folders);
        let tasks = SessionTasks::default();
        let turn: Arc<CurrentTurn> = Arc::default();
        let calls: Arc<OpenCalls> = Arc::default();
        let lent: Arc<EditorLentTools> = Arc::default();
        let questions: Arc<OpenQuestions> = Arc::default();
        let catalog = Arc::new(ToolCatalog::new(gateway.clone()));
        let options = Arc::new(SessionOptions::new(gateway.clone(), client.clone()));
        let describer = Arc::new(CallDescriber {
            folders: folders.clone(),
            lent: lent.clone(),
            catalog: catalog.clone(),
        });
        let elicitations = Arc::new(SessionElicitations {
            gateway: gateway.clone(),
            client: client.clone(),
            turn: turn.clone(),
            questions: questions.clone(),
            tasks: tasks.clone(),
        });
        let elicitor = elicitations.clone();
        let servers =
            SessionServers::start(servers, &gateway.agent, &folders.client, setup, elicitor);
        let servers = servers.map(Arc::new);
        let editor_tools =
            Arc::new(EditorTools::new(client.clone(), folders, calls.clone(), tasks.clone()));
        let commands = Arc::new(CommandMenu {
            gateway: gateway.clone(),
            client: client.clone(),
            catalog,
            options: options.clone(),
            servers: servers.clone(),
            sent: SentCommands::default(),
        });
        let permissions = Arc::new(Permissions {
            gateway: gateway.clone(),
            client: client.clone(),
            turn: turn.clone(),
            calls: calls.clone(),
            lent: lent.clone(),
            options: options.clone(),
            describer: describer.clone(),
            editor_tools: editor_tools.clone(),
            questions: questions.clone(),
            tasks: tasks.clone(),
        });
        let lent_calls = Arc::new(LentCalls {
            gateway: gateway.clone(),
            turn: turn.clone(),
            calls: calls.clone(),
            lent: lent.clone(),
            servers: servers.clone(),
            editor_tools: editor_tools.clone(),
            tasks: tasks.clone(),
        });
        let publisher = Arc::new(Publisher {
            connect: new.connect,
            gateway: gateway.clone(),
            client: client.clone(),
            turn: turn.clone(),
            lent: lent.clone(),
            lent_calls: lent_calls.clone(),
            permissions: permissions.clone(),
            tasks: tasks.clone(),
            node: tokio::sync::Mutex::default(),
        });
        let lending = Arc::new(Lending {
            gateway: gateway.clone(),
            client: client.clone(),
            lent,
            servers: servers.clone(),
            editor_tools,
            publisher,
            commands: commands.clone(),
            patience: setup.patience,
            progress: Mutex::default(),
        });
        tasks.spawn(lending.clone().keep_lending());
        tasks.spawn(commands.clone().keep_sending());
        tasks.spawn({
            let client = client.clone();
            async move { client.updates.keep_sending().await }
        });
        Self {
            gateway,
            client,
            turn,
            calls,
            describer,
            options,
            commands,
            questions,
            permissions,
            elicitations,
            servers,
            lent_calls,
            lending,
            tasks,
            tracer: setup.services.tracer.clone(),
            has_title: AtomicBool::new(false),
            is_gateway_gone: AtomicBool::new(false),
        }
    }

    /// Whether no turn can begin any more.
    pub(crate) fn is_over(&self) -> bool {
        self.tasks.ended().is_cancelled() || self.is_gateway_gone.load(Ordering::Acquire)
    }

    /// The gateway is gone: the session cannot go on, and its servers are not needed.
    pub(crate) async fn lose_gateway(&self) {
        self.is_gateway_gone.store(true, Ordering::Release);
        self.turn.finish(TurnEnd::GatewayGone);
        self.stop_servers().await;
    }

    async fn stop_servers(&self) {
        if let Some(servers) = &self.servers {
            servers.stop().await;
        }
    }

    /// Ends the session: aborts its turn and stops its servers. The conversation is kept.
    pub(crate) async fn close(&self) {
        if let Some(run) = self.turn.run() {
            self.turn.cancel();
            self.gateway.abort(&run).await;
        }
        self.turn.finish(TurnEnd::cancelled());
        self.tasks.end();
        // The connection stays open as long as a request holds the session: a session that is
        // opened again must not find these tools.
        tokio::join!(self.stop_servers(), self.lending.stop(TASKS), self.tasks.finished(TASKS));
    }
}
