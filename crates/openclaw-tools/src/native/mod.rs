//! Native tools (G6): files in the workspace, commands, web pages, and the plan of a task.
//!
//! They are called through the pipeline like all other tools, and untrusted content (files, output
//! and pages alike) reaches a model inside a boundary.

mod approvals;
mod exec;
mod files;
mod kind;
mod plan;
mod reply;
mod tool;
mod web;
mod workspace;

pub use approvals::{ApprovalKey, Approvals};
pub use exec::{ExecSettings, command_rule, prefix_applies};
pub use kind::Native;
pub use plan::{Plan, PlanStep, StepStatus};
pub use web::{BadProxy, GuardedResolver, NotPublic, ProxyAddress, WebSettings};
pub use workspace::NoWorkspace;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use crate::approval::ApprovalRule;
use crate::policy::{Decision, Policy};
use crate::source::{Tool, ToolSource};
use exec::CommandTool;
use tool::NativeTool;
use web::Web;
use workspace::Workspace;

/// Configuration of the native tools.
#[derive(Debug, Clone)]
pub struct NativeSetup {
    /// The agent that uses the tools: approvals apply to it alone.
    pub agent: String,
    /// Folder for files and commands.
    pub workspace: PathBuf,
    /// Further readable folders, addressed by absolute paths: that of large results (B6).
    pub also_readable: Vec<PathBuf>,
    /// Enabled tools, subject to the policy.
    pub enabled: BTreeSet<Native>,
    /// Policy for the tools.
    pub policy: Policy,
    /// Which calls need an approval.
    pub approval: ApprovalRule,
    /// Permanent approvals.
    pub approvals: Approvals,
    /// Maximum number of characters of a file, a listing or an output per call.
    pub max_chars: usize,
    /// Settings of `exec`.
    pub exec: ExecSettings,
    /// Settings of `web_fetch`.
    pub web: WebSettings,
}

impl NativeSetup {
    /// Enables all tools in a workspace, with default settings.
    pub fn new(workspace: impl Into<PathBuf>) -> Self {
        Self {
            agent: "main".to_owned(),
            workspace: workspace.into(),
            also_readable: Vec::new(),
            enabled: Native::ALL.into(),
            policy: Policy::default(),
            approval: ApprovalRule::default(),
            approvals: Approvals::default(),
            max_chars: 50_000,
            exec: ExecSettings::default(),
            web: WebSettings::default(),
        }
    }
}

/// State shared by all tools.
#[derive(Debug)]
struct Shared {
    agent: String,
    /// Path of the workspace, as configured.
    folder: PathBuf,
    workspace: Arc<Workspace>,
    approval: ApprovalRule,
    approvals: Approvals,
    max_chars: usize,
    exec: CommandTool,
    web: Web,
}

/// The native tools.
///
/// ```
/// use openclaw_tools::ToolSource as _;
/// use openclaw_tools::native::{Native, NativeSetup, NativeTools};
///
/// let folder = std::env::temp_dir();
/// let tools = NativeTools::new(NativeSetup { enabled: [Native::Read].into(), ..NativeSetup::new(folder) })?;
/// assert!(tools.find("read").is_some() && tools.find("exec").is_none());
/// # Ok::<(), openclaw_tools::native::NoWorkspace>(())
/// ```
#[derive(Debug)]
pub struct NativeTools(Vec<Arc<NativeTool>>);

impl NativeTools {
    /// Opens the workspace. The folder stays the same even if it is renamed or replaced later.
    ///
    /// # Errors
    /// If the folder does not exist or cannot be opened.
    pub fn new(setup: NativeSetup) -> Result<Self, NoWorkspace> {
        let NativeSetup {
            agent,
            workspace,
            also_readable,
            enabled,
            policy,
            approval,
            approvals,
            max_chars,
            exec,
            web,
        } = setup;
        let shared = Arc::new(Shared {
            agent,
            folder: workspace.clone(),
            exec: CommandTool::new(exec, workspace.clone()),
            workspace: Arc::new(Workspace::open(workspace, also_readable)?),
            approval,
            approvals,
            max_chars,
            web: Web::new(web),
        });
        let tools = enabled.into_iter().filter_map(|kind| NativeTool::new(kind, &policy, &shared));
        let mut tools: Vec<_> = tools.map(Arc::new).collect();
        tools.sort_by(|one, other| one.spec().name.cmp(&other.spec().name));
        Ok(Self(tools))
    }
}

impl ToolSource for NativeTools {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let allowed = self.0.iter().filter(|tool| *tool.decision() == Decision::Allowed);
        allowed.map(|tool| Arc::clone(tool) as Arc<dyn Tool>).collect()
    }

    fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let tool = self.0.iter().find(|tool| tool.spec().name.as_str() == name)?;
        Some(Arc::clone(tool) as Arc<dyn Tool>)
    }
}
