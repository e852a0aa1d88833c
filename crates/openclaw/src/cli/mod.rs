//! The command line.

mod front;
mod mcp;
mod servers;

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub(crate) use front::{
    ChatArgs, ExportFormat, GatewayArgs, GatewayCommand, RunArgs, SessionsCommand, TurnArgs,
};
pub(crate) use mcp::{AddArgs, AppArg, ImportArgs, McpCommand, TransportArg};
pub(crate) use servers::{
    AgentArgs, BesideArgs, CallArgs, DoctorArgs, ListArgs, LogsArgs, PromptArgs, PromptsArgs,
    ReadArgs, RefreshArgs, ReloadArgs, ResourcesArgs, ServersArgs, ShowArgs, StatusArgs, ToolsArgs,
};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// MCP host, agent gateway, ACP agent and MCP server in one binary.
#[derive(Debug, Parser)]
#[command(name = "openclaw", version, styles = STYLES, arg_required_else_help = true)]
#[command(after_help = "Examples:
  openclaw chat                       Talk to an agent that uses MCP tools
  openclaw agent --message 'add 2 and 3'
  openclaw gateway                    Keep agents and servers running
  openclaw status                     How everything is
  openclaw mcp servers                Start all MCP servers; how are they?
  openclaw mcp call demo add a=5 b=7  Call a tool
  openclaw mcp import                 Add the servers that other programs use
  openclaw mcp add time -- uvx mcp-server-time
  openclaw config validate            Check the configuration
  openclaw config show                What is in force, and why
  openclaw secrets check              Does every secret:// reference resolve?
  openclaw completions bash           Print completions for the shell

Exit codes: 0 all went well, 1 it did not, 2 wrong usage, 78 the configuration has errors. Those of \
commands that talk to servers: `openclaw mcp --help`.")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// What is logged when nobody says otherwise. Commands that talk to servers tell themselves what
    /// goes wrong with those, and better.
    pub(crate) fn usual_log_level(&self) -> &'static str {
        match self.command {
            Command::Mcp(_)
            | Command::Chat(_)
            | Command::Agent(_)
            | Command::Sessions(_)
            | Command::Status
            | Command::Doctor => "error",
            Command::Gateway(_) => "warn,openclaw_gateway=info",
            // Its stderr is for whoever started it; what its library finds odd is not.
            Command::DemoServer => "warn,rmcp=off",
            _ => "warn",
        }
    }
}

/// What every command understands.
#[derive(Debug, Args)]
pub(crate) struct GlobalArgs {
    /// The configuration file [default: ~/.openclaw/openclaw.json, or $OPENCLAW_CONFIG_PATH]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(crate) config: Option<PathBuf>,
    /// What to log: a level (error, warn, info, debug, trace, off), also per module
    #[arg(
        long,
        global = true,
        value_name = "LEVEL",
        env = "OPENCLAW_LOG",
        hide_env_values = true,
        help_heading = "Global options"
    )]
    pub(crate) log_level: Option<String>,
    /// How to log
    #[arg(
        long,
        global = true,
        value_name = "FORMAT",
        default_value = "human",
        help_heading = "Global options"
    )]
    pub(crate) log_format: LogFormat,
    /// Print JSON for programs
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people
    Human,
    /// A JSON object a line
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Talk to an agent
    Chat(ChatArgs),
    /// Say one thing to an agent, and print what it answers
    Agent(TurnArgs),
    /// Conversations: list, show, delete, export them
    #[command(
        subcommand,
        after_help = "Examples:
  openclaw sessions list
  openclaw sessions show agent:main:main"
    )]
    Sessions(SessionsCommand),
    /// Keep agents and servers running, for all front ends
    Gateway(GatewayArgs),
    /// Tell how everything is: configuration, gateway, model, servers, secrets
    #[command(after_help = "Examples:
  openclaw status
  openclaw status --json | jq '.problems'

Nothing is started. Exit codes: 0 all is well, 1 something is not.")]
    Status,
    /// Look closer: also start every server, read the database, look at who may read files
    #[command(after_help = "Examples:
  openclaw doctor
  openclaw doctor --json

