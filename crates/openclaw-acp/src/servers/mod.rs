//! The MCP servers of one session: a private fleet, shared with no other session.

mod entry;

use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt as _;
use openclaw_config::{Config, ToolNaming};
use openclaw_mcp::call::bridge::CallServices;
use openclaw_mcp::call::library::PromptCommand;
use openclaw_mcp::call::resource_tool;
use openclaw_mcp::connection::client::Host;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp::fleet::{Fleet, FleetSetup};
use openclaw_mcp::server::dial::DialContext;
use openclaw_mcp::server::live::LiveConnection;
use openclaw_mcp::server::status::ServerState;
use openclaw_mcp::server::supervisor::ServerSnapshot;
use openclaw_protocol::mcp::servers_settled;
use openclaw_tools::{CallContext, CallOptions, Content, ProgressWatcher, ToolSource as _};
use openclaw_trace::SpanContext;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::timeout;

pub(crate) use self::entry::EditorServer;
use crate::elicit::SessionElicitor;
use crate::lend::{LentOutcome, SessionTool, ToolOwner, text_block};
use crate::session::AcpSession;

/// The template of the tool names (P2).
const NAMING: &str = "mcp__{server}__{tool}";
/// The name of the tool that reads resources: the agent may have one for its own servers.
const RESOURCES: &str = "mcp__resources";
/// The timeout of a call (P5).
const CALL: Duration = Duration::from_secs(120);
/// With more local servers than this, a warning is logged (P5).
const MANY_PROCESSES: usize = 5;

/// What the servers of sessions need.
#[derive(Debug, Clone)]
pub struct ServerSetup {
    /// The configuration: limits, and the policies that also apply to tools of sessions.
    pub config: Config,
    /// The context for connecting. Logins are used only if `acp.useLogins` allows it.
    pub context: DialContext,
    /// The services used by calls.
    pub services: CallServices,
    /// How long the first prompt waits for servers that are starting.
    pub patience: Duration,
}

/// The servers of one session.
pub(crate) struct SessionServers {
    fleet: Arc<Fleet>,
    agent: String,
    max_tools: usize,
    uses_logins: bool,
}

impl SessionServers {
    /// Starts the servers in parallel, without waiting for them. Returns `None` if there are none.
    pub(crate) fn start(
        entries: Vec<EditorServer>,
        agent: &str,
        cwd: &Path,
        setup: &ServerSetup,
        session: &Weak<AcpSession>,
    ) -> Option<Self> {
        if entries.is_empty() {
            return None;
        }
        let local = entries.iter().filter(|entry| entry.is_local()).count();
        if local > MANY_PROCESSES {
            tracing::warn!(local, "many local MCP servers in one session");
        }
        let mut config = setup.config.clone();
        // The agent of a remote gateway may be unknown here: then the policies of the default apply.
        let base = config.agent(Some(agent)).or(config.agents.first())?.clone();
        let id = base.id.to_string();
        let mut of_session = base;
        of_session.mcp.enabled = true;
        of_session.mcp.held_back.clear();
        of_session.mcp.servers = entries.into_iter().map(|entry| entry.config(cwd, CALL)).collect();
        of_session.mcp.settings.tool_naming = ToolNaming::new(NAMING).unwrap_or_default();
        config.agents = vec![of_session];
        let mut context = setup.context.clone();
        let uses_logins = config.acp.use_logins;
        if !uses_logins {
            context.auth = None;
        }
        context.host = Host {
            elicitor: Some(Arc::new(SessionElicitor(Weak::clone(session)))),
            sampler: None,
            workspace: Some(cwd.to_owned()),
            downstream: None,
        };
        // No approvals are stored: the gateway asks before it calls a lent tool.
        let services = CallServices { pins: None, ..setup.services.clone() };
        let setup_of_fleet = FleetSetup { services, ..FleetSetup::new(context) };
        Some(Self {
            max_tools: config.acp.max_tools,
            fleet: Fleet::start(&config, setup_of_fleet),
            agent: id,
            uses_logins,
        })
    }

    pub(crate) fn view(&self) -> Option<Arc<AgentTools>> {
        self.fleet.agent(&self.agent)
    }

    /// Returns the number of changes of their lists.
    pub(crate) fn revision(&self) -> u64 {
        self.fleet.revision().get()
    }

    /// Returns the tools, and a note if there are too many.
    pub(crate) fn tools(&self) -> (Vec<SessionTool>, Option<String>) {
        let tools = self.view().map(|view| view.tools()).unwrap_or_default();
        let (found, most) = (tools.len(), self.max_tools);
        let tools = tools.iter().take(most).map(|tool| {
            let spec = tool.spec();
            let own = spec.name.as_str();
            let name = if own == resource_tool::NAME { RESOURCES } else { own };
            SessionTool {
                name: name.to_owned(),
                label: spec.label.clone(),
                description: spec.description.clone(),
                schema: Arc::clone(&spec.input_schema),
                effect: spec.effect,
                by: ToolOwner::Servers(own.to_owned()),
            }
        });
        let note = (found > most).then(|| {
            format!(
                "The MCP servers of this session have {found} tools; only {most} are used \
                 (setting `acp.maxTools`, or OPENCLAW_ACP_MAX_TOOLS)."
            )
        });
        (tools.collect(), note)
    }

    /// Returns the prompts as commands.
    pub(crate) fn prompts(&self) -> Vec<PromptCommand> {
        self.view().map(|view| view.prompts()).unwrap_or_default()
    }

