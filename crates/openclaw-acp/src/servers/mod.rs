//! The MCP servers of one session: a private fleet, shared with no other session.

mod entry;
mod report;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use agent_client_protocol::v1::schema::SessionUpdate;
use futures_util::FutureExt as _;
use openclaw_config::{Config, OAuthSettings, ServerConfig, ServerName, ToolNaming, Transport};
use openclaw_mcp::call::library::PromptCommand;
use openclaw_mcp::catalogue::naming::RESOURCE_TOOL;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp::fleet::{Fleet, FleetSetup};
use openclaw_mcp::server::dial::DialContext;
use openclaw_mcp::services::CallServices;
use openclaw_mcp_client::host::Host;
use openclaw_protocol::servers_settled;
use openclaw_tools::{CallContext, CallOptions, Content, ProgressWatcher, ToolSource as _};
use openclaw_trace::SpanContext;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::{Instant, sleep, timeout};

pub(crate) use self::entry::EditorServer;
pub(crate) use self::report::ServersCommand;
use crate::content::chunk;
use crate::elicit::SessionElicitor;
use crate::lend::{LentOutcome, SessionTool, ToolOwner, text_block};
use crate::session::AcpSession;

/// The template of the tool names (P2).
const NAMING: &str = "mcp__{server}__{tool}";
/// The name of the tool that reads resources: the agent may have one for its own servers.
const RESOURCES: &str = "mcp__resources";
/// The timeout of a call (P5).
const CALL: Duration = Duration::from_secs(120);
/// A prompt that waits longer for servers says so.
const LONG_WAIT: Duration = Duration::from_secs(1);
/// Number of tools named of those that are left out.
const FEW: usize = 5;
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

/// Has a server of the editor use the login of the user's own server with the same URL, if there is one.
fn use_login(server: &mut ServerConfig, own: &BTreeMap<ServerName, ServerConfig>) {
    let address = |config: &ServerConfig| match &config.connection.transport {
        Transport::Http(http) => {
            let mut url = http.url.expose().clone();
            url.set_query(None);
            url.set_fragment(None);
            Some(url)
        }
        Transport::Stdio(_) => None,
    };
    let wanted = address(server);
    let same = own.iter().find(|(_, config)| wanted.is_some() && address(config) == wanted);
    if let Some((name, ServerConfig { connection, .. })) = same
        && let Transport::Http(own) = &connection.transport
        && let Transport::Http(http) = &mut server.connection.transport
    {
        http.oauth = OAuthSettings { login: Some(name.to_string()), ..own.oauth.clone() };
    }
}

