//! The MCP servers of one session: a private fleet, shared with no other session.

mod entry;
mod report;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use openclaw_config::{Config, OAuthSettings, ServerConfig, ServerName, ToolNaming, Transport};
use openclaw_mcp::call::library::PromptCommand;
use openclaw_mcp::catalogue::naming::RESOURCE_TOOL;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp::fleet::{Fleet, FleetSetup};
use openclaw_mcp::server::dial::DialContext;
use openclaw_mcp::services::CallServices;
use openclaw_mcp_client::host::{Elicitor, Host};
use openclaw_tools::{CallContext, CallOptions, Content, ProgressWatcher, ToolSource as _};
use openclaw_trace::SpanContext;
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub(crate) use self::entry::EditorServer;
use crate::lent_tools::{EditorLentTool, LentToolOutcome, LentToolOwner, text_block};

/// The template of the tool names (P2).
const NAMING: &str = "mcp__{server}__{tool}";
/// The name of the tool that reads resources: the agent may have one for its own servers.
const RESOURCES: &str = "mcp__resources";
/// The timeout of a call (P5).
const CALL: Duration = Duration::from_secs(120);
/// Number of tools named of those that are left out.
const FEW: usize = 5;
/// With more local servers than this, a warning is logged (P5).
const MANY_PROCESSES: usize = 5;

/// What the servers of sessions need.
#[derive(Debug, Clone)]
pub struct ServerSetup {
    /// The configuration: limits, and the policies that also apply to lent tools.
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
    /// The servers that were reported as not available, and whether they were still starting then.
    reported: Mutex<BTreeMap<String, bool>>,
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
        elicitor: Arc<dyn Elicitor>,
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
            elicitor: Some(elicitor),
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
            reported: Mutex::default(),
        })
    }

    pub(crate) fn view(&self) -> Option<Arc<AgentTools>> {
        self.fleet.agent(&self.agent)
    }

    pub(crate) fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// Returns the number of changes of their lists.
    pub(crate) fn revision(&self) -> u64 {
        self.fleet.revision().get()
    }

    /// Returns the tools, and a note if there are too many.
    pub(crate) fn tools(&self) -> (Vec<EditorLentTool>, Option<String>) {
        let tools = self.view().map(|view| view.tools()).unwrap_or_default();
        let found = tools.len();
        let most = self.max_tools;
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
            EditorLentTool {
                name: lent_name(own).to_owned(),
                label: spec.label.clone(),
                description: spec.description.clone(),
                schema: Arc::clone(&spec.input_schema),
                effect: spec.effect,
                owner: LentToolOwner::Servers(own.to_owned()),
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
        session: &str,
        watcher: &ProgressWatcher,
        trace: Option<&SpanContext>,
    ) -> LentToolOutcome {
        let Some(view) = self.view() else {
            return LentToolOutcome::failed("The MCP servers of this session have stopped.");
        };
        let context = CallContext {
            session: Some(session),
            options: CallOptions { watcher: Some(watcher), ..CallOptions::default() },
            trace,
            ..CallContext::by_hand("acp")
        };
        let outcome = view.call(name, arguments, &context).await;
        let shown = outcome.content.iter().filter(|part| !matches!(part, Content::ForModel(_)));
        LentToolOutcome {
            content: outcome.content.iter().map(mcp_block).collect(),
            for_user: Some(shown.chain(&outcome.details.for_user).map(mcp_block).collect()),
            is_error: outcome.is_error,
        }
    }

    /// Describes the servers that are not available, each once. `with_starting`: also those that are
    /// still starting.
    pub(crate) fn new_failures(&self, with_starting: bool) -> Vec<String> {
        let failures = self.failures();
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        report::unreported(&mut reported, failures, with_starting)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_names_stand_for_many() {
        assert_eq!(few(&["a", "b"]), "a, b");
        assert_eq!(few(&["a", "b", "c", "d", "e", "f", "g"]), "a, b, c, d, e and 2 more");
    }
}
