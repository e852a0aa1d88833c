//! The command line.

mod add;
mod approvals;
mod auth;
mod front;
mod gateway_choice;
mod install;
mod mcp;
mod mcp_server;
mod pasted;
mod servers;

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub(crate) use add::{AddArgs, AddJsonArgs, GetArgs, NameArgs, ScopeArg, TransportArg, WriteArgs};
pub(crate) use approvals::{AllowArgs, ApprovalsCommand, ChatApprovals};
pub(crate) use auth::{ClientMetadataArgs, LoginArgs, LogoutArgs};
pub(crate) use front::{
    AcpArgs, ChatArgs, ExportFormat, GatewayArgs, GatewayCommand, GatewayLogsArgs, RunArgs,
    ServiceArgs, SessionsArgs, SessionsCommand, TokenCommand, TokenScope, TopArgs, TurnArgs,
};
pub(crate) use gateway_choice::GatewayChoice;
pub(crate) use install::{ClientArg, InstallArgs, InstallTarget};
pub(crate) use mcp::{AppArg, ImportArgs, McpCommand};
pub(crate) use mcp_server::{HubTools, McpServerArgs};
pub(crate) use servers::{
    CallArgs, CompleteArgs, ContextArgs, DoctorArgs, ListArgs, LogsArgs, PromptArgs, PromptsArgs,
    ReadArgs, RefreshArgs, ReloadArgs, RequestArgs, ResourcesArgs, ServersArgs, ShowArgs,
    StatusArgs, ToolsArgs,
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
  openclaw chat                       # talk to an agent that uses MCP tools
  openclaw agent --message 'add 2 and 3'
  openclaw status                     # show the state of everything
  openclaw mcp servers                # start all MCP servers, show their state
  openclaw mcp call demo add a=5 b=7  # call a tool
  openclaw mcp import                 # import servers from other programs
  openclaw mcp add time -- uvx mcp-server-time
  openclaw config show                # show settings and their sources

Exit codes: 0 success, 1 failure, 2 wrong usage, 78 the configuration has errors. For commands that \
talk to servers, see `openclaw mcp --help`.")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Parses a command line, also one that was written for another program.
    ///
    /// # Errors
    /// If it is not valid, or asks for help.
    pub(crate) fn read(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        Self::try_parse_from(pasted::rearranged(words.into_iter().collect()))
    }

    /// The default log level. Commands that talk to servers report failures of servers themselves, in
    /// more detail and with the last lines of their stderr.
    pub(crate) fn usual_log_level(&self) -> &'static str {
        match self.command {
            Command::McpServer(ref args) | Command::Mcp(McpCommand::Serve(ref args)) => {
                args.log_level()
            }
            Command::Mcp(_)
            | Command::Chat(_)
            | Command::Acp(_)
            | Command::Agent(_)
            | Command::Sessions(_)
            | Command::Approvals(_)
            | Command::Status(_)
            | Command::Top(_)
            // What a server writes to stderr is in its log, and would overwrite a prompt.
            // The command itself reports a lost connection.
            | Command::Doctor => "error,openclaw_mcp_client::process::stderr=off,rmcp::service=off",
            // Without what `rmcp` logs about errors of hub clients.
            Command::Gateway(_) => "warn,openclaw_gateway=info,rmcp::service=off",
            // Its stderr is read by the client: without the warnings of `rmcp`.
            Command::DemoServer => "warn,rmcp=off",
            _ => "warn",
        }
    }
}

/// Options of every command.
#[derive(Debug, Args)]
pub(crate) struct GlobalArgs {
    /// The configuration file [default: ~/.openclaw/openclaw.json, or $OPENCLAW_CONFIG_PATH]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(crate) config: Option<PathBuf>,
    /// The log level (error, warn, info, debug, trace, off), or per module
    #[arg(
        long,
        global = true,
        value_name = "LEVEL",
        env = "OPENCLAW_LOG",
        hide_env_values = true,
        help_heading = "Global options"
    )]
    pub(crate) log_level: Option<String>,
    /// The format of log lines: text, or one JSON object per line
    #[arg(
        long,
        global = true,
        value_name = "FORMAT",
        default_value = "human",
        help_heading = "Global options"
    )]
    pub(crate) log_format: LogFormat,
    /// Print JSON
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
}

