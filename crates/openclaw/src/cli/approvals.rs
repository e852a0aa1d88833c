//! The command line of `openclaw approvals`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// List, allow and revoke the calls that run without asking you
#[derive(Debug, Parser)]
#[command(name = "/approvals", no_binary_name = true, disable_help_subcommand = true)]
pub(crate) struct ChatApprovals {
    #[command(subcommand)]
    pub(crate) command: Option<ApprovalsCommand>,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List the calls that run without asking you
    #[command(after_help = "Examples:
  openclaw approvals list
  openclaw approvals list --json | jq -r '.rules[].id'")]
    List {
        /// Only those of this agent
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
    },
    /// Show the calls that wait for an approval, in full
    #[command(after_help = "Examples:
  openclaw approvals show
  openclaw approvals show --json | jq -r '.approvals[].args'

Clients with little room show the beginning and the end of a long call; this shows all of it.")]
    Show {
        /// Only this call, by its id
        #[arg(value_name = "ID")]
        id: Option<String>,
    },
    /// Revoke approvals: the calls need approval again
    #[command(after_help = "Examples:
  openclaw approvals revoke 3f2a91c0
  openclaw approvals revoke --all

Running programs notice the change within a second.")]
    Revoke {
        /// Ids, as `list` shows them; the first digits are enough
        #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
        ids: Vec<String>,
        /// Revoke all approvals
        #[arg(long)]
        all: bool,
    },
    /// Allow calls in advance
    Allow(AllowArgs),
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  openclaw approvals allow exec ls
  openclaw approvals allow exec -- cargo test --workspace
  openclaw approvals allow write path=notes.md
  openclaw approvals allow mcp_github_create_issue repo=me/notes

For `exec`, a program that is known to be harmless, such as `ls`, is allowed with all its harmless \
options, on files of the folder. Any other command is allowed exactly as it stands: write it as the agent \
does, as one word in quotes if it contains quotes, `&&`, `|` or the like. For other tools, NAME=VALUE \
limits the approval to calls with that argument.

Approvals of MCP tools end when the tool or the server changes.

Exit codes: 0 allowed, 1 failure, 2 wrong usage.")]
pub(crate) struct AllowArgs {
    /// The tool, as models see it: `exec`, `write`, `edit`, `mcp_SERVER_TOOL`
    pub(crate) tool: String,
    /// For `exec`, the command; for other tools, NAME=VALUE
    #[arg(value_name = "WORD")]
    pub(crate) words: Vec<String>,
    /// The agent that may make the calls [default: the default agent]
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// The folder that it applies to [default: the current one]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) workspace: Option<PathBuf>,
}
