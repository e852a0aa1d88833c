//! The servers of one agent: a catalogue of tools, plus resources and prompts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use openclaw_config::{
    AgentConfig, AgentId, Config, HeldBack, SamplingSettings, ServerConfig, ServerName, ToolPolicy,
    Transport,
};
use openclaw_tools::{Call, CallContext, Pipeline, Policy, Rules, ToolOutcome};
use serde_json::value::RawValue;

use crate::catalogue::Catalogue;
use crate::catalogue::claims::NameClaims;
use crate::catalogue::member::{FleetMember, compile};
use crate::catalogue::naming::{RawTool, plain};
use crate::fleet::library::COMMANDS;
use crate::fleet::notices::LastNotices;
use crate::fleet::{FleetStart, Tried};
use crate::inventory::{LeftOut, ListedKind};
use crate::server::Server;
use crate::server::cache::Revision;
use crate::server::status::{
    ActiveTransport, AuthKind, ServerState, ServerStatus, auth, reached_by,
};
use crate::server::supervisor::ServerError;
use crate::services::CallServices;
use crate::store::memory::Memory;
use crate::store::pins::Unsaved;

/// The servers of one agent.
#[derive(Debug)]
pub struct AgentTools {
    id: AgentId,
    template: String,
    policy: Policy,
    members: Vec<Arc<FleetMember>>,
    servers: Vec<Arc<Server>>,
    /// Servers that are disabled or cannot start.
    resting: BTreeMap<ServerName, RestingReason>,
    revision: Revision,
    catalogue: ArcSwap<Catalogue>,
    /// Held while building the catalogue, so that concurrent callers build it once.
    building: Mutex<()>,
    pub(super) services: Arc<CallServices>,
    pipeline: Pipeline,
    last_notices: LastNotices,
    names: Arc<ClaimedNames>,
}

/// The names that servers of an agent have claimed.
#[derive(Debug, Default)]
pub(crate) struct ClaimedNames {
    pub(crate) tools: NameClaims,
    pub(crate) commands: NameClaims,
}

/// Why a server is not running.
#[derive(Debug)]
enum RestingReason {
    Disabled(Box<ServerConfig>),
    HeldBack(HeldBack),
}

impl AgentTools {
    pub(crate) fn new(
        agent: &AgentConfig,
        config: &Config,
        members: Vec<Arc<FleetMember>>,
        revision: Revision,
        services: &Arc<CallServices>,
        last_notices: LastNotices,
        names: Arc<ClaimedNames>,
    ) -> Self {
        // A server that was removed or renamed by the user gives its names back.
        let is_configured = |name: &str| {
            let mut all = agent.mcp.servers.keys().chain(agent.mcp.held_back.keys());
            all.any(|it| it.as_str() == name)
        };
        names.tools.keep_only(is_configured);
        names.commands.keep_only(is_configured);
        let servers = members.iter().map(|member| Arc::clone(&member.server)).collect();
        Self {
            id: agent.id.clone(),
            template: agent.mcp.settings.tool_naming.as_str().to_owned(),
            policy: policy(agent, config),
            members,
            resting: resting(agent),
            servers,
            // Built on the first call of `catalogue`.
            catalogue: ArcSwap::from_pointee(Catalogue::not_built()),
            revision,
            building: Mutex::new(()),
            services: Arc::clone(services),
            pipeline: services.pipeline(),
            last_notices,
            names,
        }
    }

    /// The names that its servers have claimed, also for the `AgentTools` that replaces it.
    pub(crate) fn names(&self) -> &Arc<ClaimedNames> {
        &self.names
    }

    /// The notices already delivered to this agent, for the `AgentTools` that replaces it.
    pub(crate) fn last_notices(&self) -> &LastNotices {
        &self.last_notices
    }

    /// Returns the notices about servers since the last call, at most one per server: it has failed
    /// three times in a row, was given up, needs a login, or is available again (L4). The text
    /// contains nothing that a server sent.
    pub fn take_notices(&self) -> Vec<String> {
        let news = |server: &Arc<Server>| {
            let snapshot = server.snapshots().borrow().clone();
            self.last_notices.news(server.name(), &snapshot)
        };
        self.servers.iter().filter_map(news).collect()
    }

