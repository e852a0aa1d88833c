//! The command line of `openclaw mcp-server`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  openclaw mcp-server
  openclaw mcp-server --agent research --verbose
  openclaw mcp-server --gateway ws://127.0.0.1:18789

An MCP client starts it; docs/mcp-server.md has the settings. The tool `order_openclaw` sends a message \
to an agent and returns its answer. It uses the running gateway of this user, or works on its own, and \
exits when stdin closes. stdout carries only the protocol.

Exit codes: 0 the client has closed the connection, 1 failure, 2 wrong usage, 3 no gateway at the URL, \
78 the configuration has errors.")]
pub(crate) struct McpServerArgs {
    #[command(flatten)]
    pub(crate) order: OrderArgs,
    #[command(flatten)]
    pub(crate) gateway: GatewayChoice,
    // The options of the hub follow here.
    /// Log what happens to stderr
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

/// The options of `order_openclaw`.
#[derive(Debug, Args)]
pub(crate) struct OrderArgs {
    /// The agent that messages go to [default: the first]
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// A folder whose files may be attached, besides the agent's workspace
    #[arg(long, value_name = "FOLDER")]
    pub(crate) attach_from: Vec<PathBuf>,
}

/// The gateway that a server on stdin and stdout uses.
#[derive(Debug, Args)]
pub(crate) struct GatewayChoice {
    /// The gateway to use [default: the running one, or one in this process]
    #[arg(long, value_name = "URL")]
    pub(crate) gateway: Option<String>,
    /// The token for --gateway [default: that of the gateway on this machine]
    #[arg(long, value_name = "TOKEN", env = "OPENCLAW_GATEWAY_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
}

impl McpServerArgs {
    /// The usual log level. The stderr of a server is read by its client.
    pub(crate) fn log_level(&self) -> &'static str {
        if self.verbose { "info" } else { "error,rmcp=off" }
    }
}
