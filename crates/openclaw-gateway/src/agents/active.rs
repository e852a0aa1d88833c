//! The active configuration and its agents.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use openclaw_config::{AgentId, Config};
use openclaw_mcp::fleet::Fleet;
use parking_lot::Mutex;

use super::runtime::{AgentRuntime, NativeToolsError, native_tools};
use crate::host::HostContext;
use crate::mcp::McpServers;

/// How many agents in other folders are kept.
const MAX_ELSEWHERE: usize = 32;

/// The active configuration and its agents.
#[derive(Debug)]
pub struct ActiveConfig {
    /// The configuration.
    pub config: Arc<Config>,
    /// Created when an agent is first used.
    agents: BTreeMap<String, OnceLock<Arc<AgentRuntime>>>,
    /// Agents that work in another folder for a client, by id and folder.
    elsewhere: Mutex<BTreeMap<(String, PathBuf), Arc<AgentRuntime>>>,
    fleet: Arc<Fleet>,
    servers: Arc<McpServers>,
    host: HostContext,
}

impl ActiveConfig {
    pub(super) fn new(
        config: Arc<Config>,
        fleet: &Arc<Fleet>,
        servers: &Arc<McpServers>,
        host: &HostContext,
    ) -> Self {
        let agents = config.agents.iter().map(|agent| (agent.id.to_string(), OnceLock::new()));
        Self {
            agents: agents.collect(),
            elsewhere: Mutex::default(),
            fleet: Arc::clone(fleet),
            servers: Arc::clone(servers),
            host: host.clone(),
            config,
        }
    }

    /// Creates all agents now.
    pub(crate) fn set_up(&self) {
        self.agents().for_each(drop);
    }

    /// All agents, by id.
    pub(crate) fn agents(&self) -> impl Iterator<Item = (&str, &Arc<AgentRuntime>)> {
        self.agents.keys().filter_map(|id| Some((id.as_str(), self.agent(id)?)))
    }

    pub(crate) fn default_agent(&self) -> &str {
        self.config.agents.first().map_or("main", |agent| agent.id.as_str())
    }

    pub(crate) fn agent(&self, id: &str) -> Option<&Arc<AgentRuntime>> {
        let runtime = self.agents.get(id)?;
        let agent = self.config.agent(Some(id))?;
        let new = || AgentRuntime::new(agent, &self.config, &self.fleet, &self.servers, &self.host);
        Some(runtime.get_or_init(|| Arc::new(new())))
    }

    /// Returns an agent that works in this folder instead of its workspace.
    ///
    /// # Errors
    /// If the folder cannot be used.
    pub(crate) fn agent_in(
        &self,
        agent: &Arc<AgentRuntime>,
        folder: &Path,
    ) -> Result<Arc<AgentRuntime>, NativeToolsError> {
        let folder = openclaw_files::canonical(folder)?;
        if agent.workspace == folder {
            return Ok(Arc::clone(agent));
        }
        let key = (agent.config.id.to_string(), folder);
        let lock = || self.elsewhere.lock();
        if let Some(known) = lock().get(&key) {
            return Ok(Arc::clone(known));
        }
        let tools = native_tools(&agent.config, &self.config, &key.1, &self.host)?;
        let elsewhere = Arc::new(agent.in_folder(key.1.clone(), Arc::new(tools)));
        let mut all = lock();
        if all.len() >= MAX_ELSEWHERE {
            all.clear();
        }
        all.insert(key, Arc::clone(&elsewhere));
        Ok(elsewhere)
    }

    /// Returns the id of an agent without creating it; of the default agent if `id` is `None`.
    pub(crate) fn id(&self, id: Option<&str>) -> Option<&AgentId> {
        self.config.agent(id).map(|agent| &agent.id)
    }
}