impl SessionServers {
    /// Starts the servers in parallel, without waiting for them. Returns `None` if there are none.
    pub(crate) fn start(
        entries: Vec<EditorServer>,
        agent: &str,
        folders: &[PathBuf],
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
        let mut servers: BTreeMap<ServerName, ServerConfig> =
            entries.into_iter().map(|entry| entry.config(folders, CALL)).collect();
        let uses_logins = config.acp.use_logins;
        for server in servers.values_mut().filter(|_| uses_logins) {
            use_login(server, &of_session.mcp.servers);
        }
        of_session.mcp.servers = servers;
        of_session.mcp.settings.tool_naming = ToolNaming::new(NAMING).unwrap_or_default();
        config.agents = vec![of_session];
        let mut context = setup.context.clone();
        if !uses_logins {
            context.auth = None;
        }
        context.host = Host {
            elicitor: Some(Arc::new(SessionElicitor(Weak::clone(session)))),
            sampler: None,
            workspace: folders.first().cloned(),
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
        let left_out: Vec<&str> =
            tools.iter().skip(most).map(|tool| lent_name(tool.spec().name.as_str())).collect();
        let note = (!left_out.is_empty()).then(|| {
            format!(
                "The MCP servers of this session have {found} tools; only {most} are used \
                 (setting `acp.maxTools`, or OPENCLAW_ACP_MAX_TOOLS). Not used: {}.",
                few(&left_out)
            )
        });
        let tools = tools.iter().take(most).map(|tool| {
            let spec = tool.spec();
            let own = spec.name.as_str();
            SessionTool {
                name: lent_name(own).to_owned(),
                label: spec.label.clone(),
                description: spec.description.clone(),
                schema: Arc::clone(&spec.input_schema),
                effect: spec.effect,
                by: ToolOwner::Servers(own.to_owned()),
            }
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
            return LentOutcome::failed("The MCP servers of this session have stopped.");
        };
        let context = CallContext {
            session: Some(session),
            options: CallOptions { watcher: Some(watcher), ..CallOptions::default() },
            trace,
            ..CallContext::by_hand("acp")
        };
        let outcome = view.call(name, arguments, &context).await;
        let shown = outcome.content.iter().filter(|part| !matches!(part, Content::ForModel(_)));
        LentOutcome {
            content: outcome.content.iter().map(mcp_block).collect(),
            for_user: Some(shown.chain(&outcome.details.for_user).map(mcp_block).collect()),
            is_error: outcome.is_error,
        }
    }

    /// Stops all servers, and waits until they are gone.
    pub(crate) async fn stop(&self) {
        self.fleet.stop().await;
    }
}

/// A part of a result as a block of MCP.
fn mcp_block(part: &Content) -> Value {
    match part {
        Content::Text(text) | Content::Placeholder(text) | Content::ForModel(text) => {
            text_block(text.expose())
        }
        Content::Image { mime_type, data } => {
            json!({ "type": "image", "mimeType": mime_type, "data": data })
        }
        Content::Audio { mime_type, data } => {
            json!({ "type": "audio", "mimeType": mime_type, "data": data })
        }
    }
}

/// Returns the name of a tool that the gateway sees.
fn lent_name(own: &str) -> &str {
    if own == RESOURCE_TOOL { RESOURCES } else { own }
}

/// Lists the first few names.
fn few(names: &[&str]) -> String {
    let mut list = names.iter().take(FEW).copied().collect::<Vec<_>>().join(", ");
    if let Some(more) = names.len().checked_sub(FEW).filter(|more| *more > 0) {
        list.push_str(&format!(" and {more} more"));
    }
    list
}

/// Returns how long a prompt may still wait. All prompts of a session share the time, which begins
/// with the first one.
fn time_left(until: &mut Option<Instant>, now: Instant, patience: Duration) -> Option<Duration> {
    let until = *until.get_or_insert(now + patience);
    until.checked_duration_since(now).filter(|left| !left.is_zero())
}

impl AcpSession {
    /// Waits until the servers were tried and their tools are lent, with a limit: the tools of a
    /// server that is late or restarts join later.
    pub(crate) async fn servers_ready(self: &Arc<Self>, patience: Duration) {
        let left = time_left(&mut self.lock().waits_until, Instant::now(), self.patience);
        if let Some(left) = left.map(|left| left.min(patience)) {
            let own = async {
                if let Some(servers) = &self.servers {
                    servers.fleet.tried().await;
                }
            };
            let of_gateway = servers_settled(&*self.surface, Some(&self.agent), left);
            let ready = async { tokio::join!(timeout(left, own).map(drop), of_gateway) };
            tokio::select! {
                _ = ready => {}
                never = self.report_waiting() => match never {},
            }
        }
        self.lend().await;
        self.report_failures(true);
    }

    /// Says which servers a prompt waits for, if it takes long.
    async fn report_waiting(&self) -> Infallible {
        sleep(LONG_WAIT).await;
        let starting = self.servers.iter().flat_map(SessionServers::starting);
        let starting = starting.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        if !starting.is_empty() {
            let words = format!("Waiting for MCP servers: {starting}\n");
            self.updates.send(SessionUpdate::AgentThoughtChunk(chunk(words)));
        }
        std::future::pending().await
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
            // A prompt reports those that are still starting, after it has waited for them.
            self.report_failures(false);
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

    /// Reports the servers that are not available, each once.
    fn report_failures(&self, with_starting: bool) {
        let Some(servers) = &self.servers else { return };
        let failures = servers.failures();
        let news = report::news(&mut self.lock().failed, failures, with_starting);
        news.iter().for_each(|words| self.note(words));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_wait_once() {
        let (start, patience) = (Instant::now(), Duration::from_secs(20));
        let mut until = None;
        let mut left = |after| {
            let now = start + Duration::from_secs(after);
            time_left(&mut until, now, patience).map(|left| left.as_secs())
        };
        assert_eq!([left(0), left(5), left(20), left(60)], [Some(20), Some(15), None, None]);
    }

    #[test]
    fn a_few_names_stand_for_many() {
        assert_eq!(few(&["a", "b"]), "a, b");
        assert_eq!(few(&["a", "b", "c", "d", "e", "f", "g"]), "a, b, c, d, e and 2 more");
    }
}
