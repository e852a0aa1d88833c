//! `openclaw mcp login`: logs in to a server, with the browser or a pasted code (O4).
//!
//! The login itself runs in the gateway, in this process or another one; this command shows its URL,
//! passes the code on, and waits.

use std::cell::Cell;
use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use openclaw_content::{Untrusted, clean_line};
use openclaw_gateway::mcp::{expiry, summary};
use openclaw_mcp::server::status::{ServerState, ServerStatus};
use openclaw_oauth::browser::{self, BrowserEnvironment, NoBrowser};
use openclaw_oauth::issuer::confirmation_hint;
use openclaw_protocol::mcp::{AuthAction, AuthParams, AuthResult, GrantInfo, ServerParams};
use openclaw_protocol::rpc;
use tokio::time::{sleep, timeout};
use url::Url;

use super::arguments;
use super::shell::{Shell, servers_of, with_shell};
use super::terminal::Terminal;
use crate::cli::LoginArgs;
use crate::commands::link::look;
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult, Context as _};
use crate::exit::Exit;
use crate::output::{Output, printable};
use crate::prompt::say;
use openclaw_terminal::style::{GOOD, STRONG};
use openclaw_terminal::wrap::wrap;

/// How often to ask whether the login is finished.
const POLL: Duration = Duration::from_millis(400);
/// A browser that cannot be opened is known by then, usually.
const OPENING: Duration = Duration::from_millis(200);
/// The maximum length of a text from outside.
const TEXT_CHARS: usize = 300;
/// The maximum length of the reason why an authorization server must be confirmed.
const DOUBT_CHARS: usize = 800;
/// The state of a login whose authorization server the user must confirm.
const UNCONFIRMED: &str = "unconfirmed";
const PASTE: &str = "Paste the URL that the browser was redirected to, or wait: ";

pub(super) fn login(args: &LoginArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let name = &args.name;
    let code = code(args)?;
    let has_begun = Cell::new(false);
    let servers = servers_of(&args.context, edge);
    let result = with_shell(servers, edge, output, async |shell, output| {
        let login = Login { shell, args, has_begun: &has_begun };
        let result = match (code, &shell.terminal) {
            (Some(code), _) => login.finish(code).await?,
            (None, Some(terminal)) => {
                let desktop = (!args.no_browser).then(|| edge.desktop());
                login.attended(terminal, desktop).await?
            }
            (None, None) => match login.begin(args.issuer.clone()).await? {
                AuthResult { url: Some(url), .. } => return Ok(unattended(name, &url, output)),
                result => result,
            },
        };
        let server = login.server().await;
        conclude(name, &result, server.as_ref(), output)
    });
    if matches!(result, Err(CommandError::Interrupted)) && has_begun.get() {
        output.note(&format!(
            "the login is not finished; `openclaw mcp login {name} --code URL` can finish it \
             for 15 minutes"
        ));
    }
    result
}

/// Reads the code of the command line, or of stdin.
fn code(args: &LoginArgs) -> Result<Option<String>, CommandError> {
    let code = match args.code.as_deref() {
        None => return Ok(None),
        Some("-") => arguments::read_text(std::io::stdin().lock()).context("cannot read stdin")?,
        Some(code) => code.to_owned(),
    };
    match code.trim() {
        "" => Err(CommandError::usage("the code is empty")),
        code => Ok(Some(code.to_owned())),
    }
}

/// A login at one server.
struct Login<'a> {
    shell: &'a Shell<'a>,
    args: &'a LoginArgs,
    /// Whether the URL is known to the user.
    has_begun: &'a Cell<bool>,
}

