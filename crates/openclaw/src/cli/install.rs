//! The command line of `openclaw mcp install` and `uninstall`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  openclaw mcp install claude-code
  openclaw mcp install cursor --dry-run
  openclaw mcp install codex --agent-only --yes

The program then starts `openclaw mcp-server --hub`: it can use all MCP servers that are configured \
here, through one entry. With `--agent-only`, it can send messages to agents instead. The change is \
shown first. Comments and everything else in the file are kept.

Exit codes: 0 installed, or already installed, 1 not changed, 2 wrong usage.")]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    pub(crate) target: InstallTarget,
    /// Offer `order_openclaw` only, without the hub
    #[arg(long)]
    pub(crate) agent_only: bool,
    /// The agent to use [default: the default agent]
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// The program to start [default: this one]
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) command: Option<String>,
}

/// The settings of another program.
#[derive(Debug, Args)]
pub(crate) struct InstallTarget {
    /// The program whose settings are changed; `openclaw` is the Node version
    pub(crate) client: ClientArg,
    /// The name of the server there
    #[arg(long, default_value = "openclaw")]
    pub(crate) name: String,
    /// The file to change [default: the settings of the user]
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Change the file without confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Only show the change
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClientArg {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    Vscode,
    Codex,
    Zed,
    #[value(alias = "gemini")]
    GeminiCli,
    Openclaw,
}