Exit codes: 0 all is well, 1 something is not.")]
    Doctor,
    /// MCP servers: add and remove them, look at them, call their tools
    #[command(
        subcommand,
        after_help = "Examples:
  openclaw mcp servers
  openclaw mcp tools
  openclaw mcp call demo add a=5 b=7
  openclaw mcp doctor
  openclaw mcp add time -- uvx mcp-server-time

Exit codes: 0 ok, 1 it failed, 2 wrong usage, 3 a server is not available, 4 not allowed, 5 timed out, \
78 the configuration has errors, 130 interrupted."
    )]
    Mcp(McpCommand),
    /// Look at the configuration
    #[command(
        subcommand,
        after_help = "Example:
  openclaw config validate"
    )]
    Config(ConfigCommand),
    /// Look at the secrets that the configuration refers to
    #[command(
        subcommand,
        after_help = "Example:
  openclaw secrets check"
    )]
    Secrets(SecretsCommand),
    /// Run an MCP server to try clients with, on stdin and stdout
    #[command(after_help = "Example:
  openclaw mcp add demo -- openclaw demo-server

Its tools: echo, add, now, count. It also has a resource and a prompt, needs no network and changes \
nothing. Without a configuration file it is the server that there is. It ends when stdin closes.")]
    DemoServer,
    /// Print completions for a shell
    #[command(after_help = "Examples:
  source <(openclaw completions bash)
  openclaw completions zsh > ~/.zfunc/_openclaw
  openclaw completions fish > ~/.config/fish/completions/openclaw.fish")]
    Completions {
        /// The shell
        shell: Shell,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check the configuration and report all problems at once
    #[command(after_help = "Examples:
  openclaw config validate
  openclaw config validate ./openclaw.json --strict
  openclaw config validate --json | jq '.diagnostics[].message'

Exit codes: 0 it can be used (there may be warnings), 78 it has errors.")]
    Validate {
        /// The file to check instead of the configuration
        file: Option<PathBuf>,
        /// Treat warnings as errors
        #[arg(long)]
        strict: bool,
    },
    /// Show what is in force, and where each value comes from; credentials are redacted
    #[command(after_help = "Examples:
  openclaw config show
  openclaw config show --agent research
  openclaw config show --json")]
    Show {
        /// Only this agent
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
    },
    /// Print the JSON Schema of the configuration, for editors
    #[command(after_help = "Example:
  openclaw config schema > openclaw.schema.json")]
    Schema,
    /// Print the path of the configuration file
    #[command(after_help = "Example:
  $EDITOR \"$(openclaw config path)\"")]
    Path,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SecretsCommand {
    /// Try to resolve secrets; values are never shown
    #[command(after_help = "Examples:
  openclaw secrets check
  openclaw secrets check secret://env/TOKEN secret://vault/kv/github#token

Exit codes: 0 all resolve, 1 some do not, 78 the configuration has errors.")]
    Check {
        /// The references to try instead of those in the configuration
        #[arg(value_name = "REF")]
        references: Vec<String>,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    /// The narrowest terminal that help is written for.
    const NARROW: usize = 80;

    fn for_each(command: &clap::Command, look: &mut dyn FnMut(&str, &str)) {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        look(command.get_name(), &text);
        command.get_subcommands().for_each(|inner| for_each(inner, look));
    }

    /// What is broken by hand is broken again for a narrow terminal, in the middle of a line.
    #[test]
    fn paragraphs_of_help_are_broken_by_the_terminal_alone() {
        for_each(&Cli::command(), &mut |name, text| {
            let lines: Vec<&str> = text.lines().collect();
            for pair in lines.windows(2) {
                let is_text = |line: &str| !line.is_empty() && !line.starts_with(' ');
                let is_broken = is_text(pair[0]) && is_text(pair[1]);
                assert!(!is_broken, "{name}: {pair:?}");
            }
        });
    }

    #[test]
    fn examples_fit_a_narrow_terminal() {
        for_each(&Cli::command(), &mut |name, text| {
            for line in text.lines().filter(|line| line.starts_with(' ')) {
                assert!(line.chars().count() <= NARROW, "{name}: {line}");
            }
        });
    }
}