/// Parses a number that must not be zero.
fn positive(word: &str) -> Result<NonZeroU64, &'static str> {
    word.parse().map_err(|_| "expected a whole number, at least 1")
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum LogFormat {
    Human,
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Talk to an agent
    Chat(ChatArgs),
    /// Send one message to an agent and print the answer
    Agent(TurnArgs),
    /// Serve an editor over stdin and stdout (Agent Client Protocol)
    Acp(AcpArgs),
    /// Serve an MCP client: messages to agents, or all MCP servers (--hub)
    McpServer(McpServerArgs),
    /// List, show, delete and export sessions
    #[command(after_help = "Examples:
  openclaw sessions list
  openclaw sessions show agent:main:main")]
    Sessions(SessionsArgs),
    /// List, add and revoke approvals: the calls that run without asking you
    #[command(
        subcommand,
        after_help = "Examples:
  openclaw approvals list
  openclaw approvals allow exec ls
  openclaw approvals revoke 3f2a91c0"
    )]
    Approvals(ApprovalsCommand),
    /// Run the gateway, which keeps agents and servers running for all clients
    Gateway(GatewayArgs),
    /// Show the state of the configuration, gateway, model, servers and secrets
    #[command(after_help = "Examples:
  openclaw status
  openclaw status --json | jq '.problems'

Nothing is started.

Exit codes: 0 no problems, 1 problems found.")]
    Status(GatewayChoice),
    /// Watch the servers and tools of the running gateway
    Top(TopArgs),
    /// Check everything: also start every server, read the database, check file permissions
    #[command(after_help = "Examples:
  openclaw doctor
  openclaw doctor --json

Exit codes: 0 no problems, 1 problems found.")]
    Doctor,
    /// Manage MCP servers and call their tools
    #[command(
        subcommand,
        after_help = "Examples:
  openclaw mcp servers
  openclaw mcp tools
  openclaw mcp call demo add a=5 b=7
  openclaw mcp doctor
  openclaw mcp add time -- uvx mcp-server-time

Exit codes: 0 success, 1 failure, 2 wrong usage, 3 a server is not available, 4 not allowed, 5 timed out, \
77 login required, 78 the configuration has errors, 130 interrupted."
    )]
    Mcp(McpCommand),
    /// Check, show and change the configuration
    #[command(
        subcommand,
        after_help = "Examples:
  openclaw config validate
  openclaw config show
  openclaw config set agents.defaults.model anthropic/claude-sonnet-4-5"
    )]
    Config(ConfigCommand),
    /// Check and store the secrets that the configuration refers to
    #[command(
        subcommand,
        after_help = "Examples:
  openclaw secrets check
  openclaw secrets set github"
    )]
    Secrets(SecretsCommand),
    /// Run a demo MCP server on stdin and stdout, for testing clients
    #[command(after_help = "Example:
  openclaw mcp add demo -- openclaw demo-server

Tools: echo, add, now, count. It also has a resource and a prompt, needs no network and changes \
nothing. It is the default server if there is no configuration file. It exits when stdin closes.")]
    DemoServer,
    /// Print the completion script of a shell
    #[command(
        alias = "completion",
        after_help = "Examples:
  source <(openclaw completions bash)       # in ~/.bashrc
  source <(openclaw completions zsh)        # in ~/.zshrc, after compinit
  openclaw completions fish > ~/.config/fish/completions/openclaw.fish
  eval (openclaw completions elvish | slurp)  # in rc.elv
  openclaw completions powershell | Out-String | Invoke-Expression # in $PROFILE

Names of servers, tools, prompts, sessions and agents are completed from local data; no server \
is started."
    )]
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

Exit codes: 0 valid (there may be warnings), 1 the model of an agent cannot be used, 78 the configuration \
has errors.")]
    Validate {
        /// The file to check instead of the configuration
        file: Option<PathBuf>,
        /// Treat warnings as errors
        #[arg(long)]
        strict: bool,
    },
    /// Show the effective settings and where each value comes from; credentials are redacted
    #[command(after_help = "Examples:
  openclaw config show
  openclaw config show --agent research
  openclaw config show --json")]
    Show {
        /// Only this agent
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
    },
    /// Print the effective value of a key; credentials are redacted
    #[command(after_help = "Examples:
  openclaw config get gateway.port
  openclaw config get agents.defaults.model

Exit codes: 0 printed, 1 no such key, 78 the configuration has errors.")]
    Get {
        /// The key, such as `gateway.port`
        key: String,
    },
    /// Set a key in the file; comments are kept
    #[command(after_help = "Examples:
  openclaw config set agents.defaults.model anthropic/claude-sonnet-4-5
  openclaw config set gateway.port 18800
  openclaw config set tools.deny '[\"exec\"]'

The value is JSON or, if it is not, text. Nothing is written if the result has errors.

