//! The arguments of the `openclaw mcp` subcommands that talk to servers.

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::Args;

/// Selects the agent whose servers are used.
#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// The agent whose servers and rules to use [default: the default agent]
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
}

/// Which agent's servers, and in which process they run.
#[derive(Debug, Args)]
pub(crate) struct ContextArgs {
    /// The agent whose servers and rules to use [default: the default agent]
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// Start servers in this process, even if a gateway is running
    #[arg(long)]
    pub(crate) no_gateway: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  openclaw mcp list
  openclaw mcp list --json | jq -r '.servers[].name'

Nothing is started. `openclaw mcp servers` starts the servers and shows their state.")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) whose: AgentArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  openclaw mcp servers
  openclaw mcp servers --json | jq '.servers[] | {name, state, tools}'

Lazy servers are not started, and are shown as idle.

Exit codes: 0 shown, 3 a `required` server is not ready, 78 the configuration has errors.")]
pub(crate) struct ServersArgs {
    #[command(flatten)]
    pub(crate) context: ContextArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  openclaw mcp tools
  openclaw mcp tools demo add
  openclaw mcp tools demo --schema

Exit codes: 0 listed, 2 no such server or tool, 3 no server is available, 77 login required, 78 the \
configuration has errors.")]
pub(crate) struct ToolsArgs {
    /// Only the tools of this server
    pub(crate) server: Option<String>,
    /// Only this tool, with its arguments
    pub(crate) tool: Option<String>,
    /// Show the JSON Schema of each tool's arguments
    #[arg(long)]
    pub(crate) schema: bool,
    /// With --json, show everything that the servers say about their tools, as they sent it
    #[arg(long)]
    pub(crate) raw: bool,
    #[command(flatten)]
    pub(crate) context: ContextArgs,
}

#[derive(Debug, Args)]
#[command(
    override_usage = "openclaw mcp call [OPTIONS] <SERVER> <TOOL> [ARGUMENT]...
       openclaw mcp call [OPTIONS] <SERVER.TOOL> [ARGUMENT]...
       openclaw mcp call [OPTIONS] <NAME> [ARGUMENT]...",
    after_help = "Examples:
  openclaw mcp call demo add a=5 b=7
  openclaw mcp call demo.add --a 5 --b 7
  openclaw mcp call demo add '{\"a\": 5, \"b\": 7}'
  echo '{\"a\": 5, \"b\": 7}' | openclaw mcp call demo add -
  openclaw mcp call mcp_demo_echo text=@letter.txt
  openclaw mcp call files write path=a.json content:='\"[1, 2]\"'

Arguments are key=value or --key value, converted to the types in the tool's schema; key:=JSON passes \
JSON, key=@FILE passes the text of a file. Where --key is an option of this command, use key=value. Or pass all arguments as one JSON object, on the command line \
or, with `-`, on stdin.

The tool's text goes to stdout and is untrusted; `--raw` shows it as a model would see it. All of \
`--json` is untrusted, too; `structuredContent` is exactly what the server sent.

Exit codes: 0 success, 1 the tool failed, 2 wrong usage, 3 the server is not available, 4 not allowed, \
5 timed out, 77 login required, 78 the configuration has errors."
)]
pub(crate) struct CallArgs {
    /// The server; or SERVER.TOOL; or the full name of the tool, as agents see it
    #[arg(value_name = "SERVER")]
    pub(crate) target: String,
    /// The tool's name on its server, and its arguments
    #[arg(value_name = "TOOL|ARGUMENT")]
    pub(crate) rest: Vec<String>,
    /// Approve a tool whose description or schema has changed
    #[arg(long)]
    pub(crate) approve: bool,
    #[command(flatten)]
    pub(crate) request: RequestArgs,
}

/// How a request is sent, and how its result is shown.
#[derive(Debug, Args)]
pub(crate) struct RequestArgs {
    /// The timeout in milliseconds, including the start of the server
    #[arg(long, value_name = "MS", value_parser = super::positive)]
    timeout: Option<NonZeroU64>,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    #[command(flatten)]
    pub(crate) context: ContextArgs,
}

impl RequestArgs {
    pub(crate) fn timeout_ms(&self) -> Option<u64> {
        self.timeout.map(NonZeroU64::get)
    }
}

/// How the result of a request is shown or saved.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Show exactly what a model would see
    #[arg(long)]
    pub(crate) raw: bool,
    /// Write images, audio and other files of the result to this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) save: Option<PathBuf>,
    /// Write the only image, audio or other file of the result, or else its text, to this file
    #[arg(short = 'o', long, value_name = "FILE", conflicts_with = "save")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  openclaw mcp resources
  openclaw mcp resources demo --json