    /// The id of the agent.
    pub fn id(&self) -> &AgentId {
        &self.id
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The servers that are running.
    pub fn servers(&self) -> &[Arc<Server>] {
        &self.servers
    }

    /// Required servers that cannot start because their entry is incomplete.
    pub(crate) fn required_and_held_back(&self) -> impl Iterator<Item = &ServerName> {
        self.resting.iter().filter(|(_, resting)| resting.is_required()).map(|(name, _)| name)
    }

    /// Waits until every server was tried once.
    pub async fn tried(&self) -> Tried {
        let held_back = self.required_and_held_back().map(ToString::to_string).collect();
        FleetStart::new(&self.servers, held_back).tried().await
    }

    /// Returns the server with this name.
    pub fn server(&self, name: &str) -> Option<&Arc<Server>> {
        self.servers.iter().find(|server| server.name().as_str() == name)
    }

    /// The servers with this agent's options.
    pub(crate) fn members(&self) -> &[Arc<FleetMember>] {
        &self.members
    }

    /// Like [`server`](Self::server), but with this agent's options.
    pub(crate) fn member(&self, name: &str) -> Option<&Arc<FleetMember>> {
        self.members.iter().find(|member| member.server.name().as_str() == name)
    }

    /// Returns how far a server may use the agent's model, and the server's transport.
    pub fn sampling(&self, server: &str) -> Option<(SamplingSettings, Transport)> {
        let member = self.member(server)?;
        Some((member.options.sampling, member.server.connection().transport.clone()))
    }

    /// Returns all tools. The catalogue is rebuilt only if a list has changed since the last call.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        let revision = self.revision.get();
        let catalogue = self.catalogue.load();
        if catalogue.revision == revision {
            return Arc::clone(&catalogue);
        }
        let _building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.catalogue.load_full();
        let revision = self.revision.get();
        if before.revision == revision {
            return before;
        }
        let built = Catalogue::build(
            revision,
            &self.template,
            &self.policy,
            &self.members,
            &self.services,
            &before,
            &self.names.tools,
        );
        let built = Arc::new(built);
        self.catalogue.store(Arc::clone(&built));
        built
    }

    /// Returns whether a catalogue of this agent is up to date.
    pub fn is_current(&self, catalogue: &Catalogue) -> bool {
        catalogue.revision == self.revision.get()
    }

    /// Returns whether a name has the form of names with the prefix of one of the agent's servers, so
    /// that it must not be another server's own name for a tool or a prompt.
    pub fn is_prefixed_name(&self, name: &str) -> bool {
        let members = self.members.iter().map(|it| (it.server.name().as_str(), it.prefix()));
        let resting = self.resting.keys().map(|name| (name.as_str(), name.as_str()));
        let has_form = |template: &str, server: &str, prefix: &str| {
            let Some((before, after)) = template.split_once("{tool}") else { return false };
            let part = |template| plain(template, RawTool { server, prefix, tool: "" });
            template.contains("{server}")
                && name.strip_prefix(&part(before)).is_some_and(|it| it.ends_with(&part(after)))
        };
        members.chain(resting).any(|(server, prefix)| {
            has_form(&self.template, server, prefix) || has_form(COMMANDS, server, server)
        })
    }

    /// Finds a tool that was left out of the catalogue, by the server's name for it or by the name
    /// it would have here. Returns the server and the reason.
    pub fn left_out(&self, name: &str) -> Option<(String, LeftOut)> {
        self.members.iter().find_map(|member| {
            let key = member.server.name().as_str();
            let prefix = member.prefix();
            let inventory = member.server.cache().inventory();
            let is_meant = |it: &&LeftOut| {
                let raw = RawTool { server: key, prefix, tool: &it.name };
                let is_so_called = it.name == name || plain(&self.template, raw) == name;
                it.kind == ListedKind::Tool && is_so_called
            };
            let found = inventory.left_out.iter().find(is_meant)?;
            Some((key.to_owned(), found.clone()))
        })
    }

    /// The pipeline that runs the calls and writes the audit log.
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// Calls a tool through the pipeline.
    pub async fn call(
        &self,
        name: &str,
        arguments: &RawValue,
        context: &CallContext<'_>,
    ) -> ToolOutcome {
        self.pipeline().call(self, Call::new(name, arguments), &self.context(context)).await
    }

    /// Adds this agent to a call context that names no agent.
    pub(crate) fn context<'a>(&'a self, context: &CallContext<'a>) -> CallContext<'a> {
        CallContext { agent: context.agent.or(Some(self.id.as_str())), ..*context }
    }

