//! The agents of the active configuration.

mod active;
mod runtime;

pub(crate) use active::ActiveConfig;
pub(crate) use runtime::AgentRuntime;

use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use openclaw_config::{AgentId, Config};
use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::fleet::Fleet;
use openclaw_protocol::{ErrorShape, Scope, keys};
use openclaw_sessions::SessionKey;
use openclaw_tools::native;

use crate::host::HostContext;
use crate::mcp::McpServers;

/// Maximum characters of a path in an error.
const MAX_SHOWN: usize = 200;

/// The agents. Replaced all together when the configuration changes.
#[derive(Debug)]
pub(crate) struct Agents {
    active: ArcSwap<ActiveConfig>,
    fleet: Arc<Fleet>,
    servers: Arc<McpServers>,
    host: HostContext,
}

impl Agents {
    pub(crate) fn new(
        config: Arc<Config>,
        fleet: Arc<Fleet>,
        servers: Arc<McpServers>,
        host: HostContext,
    ) -> Self {
        let active = ActiveConfig::new(config, &fleet, &servers, &host);
        Self { active: ArcSwap::from_pointee(active), fleet, servers, host }
    }

    /// The active configuration.
    pub(crate) fn active(&self) -> Arc<ActiveConfig> {
        self.active.load_full()
    }

    /// Sets up the agents of another configuration, for [`replace`](Self::replace).
    pub(crate) fn prepare(&self, config: Arc<Config>) -> Arc<ActiveConfig> {
        let active = ActiveConfig::new(config, &self.fleet, &self.servers, &self.host);
        active.set_up();
        Arc::new(active)
    }

    pub(crate) fn replace(&self, active: Arc<ActiveConfig>) {
        self.active.store(active);
    }

    /// The servers of all agents.
    pub(crate) fn fleet(&self) -> &Arc<Fleet> {
        &self.fleet
    }

    /// Their changes at run time.
    pub(crate) fn servers(&self) -> &Arc<McpServers> {
        &self.servers
    }

    /// The stored approvals of native tools.
    pub(crate) fn native_approvals(&self) -> &native::Approvals {
        &self.host.native_approvals
    }

    /// The settings of `exec`.
    pub(crate) fn exec_settings(&self) -> native::ExecSettings {
        runtime::exec_settings(&self.active.load().config, &self.host)
    }

    /// Returns the requested agent, or the default one.
    pub(crate) fn agent(&self, id: Option<&str>) -> Result<Arc<AgentRuntime>, ErrorShape> {
        let active = self.active.load();
        let id = id.unwrap_or_else(|| active.default_agent());
        active.agent(id).map(Arc::clone).ok_or_else(|| unknown_agent(id))
    }

    /// Returns the id of the requested agent, without setting the agent up.
    pub(crate) fn id(&self, id: Option<&str>) -> Result<AgentId, ErrorShape> {
        let active = self.active.load();
        active.id(id).cloned().ok_or_else(|| unknown_agent(id.unwrap_or_default()))
    }

    /// Returns the agent in the folder that a caller with these scopes wants to work in.
    pub(crate) fn in_folder(
        &self,
        agent: Arc<AgentRuntime>,
        folder: Option<&str>,
        scopes: &[String],
    ) -> Result<Arc<AgentRuntime>, ErrorShape> {
        let Some(folder) = folder else { return Ok(agent) };
        // Files can be read there without asking. A gateway in the process of a command may have been
        // started for this folder.
        let is_own = self.host.workspace.as_deref() == Some(Path::new(folder));
        if !is_own && !Scope::Admin.is_in(scopes) {
            let scope = Scope::Admin.name().unwrap_or_default();
            return Err(ErrorShape::missing_scope("workspace", scope));
        }
        let path = Path::new(folder);
        let shown = || clean_line(Untrusted::new(folder), MAX_SHOWN);
        if !path.is_absolute() {
            return Err(ErrorShape::invalid(format!("not an absolute path: `{}`", shown())));
        }
        if !path.is_dir() {
            return Err(ErrorShape::invalid(format!("no folder `{}`", shown())));
        }
        let elsewhere = self.active.load().agent_in(&agent, path);
        elsewhere.map_err(|error| ErrorShape::invalid(error.to_string()))
    }

    /// Resolves a session key. All keys of callers go through here: `main` stands for the main
    /// session of the given agent, or of the default one.
    pub(crate) fn session_key(
        &self,
        key: &str,
        agent: Option<&str>,
    ) -> Result<SessionKey, ErrorShape> {
        if key.trim().is_empty() {
            return Err(ErrorShape::invalid("invalid session key: it is blank"));
        }
        let active = self.active.load();
        let agent = agent.unwrap_or_else(|| active.default_agent());
        SessionKey::new(keys::whole(key, agent))
            .map_err(|error| ErrorShape::invalid(format!("invalid session key: {error}")))
    }
}

fn unknown_agent(id: &str) -> ErrorShape {
    let id: String = id.chars().take(64).collect();
    ErrorShape::unknown_agent(&id)
}
