//! The tools of the program itself (G6): files in the workspace, commands, pages from the web.
//!
//! They are called through the pipeline like all others, and
//! what they bring from outside (files, output and pages alike) reaches a model inside a boundary.

mod approvals;
mod exec;
mod files;
mod kind;
mod reply;
mod tool;
mod web;
mod workspace;

pub use approvals::Approvals;
pub use exec::{ExecSettings, Watch};
pub use kind::Native;
pub use web::{BadProxy, GuardedResolver, NotPublic, ProxyAddress, WebSettings};
pub use workspace::NoWorkspace;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use crate::approval::ApprovalRule;
use crate::policy::{Decision, Policy};
use crate::source::{Tool, ToolSource};
use exec::Exec;
use tool::NativeTool;
use web::Web;
use workspace::Workspace;

/// What the tools need.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The folder that files are read from and written to, and that commands run in.
    pub workspace: PathBuf,
    /// Folders that files may be read from besides, by absolute paths: that of large results (B6).
    pub also_readable: Vec<PathBuf>,
    /// Which tools there are, as far as the policy allows them.
    pub enabled: BTreeSet<Native>,
    /// Who may use which.
    pub policy: Policy,
    /// What somebody must agree to.
    pub approval: ApprovalRule,
    /// What somebody has agreed to for good.
    pub approvals: Approvals,
    /// How many characters of a file, a list or an output a model sees at once.
    pub max_chars: usize,
    /// How commands are run.
    pub exec: ExecSettings,
    /// How pages are fetched.
    pub web: WebSettings,
}

impl Setup {
    /// All tools in a workspace, with the usual settings.
    pub fn new(workspace: impl Into<PathBuf>) -> Self {
        Self {
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

/// What all tools share.
#[derive(Debug)]
struct Shared {
    workspace: Arc<Workspace>,
    approval: ApprovalRule,
    approvals: Approvals,
    max_chars: usize,
    exec: Exec,
    web: Web,
}

/// The tools of the program itself.
///
/// ```
/// use openclaw_tools::ToolSource as _;
/// use openclaw_tools::native::{Native, NativeTools, Setup};
///
/// let folder = std::env::temp_dir();
/// let tools = NativeTools::new(Setup { enabled: [Native::Read].into(), ..Setup::new(folder) })?;
/// assert!(tools.find("read").is_some() && tools.find("exec").is_none());
/// # Ok::<(), openclaw_tools::native::NoWorkspace>(())
/// ```
#[derive(Debug)]
pub struct NativeTools(Vec<Arc<NativeTool>>);

impl NativeTools {
    /// Opens the workspace. From now on it is that folder, whatever becomes of its name.
    ///
    /// # Errors
    /// If there is no such folder, or it cannot be opened.
    pub fn new(setup: Setup) -> Result<Self, NoWorkspace> {
        let Setup {
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
            exec: Exec::new(exec, workspace.clone()),
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