impl Login<'_> {
    fn params(&self, action: AuthAction, code: Option<String>) -> AuthParams {
        let agent_id = self.args.context.agent.clone();
        let (server, scopes) = (self.args.name.clone(), self.args.scopes.clone());
        AuthParams { agent_id, server, action: Some(action), code, scopes, issuer: None }
    }

    /// Begins a login; confirms an authorization server first.
    async fn begin(&self, issuer: Option<String>) -> Result<AuthResult, CommandError> {
        let params = AuthParams { issuer, ..self.params(AuthAction::Login, None) };
        self.shell.ask::<rpc::McpAuth>(params, Some(&self.args.name)).await
    }

    async fn finish(&self, code: String) -> Result<AuthResult, CommandError> {
        let params = self.params(AuthAction::Login, Some(code));
        self.shell.ask::<rpc::McpAuth>(params, Some(&self.args.name)).await
    }

    async fn state(&self) -> Result<AuthResult, CommandError> {
        let params = self.params(AuthAction::Status, None);
        Ok(look::<rpc::McpAuth>(self.shell.surface, params).await?)
    }

    /// Returns the status of the server.
    async fn server(&self) -> Option<ServerStatus> {
        let agent_id = self.args.context.agent.clone();
        let params = ServerParams { agent_id, server: self.args.name.clone() };
        let status = look::<rpc::McpStatus>(self.shell.surface, params).await.ok()?;
        serde_json::from_str(status.get()).ok()
    }

    /// Shows the URL to the user, and waits until the login is finished, there or at the prompt.
    async fn attended(
        &self,
        terminal: &Terminal,
        desktop: Option<BrowserEnvironment>,
    ) -> Result<AuthResult, CommandError> {
        let mut begun = self.begin(self.args.issuer.clone()).await?;
        // Each answer is about one thing; there may be several.
        while begun.state == UNCONFIRMED {
            say(&format!("{}\n", folded(&format!("warning: {}", unconfirmed(&begun)))));
            if !terminal.confirm("Do you trust it?").await {
                return Ok(begun);
            }
            begun = self.begin(begun.issuer).await?;
        }
        let Some(url) = begun.url else { return Ok(begun) };
        self.has_begun.set(true);
        let mut opening = pin!(open(&url, desktop.as_ref()));
        let opened = timeout(OPENING, &mut opening).await;
        say(&introduction(&self.args.name, &url, desktop.is_some(), opened.as_ref().ok()));
        let reporting = async {
            if opened.is_err()
                && let Err(no_browser) = opening.await
            {
                let words = format!("{}; open the URL above", sentence(&no_browser));
                say(&format!("\n{}\n{PASTE}", folded(&words)));
            }
            std::future::pending::<Infallible>().await
        };
        let finished = async {
            tokio::select! {
                result = self.finished() => result,
                never = reporting => match never {},
            }
        };
        let mut finished = pin!(finished);
        loop {
            let line = tokio::select! {
                result = &mut finished => return result,
                line = terminal.line(PASTE) => line,
            };
            let Some(line) = line else { return finished.await };
            if line.trim().is_empty() {
                continue;
            }
            match self.finish(line.trim().to_owned()).await {
                Ok(result) => return Ok(result),
                // What was pasted does not belong to this login, which continues.
                Err(error) if self.state().await?.url.is_some() => {
                    say(&format!("{}\n", folded(&error.to_string())));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits until the login is finished.
    async fn finished(&self) -> Result<AuthResult, CommandError> {
        loop {
            sleep(POLL).await;
            let result = self.state().await?;
            if result.url.is_none() {
                return Ok(result);
            }
        }
    }
}

async fn open(url: &str, desktop: Option<&BrowserEnvironment>) -> Result<(), NoBrowser> {
    let Some(desktop) = desktop else { return Ok(()) };
    let url = Url::parse(url).map_err(|_| NoBrowser::NotWeb)?;
    browser::open(&url, desktop).await
}

/// Introduces the URL. It has lines of its own, unindented, so that it can be copied.
fn introduction(
    name: &str,
    url: &str,
    is_opened: bool,
    opened: Option<&Result<(), NoBrowser>>,
) -> String {
    let issuer = Url::parse(url).map(|url| url.origin().ascii_serialization());
    let at = issuer.map(|issuer| format!(" at {issuer}")).unwrap_or_default();
    let what = match opened {
        Some(Err(no_browser)) => {
            format!("{}. Open this URL to log in to `{name}`{at}:", sentence(no_browser))
        }
        _ if is_opened => format!(
            "Opening your browser to log in to `{name}`{at}.\nIf it does not open, use this URL:"
        ),
        _ => format!("Open this URL to log in to `{name}`{at}:"),
    };
    let what = folded(&what);
    // A window that is closed cannot be noticed.
    let wait = "Waiting for up to 15 minutes; Ctrl-C to cancel.";
    format!("{what}\n\n{STRONG}{}{STRONG:#}\n\n{wait}\n", printable(url))
}

/// Wraps a text to the terminal on stderr.
fn folded(text: &str) -> String {
    let width = terminal_size::terminal_size_of(std::io::stderr());
    let width = width.map_or(80, |(width, _)| usize::from(width.0));
    let lines = text.lines().map(|line| wrap(&printable(line), width));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns an error as the beginning of a sentence.
fn sentence(error: &NoBrowser) -> String {
    let text = error.to_string();
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}", chars.as_str())
}

/// Without a terminal: prints the URL, and says how to finish the login.
fn unattended(name: &str, url: &str, output: &mut Output) -> Exit {
    if output.json {
        output.value(&serde_json::json!({ "ok": false, "state": "pending", "url": url }));
    } else {
        output.line(printable(url));
    }
    output.note(&format!(
        "open this URL in a browser to log in to `{name}`, then run `openclaw mcp login {name} --code \
         URL` with the URL that it was redirected to, within 15 minutes"
    ));
    Exit::NeedsLogin
}

/// Shows the result of a login.
fn conclude(
    name: &str,
    result: &AuthResult,
    server: Option<&ServerStatus>,
    output: &mut Output,
) -> CommandResult {
    match (result.state.as_str(), &result.grant) {
        ("authorized", grant) => {
            if output.json {
                output.data(result);
            } else {
                match grant {
                    Some(grant) => show_grant(name, grant, output),
                    None => output.line(format_args!("`{name}` uses the key in its entry")),
                }
            }
            if let Some(server) = server {
                show_server(name, server, output);
            }
            Ok(Exit::Ok)
        }
        (UNCONFIRMED, _) => {
            let error = CommandError::new(Exit::NeedsLogin, format!("cannot log in to `{name}`"));
            let issuer = result.issuer.as_deref().unwrap_or_default();
            Err(error.cause(unconfirmed(result)).hint(confirmation_hint(name, issuer)))
        }
        ("none", _) => {
            match output.json {
                true => output.data(result),
                false => output.line(format_args!("`{name}` requires no login")),
            }
            Ok(Exit::Ok)
        }
        _ => {
            let trouble = server.filter(|server| server.state == ServerState::NeedsAuth);
            let hint = trouble.and_then(|server| server.last_error.as_ref()?.hint.clone());
            let again = || format!("run `openclaw mcp login {name}` to try again");
            let error = CommandError::new(Exit::NeedsLogin, format!("cannot log in to `{name}`"))
                .hint(hint.unwrap_or_else(again));
            Err(match &result.message {
                Some(message) => error.cause(clean(message)),
                // The authorization server has issued one.
                None => error.cause("the server does not accept the new token"),
            })
        }
    }
}

/// Returns why the user must confirm an authorization server.
fn unconfirmed(result: &AuthResult) -> String {
    let message = result.message.as_deref();
    let message = message.unwrap_or("the authorization server is not confirmed");
    clean_line(Untrusted::new(message), DOUBT_CHARS)
}

fn show_server(name: &str, server: &ServerStatus, output: &mut Output) {
    let is_ready = server.state == ServerState::Ready;
    if !is_ready {
        output.warning(&format!("`{name}` is not connected: {}", summary(server)));
    } else if !output.json {
        output.line(format_args!("  {}", summary(server)));
    }
}

fn show_grant(name: &str, grant: &GrantInfo, output: &mut Output) {
    let until = expiry(grant.expires_at_ms).map(|at| match grant.renewable {
        true => format!(" until {at} (renewed automatically)"),
        false => format!(" until {at}"),
    });
    let until = until.unwrap_or_default();
    output.line(format_args!("{GOOD}✓{GOOD:#} logged in to `{name}`{until}"));
    output.line(format_args!("  issuer: {}", clean(&grant.issuer)));
    if !grant.scopes.is_empty() {
        output.line(format_args!("  scopes: {}", clean(&grant.scopes.join(" "))));
    }
    if let Some(place) = grant.key_in.as_deref().filter(|place| *place != "keychain") {
        output.line(format_args!("  encrypted by: {place}"));
    }
}

fn clean(text: &str) -> String {
    clean_line(Untrusted::new(text), TEXT_CHARS)
}
