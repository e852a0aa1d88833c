//! The command line of `openclaw mcp`.

use clap::{Args, Subcommand, ValueEnum};

use super::add::{AddArgs, AddJsonArgs, GetArgs, NameArgs};
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
    /// Check servers step by step, and show how to fix problems
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
    #[command(alias = "auth")]
    Login(LoginArgs),
    /// Log out of a server: revoke its tokens and delete them
    Logout(LogoutArgs),
    /// Print the client metadata document, for authorization servers
    ClientMetadata(ClientMetadataArgs),
    /// List the configured servers
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Add a server to the configuration file
    Add(Box<AddArgs>),
    /// Add a server from JSON, as other programs write it
    AddJson(AddJsonArgs),
    /// Show the settings of a server
    Get(GetArgs),
    /// Remove a server from the configuration file
    #[command(
        visible_alias = "rm",
        after_help = "Example:
  openclaw mcp remove files

All entries of that name in the file are removed.

Exit codes: 0 removed, 1 no such server, 78 the configuration has errors."
    )]
    Remove(NameArgs),
    /// Enable a server in the configuration file
    #[command(after_help = "Example:
  openclaw mcp enable files

Exit codes: 0 enabled, 1 no such server, 78 the configuration has errors.")]
    Enable(NameArgs),
    /// Disable a server in the configuration file; its entry is kept
    #[command(after_help = "Example:
  openclaw mcp disable files

Exit codes: 0 disabled, 1 no such server, 78 the configuration has errors.")]
    Disable(NameArgs),
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
  openclaw mcp import                      # list them, and ask which to add
  openclaw mcp import --from cursor --all  # import all servers of Cursor
  openclaw mcp import github files         # import these two
  openclaw mcp import --dry-run --json     # show what would be added, as JSON

Programs: Claude Code, Claude Desktop, Cursor, VS Code, Codex, Windsurf, Zed, Gemini CLI, opencode, goose, \
Amp and JetBrains IDEs. Their files are never changed. Both the user's files and those in the current folder are read.

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AppArg {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    Vscode,
    Codex,
    Windsurf,
    Zed,
    #[value(alias = "gemini")]
    GeminiCli,
    Opencode,
    Goose,
    Amp,
    Jetbrains,
}
