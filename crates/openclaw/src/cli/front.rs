//! The command line of the front ends: chat, agent, sessions, the gateway, status, doctor.

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, value_parser};
use openclaw_config::Bind;

use super::gateway_choice::GatewayChoice;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  openclaw chat
  openclaw chat 'what time is it'
  openclaw chat --continue
  openclaw chat --resume
  openclaw chat --agent research --session agent:research:holidays
  echo 'what time is it' | openclaw chat
  openclaw chat --gateway wss://gateway.example --token-file token.txt

Without a model or an API key, a built-in offline model answers. It needs no network and calls real \
tools: try `what time is it`, or `add 2 and 3`. The first chat at a terminal offers to set up \
a model.

Every chat starts a new session, unless `--continue`, `--resume` or `--session` is given.

Keys: Tab completes, Ctrl-R searches the history, Alt-Enter inserts a new line, Ctrl-C cancels the \
turn, Ctrl-D exits, Ctrl-Z suspends. What you type during a turn goes into the next prompt. Without a \
terminal, each line of stdin is a message.

Exit codes: 0 exited, 1 a turn failed (without a terminal), 2 wrong usage, 3 no gateway, or a required \
server is not ready, 78 the configuration has errors, 130 interrupted.")]
pub(crate) struct ChatArgs {
    /// The first message
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
    /// Continue the latest session
    #[arg(long = "continue", short = 'c', conflicts_with_all = ["resume", "session"])]
    pub(crate) is_continued: bool,
    /// Continue a session: this one, or one from a list
    #[arg(long, short, value_name = "KEY", num_args = 0..=1, conflicts_with = "session")]
    pub(crate) resume: Option<Option<String>>,
    /// The session to continue, or to start with this key
    #[arg(long, value_name = "KEY")]
    pub(crate) session: Option<String>,
    /// The agent to talk to [default: the default agent]
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// The folder to work in [default: the current one, at a terminal]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) workspace: Option<PathBuf>,
    /// The model: PROVIDER/MODEL, or a part of a configured name [default: the agent's]
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) gateway: GatewayChoice,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  openclaw acp
  openclaw acp --agent research
  openclaw acp --gateway ws://127.0.0.1:18789

An editor starts it; docs/editors.md has the settings. It uses the running gateway of this user, or works \
on its own, and exits when stdin closes. stdout carries only the protocol.

Exit codes: 0 the client has closed the connection, 1 failure, 2 wrong usage, 3 no gateway at the URL, \
78 the configuration has errors.")]
pub(crate) struct AcpArgs {
    #[command(flatten)]
    pub(crate) gateway: GatewayChoice,
    /// The agent of new sessions [default: the default agent]
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  openclaw agent --message 'add 2 and 3'
  git diff | openclaw agent --message -
  openclaw agent --message 'and times four?' --session agent:main:sums
  openclaw agent --message 'what time is it' --json | jq -r .text

The answer goes to stdout, everything else to stderr. Calls that need approval are confirmed at the \
terminal; without a terminal, the configured fallback applies.

Exit codes: 0 success, 1 the turn failed, 2 wrong usage, 3 no gateway, or a required server is not ready, 4 a call \
was denied, 5 timed out, 78 the configuration has errors, 130 interrupted.")]
pub(crate) struct TurnArgs {
    /// The message; `-` reads it from stdin
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) message: String,
    /// The session to continue [default: a new one]
    #[arg(long, value_name = "KEY")]
    pub(crate) session: Option<String>,
    /// The agent to ask [default: the default agent]
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// The folder to work in [default: the current one, at a terminal]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) workspace: Option<PathBuf>,
    /// The timeout of the turn, in milliseconds
    #[arg(long, value_name = "MS", value_parser = super::positive)]
    pub(crate) timeout: Option<NonZeroU64>,
    /// Show tool calls even if stderr is not a terminal
    #[arg(long, short)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) gateway: GatewayChoice,
}

