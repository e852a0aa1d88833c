//! The command line of `openclaw mcp-server`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::gateway_choice::GatewayChoice;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  openclaw mcp-server
  openclaw mcp-server --agent research --verbose
  openclaw mcp-server --gateway ws://127.0.0.1:18789
  openclaw mcp-server --hub
  openclaw mcp-server --hub --server files --tools search

An MCP client starts it; docs/mcp-server.md has the settings. The tool `order_openclaw` sends a message \
to an agent and returns its answer. With --hub, it offers all tools, resources and prompts of the agent's \
MCP servers instead; docs/hub.md describes that. It uses the running gateway of this user, or works on its own, and \
exits when stdin closes. stdout carries only the protocol.

Exit codes: 0 the client has closed the connection, 1 failure, 2 wrong usage, 3 no gateway at the URL, \
78 the configuration has errors.")]
pub(crate) struct McpServerArgs {
    #[command(flatten)]
    pub(crate) order: OrderArgs,
    #[command(flatten)]
    pub(crate) gateway: GatewayChoice,
    #[command(flatten)]
    pub(crate) hub: HubArgs,
    /// Log activity to stderr
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

/// The options of `order_openclaw`.
#[derive(Debug, Args)]
pub(crate) struct OrderArgs {
    /// The agent that messages go to, or whose servers are offered [default: the default agent]
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// A folder whose files may be attached, besides the agent's workspace
    #[arg(long, value_name = "FOLDER")]
    pub(crate) attach_from: Vec<PathBuf>,
}

/// The options of the hub.
#[derive(Debug, Args)]
pub(crate) struct HubArgs {
    /// Offer the tools, resources and prompts of the agent's MCP servers, not `order_openclaw`
    #[arg(long, conflicts_with = "attach_from")]
    pub(crate) hub: bool,
    /// With --hub: offer only this server (repeatable)
    #[arg(long, value_name = "NAME", requires = "hub")]
    pub(crate) server: Vec<String>,
    /// With --hub: name tools and prompts as their servers do, unless two have the same name
    #[arg(long, requires = "hub")]
    pub(crate) no_prefix: bool,
    /// With --hub: pass results on unchanged, without boundaries around the text of servers
    #[arg(long, requires = "hub")]
    pub(crate) no_wrap: bool,
    /// With --hub: list all tools, or only two tools that search and call them
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = HubTools::All, requires = "hub")]
    pub(crate) tools: HubTools,
}

/// Which tools the hub lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HubTools {
    All,
    // `search_tools` and `call_tool`.
    Search,
}

impl McpServerArgs {
    /// The usual log level. The stderr of a server is read by its client.
    pub(crate) fn log_level(&self) -> &'static str {
        if self.verbose { "info" } else { "error,rmcp=off" }
    }
}
