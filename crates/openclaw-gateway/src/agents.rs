//! The agents of the active configuration: their tools, models and limits.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

use openclaw_agent::AgentLimits;
use openclaw_config::{AgentConfig, AgentId, ApprovalFallback, ApprovalPolicy, Config};
use openclaw_mcp::fleet::Fleet;
use openclaw_mcp::fleet::agent::policy;
use openclaw_mcp::fleet::toolset::ServerTools;
use openclaw_metrics::Metrics;
use openclaw_process::Guard;
use openclaw_secrets::{Environment, Resolver};
use openclaw_tools::address::AllowPrivate;
use openclaw_tools::native::{self, Native, NativeTools};
use openclaw_tools::{ApprovalRule, Fallback, NoTools, Policy, ToolSource, Toolbox};
use parking_lot::Mutex;

use crate::gateway::Gateway;
use crate::manage::ManageTool;
use crate::model_choice::Models;

/// How many agents in other folders are kept.
const MAX_ELSEWHERE: usize = 32;

/// Why the native tools are not available.
pub(crate) type NativeToolsError = Box<dyn std::error::Error + Send + Sync>;

/// Everything that does not depend on the configuration.
#[derive(Debug, Clone)]
pub(crate) struct HostContext {
    pub(crate) resolver: Resolver,
    pub(crate) environment: Environment,
    pub(crate) state: PathBuf,
    /// The workspace of agents that have none of their own, if it is not in the state folder.
    pub(crate) workspace: Option<PathBuf>,
    pub(crate) native_approvals: native::Approvals,
    /// Terminates child processes if this process is killed.
    pub(crate) guard: Guard,
    /// Where turns and requests to models are counted.
    pub(crate) metrics: Metrics,
}

impl HostContext {
    /// The workspace of agents that have none of their own.
    pub(crate) fn default_workspace(&self) -> PathBuf {
        self.workspace.clone().unwrap_or_else(|| self.state.join("workspace"))
    }
}

/// The active configuration and its agents.
#[derive(Debug)]
pub struct ActiveConfig {
    /// The configuration.
    pub config: Config,
    /// Created when an agent is first used.
    agents: BTreeMap<String, OnceLock<Arc<AgentRuntime>>>,
    /// Agents that work in another folder for a client, by id and folder.
    elsewhere: Mutex<BTreeMap<(String, PathBuf), Arc<AgentRuntime>>>,
    fleet: Arc<Fleet>,
    host_context: HostContext,
    gateway: Weak<Gateway>,
}

/// An agent of the active configuration.
#[derive(Debug)]
pub(crate) struct AgentRuntime {
    pub(crate) config: AgentConfig,
    pub(crate) workspace: PathBuf,
    pub(crate) tools: Arc<Toolbox>,
    /// Those of its tools that do not depend on the workspace.
    fixed_tools: [Arc<dyn ToolSource>; 2],
    /// Which tools it may use, by name.
    pub(crate) policy: Policy,
    pub(crate) models: Arc<Models>,
    pub(crate) limits: AgentLimits,
}