Exit codes: 0 listed, 2 no such server, 3 no server is available, 77 login required.")]
pub(crate) struct ResourcesArgs {
    /// Only the resources of this server
    pub(crate) server: Option<String>,
    #[command(flatten)]
    pub(crate) context: ContextArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  openclaw mcp read demo demo://notes
  openclaw mcp read photos photo://today -o today.jpg

Exit codes: 0 success, 1 the server refused, 2 wrong usage, 3 the server is not available, 5 timed out, \
77 login required.")]
pub(crate) struct ReadArgs {
    /// The server
    pub(crate) server: String,
    /// The resource's URI, as `openclaw mcp resources` shows it
    pub(crate) uri: String,
    #[command(flatten)]
    pub(crate) request: RequestArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  openclaw mcp prompts
  openclaw mcp prompts demo

Exit codes: 0 listed, 2 no such server, 3 no server is available, 77 login required.")]
pub(crate) struct PromptsArgs {
    /// Only the prompts of this server
    pub(crate) server: Option<String>,
    #[command(flatten)]
    pub(crate) context: ContextArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  openclaw mcp prompt demo summarise-notes
  openclaw mcp prompt demo summarise-notes language=French
  openclaw mcp prompt demo summarise-notes '{\"language\": \"French\"}'

Exit codes: 0 success, 1 the server refused, 2 wrong usage, 3 the server is not available, 5 timed out, \
77 login required.")]
pub(crate) struct PromptArgs {
    /// The server
    pub(crate) server: String,
    /// The prompt, as `openclaw mcp prompts` shows it
    pub(crate) name: String,
    /// Its arguments, as key=value or one JSON object
    #[arg(value_name = "ARGUMENT")]
    pub(crate) arguments: Vec<String>,
    #[command(flatten)]
    pub(crate) request: RequestArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  openclaw mcp complete demo summarise-notes language
  openclaw mcp complete demo summarise-notes language F
  openclaw mcp complete git 'repo://{owner}/{repo}' repo --given owner=octo

The values are printed one per line, best first.

Exit codes: 0 success, 1 the server cannot complete it, 2 wrong usage, 3 the server is not available, \
77 login required.")]
pub(crate) struct CompleteArgs {
    /// The server
    pub(crate) server: String,
    /// The prompt, as `openclaw mcp prompts` shows it, or the URI template of resources
    #[arg(value_name = "PROMPT")]
    pub(crate) of: String,
    /// The name of its argument
    pub(crate) argument: String,
    /// The beginning of the value
    #[arg(default_value = "")]
    pub(crate) prefix: String,
    /// The value of another argument, which may narrow the result
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) given: Vec<String>,
    #[command(flatten)]
    pub(crate) context: ContextArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  openclaw mcp status demo

The server is started, even if it is lazy. Call counts are those of this run.

Exit codes: 0 ready, 2 no such server, 3 not available, 77 login required.")]
pub(crate) struct StatusArgs {
    /// The server
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) context: ContextArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  openclaw mcp refresh
  openclaw mcp refresh demo

The lists of each server are remembered; this command shows what has changed since.

Exit codes: 0 done, 2 no such server, 3 a server is not available, 77 login required.")]
pub(crate) struct RefreshArgs {
    /// Only this server
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) context: ContextArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  openclaw mcp logs demo
  openclaw mcp logs demo -n 200
  openclaw mcp logs demo -f

Shows the server's stderr and its state changes. Nothing is started.

Exit codes: 0 shown (there may be nothing), 1 the log cannot be read, 2 no such server.")]
pub(crate) struct LogsArgs {
    /// The server
    pub(crate) name: String,
    /// The number of lines to show
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 50)]
    pub(crate) lines: usize,
    /// Follow the log until Ctrl-C; with --json, print one value per line
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Read the log in this process, even if a gateway is running
    #[arg(long)]
    pub(crate) no_gateway: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  openclaw mcp doctor
  openclaw mcp doctor github

Exit codes: 0 no problems, 1 problems found, 2 no such server, 78 the configuration has \
errors.")]
pub(crate) struct DoctorArgs {
    /// Only this server
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) whose: AgentArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  openclaw mcp reload

The gateway reloads by itself when its file changes. This command reloads it now and reports the result.

Exit codes: 0 done, 3 the gateway is not running, 78 the configuration has errors.")]
pub(crate) struct ReloadArgs {
    #[command(flatten)]
    pub(crate) whose: AgentArgs,
}
