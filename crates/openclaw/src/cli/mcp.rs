//! The command line of `openclaw mcp`.

use clap::{ArgGroup, Args, Subcommand, ValueEnum};

use super::servers::{
    CallArgs, DoctorArgs, ListArgs, LogsArgs, PromptArgs, PromptsArgs, ReadArgs, RefreshArgs,
    ReloadArgs, ResourcesArgs, ServersArgs, StatusArgs, ToolsArgs,
};

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Start all servers, and show how they are
    Servers(ServersArgs),
    /// Show the tools of servers
    Tools(ToolsArgs),
    /// Call a tool
    Call(CallArgs),
    /// Show the resources of servers
    Resources(ResourcesArgs),
    /// Read a resource
    Read(ReadArgs),
    /// Show the prompts of servers
    Prompts(PromptsArgs),
    /// Get a prompt, with its arguments filled in
    Prompt(PromptArgs),
    /// Find out why a server does not work
    Doctor(DoctorArgs),
    /// Show all that is to be known about a server
    Status(StatusArgs),
    /// Show what a server wrote to stderr
    Logs(LogsArgs),
    /// List what servers have anew, and show what has changed
    Refresh(RefreshArgs),
    /// Have the running gateway read its configuration again
    Reload(ReloadArgs),
    /// Show which servers are configured
    List(ListArgs),
    /// Add a server to the configuration file
    #[command(after_help = "Examples:
  openclaw mcp add time -- uvx mcp-server-time
  openclaw mcp add github --url https://api.example.com/mcp \\
    --header 'Authorization: Bearer secret://env/GITHUB_TOKEN'
  openclaw mcp add mail --env PASSWORD=secret://keychain/mail -- mail-mcp -v

Comments, order and formatting of the file stay as they are. Nothing is written if the result would \
have errors. Once it is written, the server is tried; the entry stays, however that goes.

Exit codes: 0 added, 1 there is one of that name, 2 wrong usage, 78 the configuration has errors.")]
    Add(AddArgs),
    /// Remove a server from the configuration file
    #[command(after_help = "Example:
  openclaw mcp remove files

It is removed from every place in the file that has it.

Exit codes: 0 removed, 1 there is none of that name, 78 the configuration has errors.")]
    Remove {
        /// The server's name
        name: String,
    },
    /// Add the service at an address; its name follows from the address
    #[command(after_help = "Examples:
  openclaw mcp connect https://mcp.example.com/mcp
  openclaw mcp connect https://mcp.example.com/mcp --name search

The server is tried; the entry stays, however that goes.

Exit codes: 0 added, 1 it is there already, 2 wrong usage, 78 the configuration has errors.")]
    Connect {
        /// The address: https, or http on this machine
        url: String,
        /// What to call it
        #[arg(long)]
        name: Option<String>,
        /// Do not try to connect
        #[arg(long)]
        no_check: bool,
    },
    /// Add servers that other programs on this machine use
    #[command(after_help = "Examples:
  openclaw mcp import                      What is there? Which to add?
  openclaw mcp import --from cursor --all  All that Cursor has
  openclaw mcp import github files         These two
  openclaw mcp import --dry-run --json     For programs

Their files are only read. Looked at are the files of the user and those in the current folder.

Exit codes: 0 all went well, 1 a server that was picked cannot be added, 2 wrong usage, 78 the \
configuration has errors. `--all` leaves out what cannot be added, and says so.")]
    Import(ImportArgs),
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("target").required(true).args(["url", "command"])))]
pub(crate) struct AddArgs {
    /// The server's name: letters, digits, `.`, `_` and `-`
    pub(crate) name: String,
    /// The address of a service
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// The program to run, and its arguments, after `--`
    #[arg(last = true)]
    pub(crate) command: Vec<String>,
    /// An environment variable of the program; the value may be a secret:// reference
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// A header of every request; the value may hold secret:// references
    #[arg(long, value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,
    /// How to talk to it, where that does not follow from the rest
    #[arg(long, value_name = "KIND")]
    pub(crate) transport: Option<TransportArg>,
    /// The folder that the program runs in
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cwd: Option<String>,
    /// Connect only when a tool is first used
    #[arg(long)]
    pub(crate) lazy: bool,
    /// Add it switched off
    #[arg(long)]
    pub(crate) disabled: bool,
    /// Takes the place of the server's name in the names of its tools
    #[arg(long, value_name = "PREFIX")]
    pub(crate) tool_prefix: Option<String>,
    /// Replace a server of the same name
    #[arg(long)]
    pub(crate) force: bool,
    /// Do not try to connect
    #[arg(long)]
    pub(crate) no_check: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The servers to add, by name
    #[arg(value_name = "NAME", conflicts_with = "all")]
    pub(crate) names: Vec<String>,
    /// Only those of this program
    #[arg(long, value_name = "APP")]
    pub(crate) from: Option<AppArg>,
    /// Add all that are new
    #[arg(long)]
    pub(crate) all: bool,
    /// Only show what would be added
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Replace servers of the same name
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum TransportArg {
    /// A local process
    Stdio,
    /// Streamable HTTP
    #[value(alias = "streamable-http")]
    Http,
    /// Server-sent events, as in protocol version 2024-11-05
    Sse,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AppArg {
    /// Claude Code
    ClaudeCode,
    /// Claude Desktop
    ClaudeDesktop,
    /// Cursor
    Cursor,
    /// VS Code
    Vscode,
    /// Codex
    Codex,
    /// Windsurf
    Windsurf,
}
