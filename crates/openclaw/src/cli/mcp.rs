//! The command line of `openclaw mcp`.

use clap::{ArgGroup, Args, Subcommand, ValueEnum};

use super::auth::{ClientMetadataArgs, LoginArgs, LogoutArgs};
use super::install::{InstallArgs, InstallTarget};
use super::mcp_server::McpServerArgs;
use super::servers::{
    CallArgs, CompleteArgs, DoctorArgs, ListArgs, LogsArgs, PromptArgs, PromptsArgs, ReadArgs,
    RefreshArgs, ReloadArgs, ResourcesArgs, ServersArgs, StatusArgs, ToolsArgs,
};

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Start all servers and show their state
    Servers(ServersArgs),
    /// List the tools of servers
    Tools(ToolsArgs),
    /// Call a tool
    Call(CallArgs),
    /// List the resources of servers
    Resources(ResourcesArgs),
    /// Read a resource
    Read(ReadArgs),
    /// List the prompts of servers
    Prompts(PromptsArgs),
    /// Get a prompt, with its arguments filled in
    Prompt(PromptArgs),
    /// List the values of an argument of a prompt or resource template
    Complete(CompleteArgs),
    /// Diagnose why a server does not work
    Doctor(DoctorArgs),
    /// Show the details of a server
    Status(StatusArgs),
    /// Show what a server wrote to stderr
    Logs(LogsArgs),
    /// Fetch the lists of servers again and show what has changed
    Refresh(RefreshArgs),
    /// Make the running gateway reload its configuration
    Reload(ReloadArgs),
    /// Log in to a server
    #[command(visible_alias = "auth")]
    Login(LoginArgs),
    /// Log out of a server: revoke its tokens and delete them
    Logout(LogoutArgs),
    /// Print the client metadata document, for authorization servers
    ClientMetadata(ClientMetadataArgs),
    /// List the configured servers
    List(ListArgs),
    /// Add a server to the configuration file
    #[command(after_help = "Examples:
  openclaw mcp add time -- uvx mcp-server-time
  openclaw mcp add github --url https://api.example.com/mcp \\
    --header 'Authorization: Bearer secret://env/GITHUB_TOKEN'
  openclaw mcp add mail --env PASSWORD=secret://keychain/mail -- mail-mcp -v

Comments, order and formatting of the file are kept. Nothing is written if the result would have \
errors. Then the connection is tested; the entry is kept even if the test fails. If the server \
requires a login, you can log in right away.

Exit codes: 0 added, 1 the name is taken, 2 wrong usage, 78 the configuration has errors.")]
    Add(AddArgs),
    /// Remove a server from the configuration file
    #[command(after_help = "Example:
  openclaw mcp remove files

All entries of that name in the file are removed.

Exit codes: 0 removed, 1 no such server, 78 the configuration has errors.")]
    Remove {
        /// The server's name
        name: String,
    },
    /// Add a remote server by its URL; its name is derived from the URL
    #[command(after_help = "Examples:
  openclaw mcp connect https://mcp.example.com/mcp
  openclaw mcp connect https://mcp.example.com/mcp --name search

The connection is tested; the entry is kept even if the test fails. If the server requires a login, \
you can log in right away.

Exit codes: 0 added, 1 already configured, 2 wrong usage, 78 the configuration has errors.")]
    Connect {
        /// The URL: https, or http on this machine
        url: String,
        /// The server's name
        #[arg(long)]
        name: Option<String>,
        /// Do not test the connection
        #[arg(long)]
        no_check: bool,
    },
    /// Import servers from other programs on this machine
    #[command(after_help = "Examples:
  openclaw mcp import                      List them, and ask which to add
  openclaw mcp import --from cursor --all  Import all servers of Cursor
  openclaw mcp import github files         Import these two
  openclaw mcp import --dry-run --json     Show what would be added, as JSON

The files of other programs are never changed. Both the user's files and those in the current folder are read.

Exit codes: 0 success, 1 a chosen server cannot be added, 2 wrong usage, 78 the configuration has \
errors. `--all` skips servers that cannot be added, and reports them.")]
    Import(ImportArgs),
    /// Add this program to the settings of an MCP client
    Install(InstallArgs),
    /// Remove this program from the settings of an MCP client
    #[command(after_help = "Examples:
  openclaw mcp uninstall cursor
  openclaw mcp uninstall claude-code --dry-run

Exit codes: 0 removed, or not installed, 1 not changed, 2 wrong usage.")]
    Uninstall(InstallTarget),
    /// Serve an MCP client, like `openclaw mcp-server`
    Serve(McpServerArgs),
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("target").required(true).args(["url", "command"])))]
pub(crate) struct AddArgs {
    /// The server's name: letters, digits, `.`, `_` and `-`
    pub(crate) name: String,
    /// The URL of a remote server
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// The program to run, and its arguments, after `--`
    #[arg(last = true)]
    pub(crate) command: Vec<String>,
    /// An environment variable for the program; the value may be a secret:// reference
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// An HTTP header to send with every request; the value may contain secret:// references
    #[arg(long, value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,
    /// The transport [default: derived from the other options]
    #[arg(long, value_name = "KIND")]
    pub(crate) transport: Option<TransportArg>,
    /// The folder to run the program in
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cwd: Option<String>,
    /// Connect only when a tool is first used
    #[arg(long)]
    pub(crate) lazy: bool,
    /// Add it as disabled
    #[arg(long)]
    pub(crate) disabled: bool,
    /// Use this prefix instead of the server's name in tool names
    #[arg(long, value_name = "PREFIX")]
    pub(crate) tool_prefix: Option<String>,
    /// Replace a server of the same name
    #[arg(long)]
    pub(crate) force: bool,
    /// Do not test the connection
    #[arg(long)]
    pub(crate) no_check: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The servers to add, by name
    #[arg(value_name = "NAME", conflicts_with = "all")]
    pub(crate) names: Vec<String>,
    /// Import only from this program
    #[arg(long, value_name = "APP")]
    pub(crate) from: Option<AppArg>,
    /// Add all new servers
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