Exit codes: 0 written, 1 failure, 2 invalid key or value, 78 the configuration would have \
errors.")]
    Set {
        /// The key, such as `gateway.port`; quote parts with dots: `mcp.servers."a.b".url`
        key: String,
        /// The value
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Remove a key from the file; comments are kept
    #[command(after_help = "Example:
  openclaw config unset gateway.port

Exit codes: 0 written, 1 the key is not in the file, 78 the configuration would have errors.")]
    Unset {
        /// The key, such as `gateway.port`
        key: String,
    },
    /// Edit the file in $VISUAL or $EDITOR; it is written once it has no errors
    #[command(after_help = "Example:
  EDITOR=nano openclaw config edit")]
    Edit,
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
    /// Check that secrets resolve; values are never shown
    #[command(after_help = "Examples:
  openclaw secrets check
  openclaw secrets check secret://env/TOKEN secret://vault/kv/github#token

Exit codes: 0 all resolve, 1 some do not, 78 the configuration has errors.")]
    Check {
        /// The references to check instead of those in the configuration
        #[arg(value_name = "REF")]
        references: Vec<String>,
    },
    /// Store a secret in the keychain of the system
    #[command(after_help = "Examples:
  openclaw secrets set github
  pass show github | openclaw secrets set github

At a terminal, you are prompted for the value, which is not shown; otherwise it is read from stdin. The \
configuration refers to it as `secret://keychain/NAME`.

Exit codes: 0 stored, 1 failure, 2 wrong usage.")]
    Set {
        /// The name of the secret
        name: String,
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

    /// A command line of each command.
    const LINES: &[&str] = &[
        "chat",
        "agent --message=x",
        "sessions list",
        "sessions show x",
        "sessions delete x",
        "sessions export x",
        "approvals list",
        "approvals show",
        "approvals allow exec git",
        "approvals revoke x",
        "gateway",
        "gateway run --port=0",
        "gateway start --port=0",
        "gateway restart",
        "gateway logs --follow",
        "gateway install --dry-run",
        "gateway uninstall",
        "gateway status",
        "gateway stop",
        "gateway token create --name=x --scope=read",
        "gateway token list",
        "gateway token revoke x",
        "status",
        "top",
        "doctor",
        "mcp servers",
        "mcp tools x --schema --raw",
        "mcp call x y a=1 --raw --save=x",
        "mcp resources",
        "mcp read x y",
        "mcp prompts",
        "mcp prompt x y",
        "mcp complete x y z",
        "mcp doctor",
        "mcp status x",
        "mcp logs x",
        "mcp refresh",
        "mcp reload",
        "mcp list",
        "mcp add x --url=y",
        "mcp add-json x {}",
        "mcp get x",
        "mcp enable x",
        "mcp disable x",
        "mcp remove x",
        "mcp connect x",
        "mcp import --dry-run",
        "mcp login x --scope=y",
        "mcp logout x",
        "acp",
        "mcp-server --verbose",
        "mcp serve",
        "mcp install cursor --dry-run",
        "mcp uninstall cursor",
        "mcp client-metadata --url=x",
        "config validate",
        "config show",
        "config schema",
        "config path",
        "config get x",
        "config set x y",
        "config unset x",
        "config edit",
        "secrets set x",
        "secrets check",
        "demo-server",
        "completions bash",
    ];

    /// The names of all commands without subcommands, each with those that it is in.
    fn leaves(command: &clap::Command, before: &str, found: &mut Vec<String>) {
        for inner in command.get_subcommands() {
            let path = format!("{before}{} ", inner.get_name());
            if inner.has_subcommands() {
                leaves(inner, &path, found);
            } else {
                found.push(path);
            }
        }
    }

    #[test]
    fn json_is_accepted_before_and_after_every_subcommand() {
        let mut commands = Vec::new();
        leaves(&Cli::command(), "", &mut commands);
        for command in commands {
            let is_tried = LINES.iter().any(|line| format!("{line} ").starts_with(&command));
            assert!(is_tried, "{command}");
        }
        for words in LINES.iter().map(|line| line.split(' ').collect::<Vec<_>>()) {
            for at in 0..=words.len() {
                let (before, after) = words.split_at(at);
                let line = [&["openclaw"], before, &["--json"], after].concat();
                match Cli::try_parse_from(&line) {
                    Ok(cli) => assert!(cli.global.json, "{line:?}"),
                    Err(error) => panic!("{line:?}: {error}"),
                }
            }
        }
    }

    /// On a narrow terminal, an explicit line break leaves a short line inside a paragraph.
    #[test]
    fn paragraphs_of_help_have_no_line_breaks() {
        for_each(&Cli::command(), &mut |name, text| {
            let lines: Vec<&str> = text.lines().collect();
            for pair in lines.windows(2) {
                let is_text = |line: &str| !line.is_empty() && !line.starts_with(' ');
                let is_broken = is_text(pair[0]) && is_text(pair[1]);
                assert!(!is_broken, "{name}: {pair:?}");
            }
        });
    }

    /// The comment on options that several commands share must not take its place.
    #[test]
    fn every_command_is_described_in_words_of_its_own() {
        fn collect(command: &clap::Command, seen: &mut std::collections::BTreeMap<String, String>) {
            for inner in command.get_subcommands() {
                let about = inner.get_about().map(ToString::to_string).unwrap_or_default();
                let name = inner.get_name();
                if let Some(other) = seen.insert(about.clone(), name.to_owned()) {
                    assert_eq!(other, name, "{about}");
                }
                collect(inner, seen);
            }
        }
        let mut command = Cli::command();
        command.build();
        collect(&command, &mut std::collections::BTreeMap::new());
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
