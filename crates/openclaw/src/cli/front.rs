//! The command line of the front ends: chat, agent, sessions, the gateway, status, doctor.

use std::num::NonZeroU64;

use clap::{Args, Subcommand, ValueEnum};
use openclaw_config::Bind;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  openclaw chat
  openclaw chat --agent research
  openclaw chat --session agent:main:holidays
  echo 'what time is it' | openclaw chat

Without a model or a key, a stand-in answers that needs no network and really uses tools: try `what time \
is it`, or `add 2 and 3`.

Keys: Tab completes, Ctrl-R searches what was typed before, Alt-Enter begins a new line, Ctrl-C ends the \
turn, Ctrl-D exits. Without a terminal each line of stdin is a message.

Exit codes: 0 left, 1 a turn failed (without a terminal), 2 wrong usage, 3 no gateway, or a required \
server is not ready, 78 the configuration has errors, 130 interrupted.")]
pub(crate) struct ChatArgs {
    /// The conversation to go on with [default: the agent's main one]
    #[arg(long, value_name = "KEY")]
    pub(crate) session: Option<String>,
    /// The agent to talk to [default: the first]
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  openclaw agent --message 'add 2 and 3'
  git diff | openclaw agent --message -
  openclaw agent --message 'and times four?' --session agent:main:sums
  openclaw agent --message 'what time is it' --json | jq -r .text

The answer goes to stdout; tool calls and all else to stderr. A call that needs somebody's approval is \
asked for at the terminal; where there is none, what is configured holds.

Exit codes: 0 ok, 1 the turn failed, 2 wrong usage, 3 no gateway, or a required server is not ready, \
5 timed out, 78 the configuration has errors, 130 interrupted.")]
pub(crate) struct TurnArgs {
    /// What to say; `-` reads it from stdin
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) message: String,
    /// The conversation to go on with [default: a new one]
    #[arg(long, value_name = "KEY")]
    pub(crate) session: Option<String>,
    /// The agent to ask [default: the first]
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// How long the turn may take, in milliseconds
    #[arg(long, value_name = "MS")]
    pub(crate) timeout: Option<NonZeroU64>,
    /// Show tool calls also where stderr is no terminal
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List conversations, the latest first
    #[command(after_help = "Examples:
  openclaw sessions list
  openclaw sessions list --agent research --limit 5
  openclaw sessions list --json | jq -r '.sessions[].key'")]
    List {
        /// Only those of this agent
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
        /// Only those in which this occurs
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// How many
        #[arg(long, value_name = "N", default_value = "50")]
        limit: NonZeroU64,
    },
    /// Show what was said
    #[command(after_help = "Examples:
  openclaw sessions show agent:main:main
  openclaw sessions show agent:main:main --json

Exit codes: 0 shown, 1 there is no such conversation.")]
    Show {
        /// The conversation's key
        key: String,
        /// Only the last so many messages
        #[arg(long, value_name = "N")]
        last: Option<NonZeroU64>,
    },
    /// Delete a conversation
    #[command(after_help = "Example:
  openclaw sessions delete agent:main:main --yes

Exit codes: 0 deleted, 1 there is no such conversation, or not deleted, 2 no terminal to confirm on.")]
    Delete {
        /// The conversation's key
        key: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Write a conversation to stdout
    #[command(after_help = "Examples:
  openclaw sessions export agent:main:main --format md > holidays.md
  openclaw sessions export agent:main:main | jq '.messages | length'")]
    Export {
        /// The conversation's key
        key: String,
        /// As what
        #[arg(long, value_name = "FORMAT", default_value = "json")]
        format: ExportFormat,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Everything, for programs
    Json,
    /// Markdown, for people
    Md,
}

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  openclaw gateway
  openclaw gateway run --port 18800
  openclaw gateway status
  openclaw gateway stop

It runs until it gets SIGTERM or Ctrl-C; then turns under way have a moment to end. A second signal ends \
it at once. SIGHUP reads the configuration again.

Exit codes of `run`: 0 stopped, 1 it could not start, 3 a gateway is already running, the port is in use, or a \
required server is not ready, 78 the configuration has errors."
)]
pub(crate) struct GatewayArgs {
    #[command(subcommand)]
    pub(crate) command: Option<GatewayCommand>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GatewayCommand {
    /// Run the gateway here
    #[command(after_help = "Examples:
  openclaw gateway run
  openclaw gateway run --port 0
  openclaw gateway run --bind 0.0.0.0

Clients on this machine find it by themselves. From other machines it can be reached only if `--bind` (or \
`gateway.bind`) says so, and then with the token that lies in the state folder.")]
    Run(RunArgs),
    /// Tell whether a gateway runs, and how it is
    #[command(after_help = "Examples:
  openclaw gateway status
  openclaw gateway status --json | jq -r .url

Exit codes: 0 it runs, 1 it does not answer, 3 it does not run.")]
    Status,
    /// Stop the gateway
    #[command(after_help = "Example:
  openclaw gateway stop

Turns under way have a moment to end. Exit codes: 0 it has stopped, or none ran; 1 it has not.")]
    Stop,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The port to listen on; 0 for any [default: `gateway.port`]
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// The address to listen on, or `loopback`, `lan`, `all` [default: `gateway.bind`]
    #[arg(long, value_name = "ADDRESS", value_parser = bind)]
    pub(crate) bind: Option<Bind>,
}

/// The same words as in the configuration.
fn bind(word: &str) -> Result<Bind, &'static str> {
    Bind::parse(word).ok_or("expected `loopback`, `lan`, `all` or an IP address")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_gateway_listens_is_said_as_in_the_configuration() {
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
