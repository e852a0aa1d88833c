//! The arguments of the `openclaw mcp` subcommands about logins.

use clap::Args;

use super::ContextArgs;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  openclaw mcp login github                # log in with the browser
  openclaw mcp login github --no-browser   # only print the URL
  openclaw mcp login github --scope repo   # request one more scope
  openclaw mcp login github --code URL     # finish a login
  echo \"$URL\" | openclaw mcp login github --code -

Over SSH, open the printed URL in a browser on your own machine. It is redirected to a URL that begins \
with http://127.0.0.1: the page does not load, but that URL contains the code. Paste it at the prompt, \
or pass it with `--code` within 15 minutes.

Without a terminal, the command prints the URL and does not wait.

Exit codes: 0 logged in, 2 wrong usage, 3 the server is not available, 77 not logged in, 78 the \
configuration has errors, 130 interrupted.")]
pub(crate) struct LoginArgs {
    /// The server
    pub(crate) name: String,
    /// Finish a login with the URL that the browser was redirected to; `-` reads it from stdin
    #[arg(long, value_name = "URL", conflicts_with = "no_browser")]
    pub(crate) code: Option<String>,
    /// Do not open a browser
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Request this scope, too (repeatable, or several separated by commas)
    #[arg(
        long = "scope",
        alias = "scopes",
        value_name = "SCOPE",
        value_delimiter = ',',
        conflicts_with = "code"
    )]
    pub(crate) scopes: Vec<String>,
    /// Confirm this authorization server: credentials in `auth` are sent to it from now on, and to no
    /// other one
    #[arg(long, value_name = "URL", conflicts_with = "code")]
    pub(crate) issuer: Option<String>,
    #[command(flatten)]
    pub(crate) context: ContextArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  openclaw mcp logout github

The tokens are deleted, and revoked at the authorization server if it supports that.

Exit codes: 0 logged out, 1 not logged in, 2 no such server, 78 the configuration has errors.")]
pub(crate) struct LogoutArgs {
    /// The server
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) context: ContextArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  openclaw mcp client-metadata
  openclaw mcp client-metadata --url https://example.com/id.json > id.json

Host the document at that URL, and set `auth.clientMetadataUrl` of a server to it. A gateway with \
`gateway.publicUrl` serves the document itself, and uses it for all servers.

Exit codes: 0 printed, 2 wrong usage, 78 the configuration has errors.")]
pub(crate) struct ClientMetadataArgs {
    /// The https URL where the document is hosted [default: derived from `gateway.publicUrl`]
    #[arg(long)]
    pub(crate) url: Option<String>,
}