    /// Waits until all approvals are saved, with a timeout in case the disk hangs.
    ///
    /// # Errors
    /// Why an approval was not saved since the last call.
    pub async fn approvals_saved(&self) -> Result<(), Unsaved> {
        self.services.approvals_saved().await
    }

    /// Returns the status of all servers, sorted by name, including those that are not running
    /// (L9).
    pub fn statuses(&self) -> Vec<ServerStatus> {
        let running = self.members.iter().map(|member| member.status());
        let resting = self.resting.iter().map(|(name, resting)| resting.status(name));
        let mut all: Vec<ServerStatus> = running.chain(resting).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }
}

impl RestingReason {
    fn is_required(&self) -> bool {
        matches!(self, Self::HeldBack(HeldBack { required: true, .. }))
    }

    fn status(&self, name: &ServerName) -> ServerStatus {
        let (state, transport, target, auth, trouble) = match self {
            Self::Disabled(config) => {
                let (transport, target) = reached_by(&config.connection);
                (ServerState::Disabled, transport, target, auth(&config.connection), None)
            }
            Self::HeldBack(held_back) => {
                let names = held_back.unset_variables.join(", ");
                let trouble = ServerError {
                    message: format!("environment variables are not set: {names}"),
                    hint: Some(
                        "set the variables, or remove them from the server's entry".to_owned(),
                    ),
                    ..ServerError::default()
                };
                let nothing = String::new();
                (
                    ServerState::Failed,
                    ActiveTransport::Stdio,
                    nothing,
                    AuthKind::None,
                    Some(trouble),
                )
            }
        };
        ServerStatus {
            name: name.to_string(),
            state,
            transport,
            target,
            auth,
            required: self.is_required(),
            last_error: trouble,
            ..ServerStatus::default()
        }
    }
}

fn resting(agent: &AgentConfig) -> BTreeMap<ServerName, RestingReason> {
    let disabled = agent.mcp.servers.iter().filter(|(_, config)| !config.enabled);
    let disabled = disabled
        .map(|(name, config)| (name.clone(), RestingReason::Disabled(Box::new(config.clone()))));
    let held_back = agent.mcp.held_back.iter();
    let held_back = held_back
        .map(|(name, held_back)| (name.clone(), RestingReason::HeldBack(held_back.clone())));
    disabled.chain(held_back).collect()
}

/// Returns the status of an agent's servers without starting any: enabled servers are idle, and
/// their counts come from the cached inventory.
pub fn statuses_at_rest(agent: &AgentConfig, catalogue: &Path) -> Vec<ServerStatus> {
    let enabled = agent.mcp.servers.iter().filter(|(_, config)| config.enabled);
    let idle = enabled.map(|(name, config)| {
        let (transport, target) = reached_by(&config.connection);
        let name = name.to_string();
        let auth = auth(&config.connection);
        let memory = Memory::of(catalogue, &name, &config.connection);
        let had = memory.recall().inventory;
        let trouble = memory.trouble().read();
        let needs_auth = trouble.as_ref().is_some_and(|trouble| trouble.needs_auth);
        ServerStatus {
            name,
            state: if needs_auth { ServerState::NeedsAuth } else { ServerState::Idle },
            transport,
            target,
            auth,
            lazy: config.options.lazy,
            required: config.options.required,
            tools: had.tools.len(),
            resources: had.resources.len() + had.templates.len(),
            prompts: had.prompts.len(),
            last_error: trouble.map(|trouble| trouble.error),
            ..ServerStatus::default()
        }
    });
    let resting = resting(agent);
    let mut all: Vec<ServerStatus> =
        idle.chain(resting.iter().map(|(name, resting)| resting.status(name))).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Returns which tools the configuration allows an agent, by name.
pub fn policy(agent: &AgentConfig, config: &Config) -> Policy {
    fn rules<'a>(place: &'a str, policy: &'a ToolPolicy) -> Rules<'a> {
        Rules { place, allow: policy.allow.as_deref(), deny: &policy.deny }
    }
    let of_agent = format!("agents.entries.{}.tools", agent.id);
    compile([
        rules("tools", &config.tools),
        rules("gateway.tools", &config.gateway_tools),
        rules(&of_agent, &agent.tools),
    ])
}