impl ActiveConfig {
    pub(crate) fn new(
        config: Config,
        fleet: &Arc<Fleet>,
        host_context: &HostContext,
        gateway: &Weak<Gateway>,
    ) -> Self {
        let agents = config.agents.iter().map(|agent| (agent.id.to_string(), OnceLock::new()));
        Self {
            agents: agents.collect(),
            elsewhere: Mutex::default(),
            fleet: Arc::clone(fleet),
            host_context: host_context.clone(),
            gateway: gateway.clone(),
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
        let service = self.agents.get(id)?;
        let agent = self.config.agent(Some(id))?;
        let new = || {
            AgentRuntime::new(agent, &self.config, &self.fleet, &self.host_context, &self.gateway)
        };
        Some(service.get_or_init(|| Arc::new(new())))
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
        let folder = dunce::canonicalize(folder)?;
        if agent.workspace == folder {
            return Ok(Arc::clone(agent));
        }
        let key = (agent.config.id.to_string(), folder);
        let lock = || self.elsewhere.lock();
        if let Some(known) = lock().get(&key) {
            return Ok(Arc::clone(known));
        }
        let tools = native_tools(&agent.config, &self.config, &key.1, &self.host_context)?;
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

impl AgentRuntime {
    fn new(
        agent: &AgentConfig,
        config: &Config,
        fleet: &Arc<Fleet>,
        host_context: &HostContext,
        gateway: &Weak<Gateway>,
    ) -> Self {
        let named = agent.workspace.clone();
        let workspace = named.unwrap_or_else(|| host_context.default_workspace());
        let native: Arc<dyn ToolSource> =
            match native_tools(agent, config, &workspace, host_context) {
                Ok(tools) => Arc::new(tools),
                Err(error) => {
                    let (agent, workspace) = (&agent.id, workspace.display());
                    tracing::warn!(%agent, %workspace, %error, "built-in tools are not available");
                    Arc::new(NoTools)
                }
            };
        let servers: Arc<dyn ToolSource> =
            Arc::new(ServerTools::new(Arc::clone(fleet), agent.id.as_str()));
        let approvals = host_context.native_approvals.clone();
        let allowed = policy(agent, config);
        let manage: Arc<dyn ToolSource> =
            Arc::new(ManageTool::set(gateway.clone(), agent, &allowed, approvals));
        let fixed_tools = [manage, servers];
        let fallback = match agent.approval.fallback {
            ApprovalFallback::Deny => Fallback::Deny,
            ApprovalFallback::Allow => Fallback::Allow,
        };
        Self {
            config: agent.clone(),
            workspace,
            tools: toolbox(native, &fixed_tools),
            fixed_tools,
            policy: allowed,
            models: Arc::new(Models::new(agent, config, host_context)),
            limits: AgentLimits {
                max_rounds: u32::try_from(agent.max_rounds).unwrap_or(u32::MAX),
                parallel_calls: agent.max_parallel_tools,
                search_threshold: agent.tool_search_threshold.unwrap_or(0),
                context_tokens: agent.context_tokens,
                fallback,
            },
        }
    }
}

impl AgentRuntime {
    /// Returns the context window of a model, in tokens: the configured one, or that of the model if
    /// the models were opened before.
    pub(crate) fn window(&self, model: &str) -> Option<u64> {
        self.limits.context_tokens.or_else(|| self.models.window(model))
    }

    /// The same agent in another folder.
    fn in_folder(&self, workspace: PathBuf, native: Arc<dyn ToolSource>) -> Self {
        Self {
            config: self.config.clone(),
            workspace,
            tools: toolbox(native, &self.fixed_tools),
            fixed_tools: self.fixed_tools.clone(),
            policy: self.policy.clone(),
            models: Arc::clone(&self.models),
            limits: self.limits,
        }
    }
}

fn toolbox(native: Arc<dyn ToolSource>, fixed: &[Arc<dyn ToolSource>; 2]) -> Arc<Toolbox> {
    Arc::new(Toolbox::new([native].into_iter().chain(fixed.iter().cloned())))
}

/// The settings of `exec`.
pub(crate) fn exec_settings(config: &Config, host_context: &HostContext) -> native::ExecSettings {
    let wanted = &config.native_tools.exec;
    let defaults = native::ExecSettings::default();
    native::ExecSettings {
        timeout: wanted.timeout,
        max_timeout: defaults.max_timeout.max(wanted.timeout),
        shell: wanted.shell.clone(),
        environment: host_context.environment.for_child([]).into_iter().collect(),
        guard: host_context.guard.clone(),
    }
}

fn native_tools(
    agent: &AgentConfig,
    config: &Config,
    workspace: &Path,
    host_context: &HostContext,
) -> Result<NativeTools, NativeToolsError> {
    let wanted = &config.native_tools;
    let mut enabled: std::collections::BTreeSet<Native> = Native::ALL.into();
    if !wanted.fs.enabled {
        enabled.retain(|kind| matches!(kind, Native::Exec | Native::WebFetch | Native::UpdatePlan));
    }
    if !wanted.exec.enabled {
        enabled.remove(&Native::Exec);
    }
    if !wanted.web_fetch.enabled {
        enabled.remove(&Native::WebFetch);
    }
    openclaw_files::make_folder(workspace)?;
    let private: Vec<String> =
        wanted.web_fetch.allow_private.iter().map(ToString::to_string).collect();
    let mut setup = native::NativeSetup {
        agent: agent.id.to_string(),
        also_readable: vec![host_context.state.join("spill")],
        enabled,
        policy: policy(agent, config),
        approvals: host_context.native_approvals.clone(),
        ..native::NativeSetup::new(workspace)
    };
    setup.exec = exec_settings(config, host_context);
    setup.web.approval = match wanted.web_fetch.approval {
        ApprovalPolicy::Auto => ApprovalRule::Auto,
        ApprovalPolicy::Always => ApprovalRule::Always,
        ApprovalPolicy::Never => ApprovalRule::Never,
    };
    setup.web.allow_hosts.clone_from(&wanted.web_fetch.allow_hosts);
    setup.web.max_chars = wanted.web_fetch.max_chars;
    setup.web.timeout = wanted.web_fetch.timeout;
    setup.web.allow_private = AllowPrivate::new(private.iter().map(String::as_str))?;
    Ok(NativeTools::new(setup)?)
}