#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    pub(crate) command: SessionsCommand,
    #[command(flatten)]
    pub(crate) gateway: GatewayChoice,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List sessions, the latest first
    #[command(after_help = "Examples:
  openclaw sessions list
  openclaw sessions list --agent research --limit 5
  openclaw sessions list --json | jq -r '.sessions[].key'")]
    List {
        /// Only sessions of this agent
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
        /// Only sessions that contain this text
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// The maximum number to list
        #[arg(long, value_name = "N", default_value = "50", value_parser = super::positive)]
        limit: NonZeroU64,
    },
    /// Show a session
    #[command(after_help = "Examples:
  openclaw sessions show agent:main:main
  openclaw sessions show agent:main:main --json

Exit codes: 0 shown, 1 no such session.")]
    Show {
        /// The session's key
        key: String,
        /// Only the last N messages
        #[arg(long, value_name = "N", value_parser = super::positive)]
        last: Option<NonZeroU64>,
    },
    /// Delete a session
    #[command(after_help = "Example:
  openclaw sessions delete agent:main:main --yes

Exit codes: 0 deleted, 1 no such session, or not deleted, 2 no terminal to confirm on.")]
    Delete {
        /// The session's key
        key: String,
        /// Delete without confirmation
        #[arg(long, short)]
        yes: bool,
    },
    /// Write a session to stdout
    #[command(after_help = "Examples:
  openclaw sessions export agent:main:main --format md > holidays.md
  openclaw sessions export agent:main:main | jq '.messages | length'")]
    Export {
        /// The session's key
        key: String,
        /// The output format: everything as JSON, or the text as Markdown
        #[arg(long, value_name = "FORMAT", default_value = "json")]
        format: ExportFormat,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    Json,
    Md,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  openclaw gateway
  openclaw gateway run --port 18800
  openclaw gateway start
  openclaw gateway status
  openclaw gateway stop

It runs until SIGTERM or Ctrl-C; running turns then get a short time to finish. A second signal \
stops it immediately. SIGHUP reloads the configuration.

Exit codes of `run`: 0 stopped, 1 failed to start, 3 a gateway is already running, the port is in use, or a \
required server is not ready, 78 the configuration has errors.")]
pub(crate) struct GatewayArgs {
    #[command(subcommand)]
    pub(crate) command: Option<GatewayCommand>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GatewayCommand {
    /// Run the gateway in the foreground
    #[command(after_help = "Examples:
  openclaw gateway run
  openclaw gateway run --port 0
  openclaw gateway run --bind 0.0.0.0

Clients on this machine find it automatically. Other machines can reach it only if `--bind` (or \
`gateway.bind`) allows it, with a token of `openclaw gateway token create`.")]
    Run(RunArgs),
    /// Show whether the gateway is running, and its state
    #[command(after_help = "Examples:
  openclaw gateway status
  openclaw gateway status --json | jq -r .url

Exit codes: 0 running, 1 not responding, 3 not running.")]
    Status,
    /// Start the gateway in the background
    #[command(after_help = "Examples:
  openclaw gateway start
  openclaw gateway start --port 18800

Starts the service if `openclaw gateway install` has installed one, otherwise a process that outlives the \
terminal. `openclaw gateway logs` shows its log.

Exit codes: 0 running, 1 failed to start.")]
    Start(RunArgs),
    /// Stop the gateway, and start it in the background
    #[command(after_help = "Example:
  openclaw gateway restart")]
    Restart(RunArgs),
    /// Show the log of the gateway in the background
    #[command(after_help = "Examples:
  openclaw gateway logs
  openclaw gateway logs --follow --lines 20")]
    Logs(GatewayLogsArgs),
    /// Run the gateway at every login: a systemd user service or launchd agent
    #[command(after_help = "Examples:
  openclaw gateway install
  openclaw gateway install --dry-run

The file is shown before it is written. The service gets the search path of this shell, but no other \
variables.

Exit codes: 0 installed, 1 failure or declined, 2 no terminal to confirm on.")]
    Install(ServiceArgs),
    /// Remove the service that `install` has installed
    #[command(after_help = "Example:
  openclaw gateway uninstall")]
    Uninstall,
    /// Stop the gateway
    #[command(after_help = "Example:
  openclaw gateway stop

Running turns get a short time to finish.

Exit codes: 0 stopped, or was not running; 1 still running.")]
    Stop,
    /// Create, list and revoke access tokens for other clients
    #[command(
        subcommand,
        after_help = "Example:
  openclaw gateway token create --name phone --scope operator.write"
    )]
    Token(TokenCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create an access token with limited scopes, and print it
    #[command(after_help = "Examples:
  openclaw gateway token create --name phone --scope write,approvals
  openclaw gateway token create --name dashboard --scope operator.read

The token is shown once: only its hash is stored. A running gateway accepts it immediately. \
`operator.write` includes `operator.read`, which includes `operator.metrics`; `operator.admin` includes all \
others. `operator.` can be omitted: `--scope read`.")]
    Create {
        /// The name of the token, for `list` and `revoke`
        #[arg(long, value_name = "NAME")]
        name: String,
        /// What its clients may do
        #[arg(long, value_name = "SCOPES", value_enum, value_delimiter = ',', required = true)]
        scope: Vec<TokenScope>,
    },
    /// List the access tokens
    #[command(after_help = "Example:
  openclaw gateway token list")]
    List,
    /// Revoke an access token; its clients are disconnected
    #[command(after_help = "Example:
  openclaw gateway token revoke phone

Exit codes: 0 revoked, 2 no such token.")]
    Revoke {
        /// The name of the token
        name: String,
    },
}

/// A scope of an access token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TokenScope {
    /// Read everything
    #[value(name = "operator.read", alias = "read")]
    Read,
    /// Read metrics (`/metrics`, `openclaw top`)
    #[value(name = "operator.metrics", alias = "metrics")]
    Metrics,
    /// Chat and call tools that need no approval
    #[value(name = "operator.write", alias = "write")]
    Write,
    /// Approve calls, and call tools that need an approval
    #[value(name = "operator.approvals", alias = "approvals")]
    Approvals,
    /// Answer questions
    #[value(name = "operator.questions", alias = "questions")]
    Questions,
    /// Everything, including changes to the configuration
    #[value(name = "operator.admin", alias = "admin")]
    Admin,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  openclaw top
  openclaw top --json | jq '.servers[] | {name, state, p95Ms}'
  openclaw top --count 1

Rates and percentiles cover the last 10 seconds; errors, calls and restarts the time since the start of \
the gateway. On a terminal, `q` quits. With --json, one sample is printed, which covers the time since \
the start.

Exit codes: 0 success, 1 failure, 3 the gateway is not running.")]
pub(crate) struct TopArgs {
    /// Seconds between two updates
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = value_parser!(u64).range(1..=3600))]
    pub(crate) interval: u64,
    /// The number of updates to show [default: no limit]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct GatewayLogsArgs {
    /// The number of lines to show
    #[arg(long, short = 'n', value_name = "N", default_value = "50")]
    pub(crate) lines: usize,
    /// Show new lines as they are written
    #[arg(long, short)]
    pub(crate) follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ServiceArgs {
    /// Install without confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Only show the file
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The port to listen on; 0 for any free port [default: `gateway.port`]
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// The address to listen on, or `loopback`, `lan`, `all` [default: `gateway.bind`]
    #[arg(long, value_name = "ADDRESS", value_parser = bind)]
    pub(crate) bind: Option<Bind>,
    /// Detach from the terminal
    #[arg(long, hide = true)]
    pub(crate) detached: bool,
}

impl RunArgs {
    /// Whether any of the options is given.
    pub(crate) fn are_given(&self) -> bool {
        let Self { port, bind, detached } = self;
        port.is_some() || bind.is_some() || *detached
    }
}

/// Parses an address as in `gateway.bind`.
fn bind(word: &str) -> Result<Bind, &'static str> {
    Bind::parse(word).ok_or("expected `loopback`, `lan`, `all` or an IP address")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bind_accepts_the_values_of_the_configuration() {
        for (word, address) in [
            ("loopback", "127.0.0.1"),
            ("lan", "0.0.0.0"),
            ("all", "0.0.0.0"),
            ("192.0.2.7", "192.0.2.7"),
            ("::1", "::1"),
        ] {
            assert_eq!(bind(word).map(|it| it.ip().to_string()), Ok(address.to_owned()), "{word}");
        }
        assert!(bind("everywhere").unwrap_err().contains("`lan`"));
    }
}
