//! An agent of the active configuration: its tools, models and limits.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use openclaw_agent::AgentLimits;
use openclaw_config::{AgentConfig, ApprovalFallback, ApprovalPolicy, Config};
use openclaw_mcp::fleet::Fleet;
use openclaw_mcp::fleet::agent::policy;
use openclaw_mcp::fleet::toolset::ServerTools;
use openclaw_tools::address::AllowPrivate;
use openclaw_tools::native::{self, Native, NativeTools};
use openclaw_tools::{ApprovalRule, Fallback, NoTools, Policy, ToolSource, Toolbox};

use crate::host::HostContext;
use crate::mcp::{ManageTool, McpServers};
use crate::model_choice::Models;

/// Why the native tools are not available.
pub(super) type NativeToolsError = Box<dyn std::error::Error + Send + Sync>;

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

impl AgentRuntime {
    pub(super) fn new(
        agent: &AgentConfig,
        config: &Config,
        fleet: &Arc<Fleet>,
        servers: &Arc<McpServers>,
        host: &HostContext,
    ) -> Self {
        let named = agent.workspace.clone();
        let workspace = named.unwrap_or_else(|| host.default_workspace());
        let native: Arc<dyn ToolSource> = match native_tools(agent, config, &workspace, host) {
            Ok(tools) => Arc::new(tools),
            Err(error) => {
                let (agent, workspace) = (&agent.id, workspace.display());
                tracing::warn!(%agent, %workspace, %error, "built-in tools are not available");
                Arc::new(NoTools)
            }
        };
        let server_tools: Arc<dyn ToolSource> =
            Arc::new(ServerTools::new(Arc::clone(fleet), agent.id.as_str()));
        let approvals = host.native_approvals.clone();
        let allowed = policy(agent, config);
        let manage: Arc<dyn ToolSource> =
            Arc::new(ManageTool::set(Arc::clone(servers), agent, &allowed, approvals));
        let fixed_tools = [manage, server_tools];
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
            models: Arc::new(Models::new(agent, config, host)),
            limits: AgentLimits {
                max_rounds: u32::try_from(agent.max_rounds).unwrap_or(u32::MAX),
                parallel_calls: agent.max_parallel_tools,
                search_threshold: agent.tool_search_threshold.unwrap_or(0),
                context_tokens: agent.context_tokens,
                fallback,
            },
        }
    }

    /// Returns the context window of a model, in tokens: the configured one, or that of the model if
    /// the models were opened before.
    pub(crate) fn window(&self, model: &str) -> Option<u64> {
        self.limits.context_tokens.or_else(|| self.models.window(model))
    }

    /// The same agent in another folder.
    pub(super) fn in_folder(&self, workspace: PathBuf, native: Arc<dyn ToolSource>) -> Self {
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
pub(super) fn exec_settings(config: &Config, host: &HostContext) -> native::ExecSettings {
    let wanted = &config.native_tools.exec;
    let defaults = native::ExecSettings::default();
    native::ExecSettings {
        timeout: wanted.timeout,
        max_timeout: defaults.max_timeout.max(wanted.timeout),
        shell: wanted.shell.clone(),
        environment: host.environment.for_child([]).into_iter().collect(),
        guard: host.guard.clone(),
    }
}

pub(super) fn native_tools(
    agent: &AgentConfig,
    config: &Config,
    workspace: &Path,
    host: &HostContext,
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
        also_readable: vec![host.state.join("spill")],
        enabled,
        policy: policy(agent, config),
        approvals: host.native_approvals.clone(),
        ..native::NativeSetup::new(workspace)
    };
    setup.exec = exec_settings(config, host);
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
