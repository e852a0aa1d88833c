//! The arguments of `openclaw mcp add` and of the other subcommands that change one server in the
//! file. They include the options of `claude mcp`, `codex mcp` and `gemini mcp`, so that lines for
//! those programs work here.

use clap::{ArgGroup, Args, ValueEnum};

#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("target").required(true).args(["address", "url", "command"])),
    override_usage = "openclaw mcp add [OPTIONS] <NAME> <URL>
       openclaw mcp add [OPTIONS] <NAME> [--] <COMMAND> [ARGUMENT]...",
    after_help = "Examples:
  openclaw mcp add time uvx mcp-server-time
  openclaw mcp add time -e TZ=UTC -- uvx mcp-server-time --local-timezone UTC
  openclaw mcp add sentry https://mcp.sentry.dev/mcp
  openclaw mcp add --transport http github https://api.example.com/mcp \\
    --header 'Authorization: Bearer secret://env/GITHUB_TOKEN'
  openclaw mcp add mail --env PASSWORD=secret://keychain/mail -- mail-mcp

Lines for `claude mcp add`, `codex mcp add` and `gemini mcp add` work. After the command, only -e, \
-H, -s and -t are options, and only before the first option of the command itself; after `--`, \
everything is the command.

Comments, order and formatting of the file are kept. Nothing is written if the result would have \
errors. Then the connection is tested; the entry is kept even if the test fails. If the server \
requires a login, you can log in right away.

Exit codes: 0 added, 1 the name is taken, 2 wrong usage, 78 the configuration has errors."
)]
pub(crate) struct AddArgs {
    /// The server's name: letters, digits, `.`, `_` and `-`
    pub(crate) name: String,
    /// The URL of a remote server
    #[arg(value_name = "URL")]
    pub(crate) address: Option<String>,
    /// The program to run, and its arguments
    #[arg(last = true)]
    pub(crate) command: Vec<String>,
    /// The URL of a remote server
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// An environment variable for the program; the value may be a secret:// reference
    #[arg(short, long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// A variable of this environment to pass on to the program
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) inherit_env: Vec<String>,
    /// An HTTP header to send with every request; the value may contain secret:// references
    #[arg(short = 'H', long, value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,
    /// Send the value of this environment variable as the bearer token
    #[arg(long, value_name = "NAME")]
    pub(crate) bearer_token_env_var: Option<String>,
    /// The transport; `sse` is that of protocol version 2024-11-05 [default: derived from the other
    /// options]
    #[arg(short, long, value_name = "KIND")]
    pub(crate) transport: Option<TransportArg>,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    /// The folder to run the program in
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cwd: Option<String>,
    /// Connect only when a tool is first used
    #[arg(long)]
    pub(crate) lazy: bool,
    /// Add the server as disabled
    #[arg(long)]
    pub(crate) disabled: bool,
    /// Use this prefix instead of the server's name in tool names
    #[arg(long, value_name = "PREFIX")]
    pub(crate) tool_prefix: Option<String>,
    /// Only these tools, separated by commas
    #[arg(long, value_name = "TOOL", value_delimiter = ',')]
    pub(crate) include_tools: Vec<String>,
    /// Never these tools, separated by commas
    #[arg(long, value_name = "TOOL", value_delimiter = ',')]
    pub(crate) exclude_tools: Vec<String>,
    /// Call its tools without asking for approval
    #[arg(long)]
    pub(crate) trust: bool,
    /// The connect timeout in milliseconds
    #[arg(long, value_name = "MS")]
    pub(crate) timeout: Option<u64>,
    /// A comment to store in the entry
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// The OAuth client id to log in with [default: a client is registered by the login]
    #[arg(long, alias = "oauth-client-id", value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// The local port that the browser is redirected to after the login
    #[arg(long, value_name = "PORT")]
    pub(crate) callback_port: Option<u16>,
    #[command(flatten)]
    pub(crate) how: WriteArgs,
}

/// How a server is added.
#[derive(Debug, Args)]
pub(crate) struct WriteArgs {
    /// Replace a server of the same name
    #[arg(long)]
    pub(crate) force: bool,
    /// Do not test the connection
    #[arg(long)]
    pub(crate) no_check: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  openclaw mcp add-json time '{\"command\": \"uvx\", \"args\": [\"mcp-server-time\"]}'
  openclaw mcp add-json web '{\"type\": \"http\", \"url\": \"https://a.example/mcp\"}'
  openclaw mcp add-json web - < web.json

The entry may have all settings of a server, also under the names that other programs use. It may \
be inside an object `mcpServers`.

Exit codes: 0 added, 1 the name is taken, 2 wrong usage, 78 the configuration has errors.")]
pub(crate) struct AddJsonArgs {
    /// The server's name: letters, digits, `.`, `_` and `-`
    pub(crate) name: String,
    /// The server's entry; `-` reads it from stdin
    #[arg(value_name = "JSON")]
    pub(crate) entry: String,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    #[command(flatten)]
    pub(crate) how: WriteArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  openclaw mcp get files
  openclaw mcp get files --json

Nothing is started. `openclaw mcp status` starts the server and shows its state.

Exit codes: 0 shown, 2 no such server, 78 the configuration has errors.")]
pub(crate) struct GetArgs {
    /// The server
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) whose: super::servers::AgentArgs,
}

/// A server in the file.
#[derive(Debug, Args)]
pub(crate) struct NameArgs {
    /// The server
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

/// The scope of other programs, which keep servers in several files.
#[derive(Debug, Args)]
pub(crate) struct ScopeArgs {
    /// Accepted for compatibility: there is one file, which `--config` selects
    #[arg(short, long, value_name = "SCOPE")]
    pub(crate) scope: Option<ScopeArg>,
}

/// Where other programs would keep a server.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ScopeArg {
    Local,
    #[value(alias = "global")]
    User,
    #[value(alias = "workspace")]
    Project,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum TransportArg {
    Stdio,
    #[value(alias = "streamable-http")]
    Http,
    Sse,
}