    /// Returns the prompt with this command.
    pub(crate) fn prompt(&self, command: &str) -> Option<PromptCommand> {
        self.prompts().into_iter().find(|prompt| prompt.command.as_str() == command)
    }

    /// Calls a tool. The gateway has obtained the user's approval.
    pub(crate) async fn call(
        &self,
        name: &str,
        arguments: &RawValue,
        (session, watcher): (&str, &ProgressWatcher),
        trace: Option<&SpanContext>,
    ) -> LentOutcome {
        let Some(view) = self.view() else {
            return Err("The MCP servers of this session have stopped.".to_owned());
        };
        let context = CallContext {
            session: Some(session),
            options: CallOptions { watcher: Some(watcher), ..CallOptions::default() },
            trace,
            ..CallContext::by_hand("acp")
        };
        let outcome = view.call(name, arguments, &context).await;
        let parts = outcome.content.iter().map(|part| match part {
            Content::Text(text) | Content::Placeholder(text) | Content::ForModel(text) => {
                text_block(text.expose())
            }
            Content::Image { mime_type, data } => {
                json!({ "type": "image", "mimeType": mime_type, "data": data })
            }
            Content::Audio { mime_type, data } => {
                json!({ "type": "audio", "mimeType": mime_type, "data": data })
            }
        });
        if outcome.is_error { Err(outcome.text()) } else { Ok(parts.collect()) }
    }

    /// Lists the servers with their states, for the user.
    pub(crate) fn summary(&self) -> String {
        let statuses = self.view().map(|view| view.statuses()).unwrap_or_default();
        let lines = statuses.iter().map(|status| {
            let why = status.last_error.as_ref().filter(|_| status.state != ServerState::Ready);
            let why = why.map(|error| format!(": {}", error.message)).unwrap_or_default();
            format!("\n- {}: {}{why}", status.name, status.state.name())
        });
        format!("\n\nMCP servers of this session:{}", lines.collect::<String>())
    }

    /// Describes the servers that are not available, with the reason.
    fn failures(&self) -> Vec<(String, String)> {
        let Some(view) = self.view() else { return Vec::new() };
        let failed = view.servers().iter().filter_map(|server| {
            let (name, snapshots) = (server.name().as_str(), server.snapshots());
            let words = self.failure(name, &snapshots.borrow())?;
            Some((name.to_owned(), words))
        });
        failed.collect()
    }

    fn failure(&self, name: &str, now: &ServerSnapshot<LiveConnection>) -> Option<String> {
        if now.state == ServerState::NeedsAuth {
            return Some(self.login_hint(name));
        }
        let reason = match (now.state, &now.last_error) {
            (ServerState::Ready | ServerState::Idle | ServerState::Closed, _) => return None,
            (_, Some(error)) => error.message.clone(),
            (ServerState::Connecting, None) => "it is still starting".to_owned(),
            (_, None) => "it does not respond".to_owned(),
        };
        Some(format!("MCP server `{name}` is not available: {reason}"))
    }

    fn login_hint(&self, name: &str) -> String {
        let how = if self.uses_logins {
            "add it to openclaw with the same name and URL, and run `openclaw mcp login`"
        } else {
            "add it to openclaw with the same name and URL, run `openclaw mcp login`, and set \
             `acp.useLogins: true`"
        };
        format!(
            "MCP server `{name}` requires a login. Set a token in its `headers` in the editor; or \
             {how}."
        )
    }

    /// Stops all servers, and waits until they are gone.
    pub(crate) async fn stop(&self) {
        self.fleet.stop().await;
    }
}

impl AcpSession {
    /// Waits until the servers were tried and their tools are lent, with a limit: the tools of a
    /// server that is late join later.
    pub(crate) async fn servers_ready(self: &Arc<Self>) {
        let own = async {
            if let Some(servers) = &self.servers {
                servers.fleet.tried().await;
            }
        };
        let of_gateway = servers_settled(&*self.surface, Some(&self.agent), self.patience);
        tokio::join!(timeout(self.patience, own).map(drop), of_gateway);
        self.lend().await;
        self.report_failures();
    }

    /// Lends the tools whenever the servers change.
    pub(crate) async fn keep_lending(self: &Arc<Self>) {
        let Some(servers) = &self.servers else { return self.lend().await };
        let mut events = servers.fleet.events();
        let _ = timeout(self.patience, servers.fleet.tried()).await;
        let mut prompts = 0;
        loop {
            // What has happened so far is part of what is looked at now.
            while !matches!(events.try_recv(), Err(TryRecvError::Empty | TryRecvError::Closed)) {}
            self.lend().await;
            self.report_failures();
            let now = servers.prompts().len();
            if std::mem::replace(&mut prompts, now) != now {
                self.refresh_commands();
            }
            match events.recv().await {
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    }

    /// Reports each server that is not available once, until it is available again.
    fn report_failures(&self) {
        let Some(servers) = &self.servers else { return };
        let failures = servers.failures();
        let mut state = self.lock();
        state.failed.retain(|known| failures.iter().any(|(name, _)| name == known));
        let (known, new): (Vec<_>, Vec<_>) =
            failures.into_iter().partition(|(name, _)| state.failed.contains(name));
        drop(known);
        state.failed.extend(new.iter().map(|(name, _)| name.clone()));
        drop(state);
        new.iter().for_each(|(_, words)| self.note(words));
    }
}
