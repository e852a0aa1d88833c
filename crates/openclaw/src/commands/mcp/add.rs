//! `openclaw mcp add` and `add-json`: add a server to the file.

use openclaw_config::{Config, Document, Paths, ServerName, Severity};
use serde_json::{Value, json};

use super::arguments::read_text;
use super::check::{ConnectionTest, check};
use super::entry;
use super::login::login;
use super::screen::Screen;
use super::server_name;
use super::terminal::Terminal;
use super::write::{NewServer, already_exists, exists, print_added, put};
use crate::cli::{AddArgs, AddJsonArgs, ContextArgs, LoginArgs, ScopeArg, WriteArgs};
use crate::commands::block_on;
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult, Context as _};
use crate::exit::Exit;
use crate::output::Output;
use crate::signals::Signals;
use openclaw_terminal::style::WARNING;

pub(super) fn add(args: &AddArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let name = server_name(&args.name)?;
    let entry = entry::of_options(args, edge, output)?;
    write(&NewServer { name, entry }, (args.scope.scope, &args.how), edge, output)
}

pub(super) fn add_json(args: &AddJsonArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let name = server_name(&args.name)?;
    let stdin = (args.entry == "-").then(|| read_text(std::io::stdin().lock()));
    let stdin = stdin.transpose().context("cannot read stdin")?;
    let entry = entry::of_json(stdin.as_deref().unwrap_or(&args.entry), &args.name)?;
    write(&NewServer { name, entry }, (args.scope.scope, &args.how), edge, output)
}

fn write(
    server: &NewServer,
    (scope, how): (Option<ScopeArg>, &WriteArgs),
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    let paths = edge.paths()?;
    let replaced = exists(server.name.as_str(), &paths, edge);
    if replaced && !how.force {
        return Err(already_exists(&server.name, "use `--force` to replace it", &paths, edge));
    }
    warn_about_scope(scope, &paths, output);
    let server = Added { server, replaced, is_tried: !how.no_check };
    add_one(&server, &paths, edge, output)
}

/// Says that the scope of other programs has no effect.
pub(super) fn warn_about_scope(scope: Option<ScopeArg>, paths: &Paths, output: &mut Output) {
    if scope.is_some() {
        let file = paths.config.display();
        output.note(&format!("`--scope` has no effect: all servers are in {file}"));
    }
}

/// A server to add.
pub(super) struct Added<'a> {
    pub(super) server: &'a NewServer,
    /// Whether it replaces another.
    pub(super) replaced: bool,
    /// Whether the connection is tested.
    pub(super) is_tried: bool,
}

/// Adds one server, and reports it. The entry is kept even if the connection test fails.
pub(super) fn add_one(
    added: &Added<'_>,
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    let Added { server, replaced, is_tried } = *added;
    check_address(server, paths, edge)?;
    let written = put(std::slice::from_ref(server), paths, edge)?;
    let path = Document::server_path(&server.name);
    if !output.json {
        print_added(&server.name, &written, is_tried, paths, output);
        warn_about_dollars(server, &written.config, output);
    }
    let (check, exit) = match is_tried {
        true => check(&server.name, &written.config, paths, edge, output),
        false => (None, Exit::Ok),
    };
    if output.json {
        output.value(&json!({
            "ok": true,
            "server": server.name.as_str(),
            "file": paths.config.to_string_lossy(),
            "path": path,
            "replaced": replaced,
            "diagnostics": written.report.about(&path).to_json(),
            "check": check.as_ref().map(ConnectionTest::to_json),
        }));
    } else if let Some(check) = &check {
        if check.needs_login() && exit == Exit::Ok && edge.has_user() {
            return offer_login(&server.name, &written.config, edge, output);
        }
        check.show(&server.name, output);
    }
    Ok(exit)
}

/// Offers to log in to a server that was added. It stays added even if the login fails.
fn offer_login(
    name: &ServerName,
    config: &Config,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    output.line(format_args!("{WARNING}!{WARNING:#} `{name}` requires a login"));
    output.flush();
    let agrees = block_on(async {
        let mut signals = Signals::listen().context("cannot start")?;
        let terminal = Terminal::new(Screen::new(false));
        signals.interrupt(async { Ok(terminal.agree("Log in now?").await) }).await
    });
    let later = format!("run `openclaw mcp login {name}` to log in");
    if !agrees? {
        output.note(&later);
        return Ok(Exit::Ok);
    }
    let agent = config.agents.iter().find(|agent| agent.mcp.servers.contains_key(name));
    let args = LoginArgs {
        name: name.to_string(),
        code: None,
        issuer: None,
        scopes: Vec::new(),
        no_browser: false,
        // A running gateway may not have reloaded its configuration yet; it adopts the login.
        context: ContextArgs { agent: agent.map(|agent| agent.id.to_string()), no_gateway: true },
    };
    match login(&args, edge, output) {
        Err(error @ CommandError::Failed(_)) => {
            output.error(&error);
            Ok(Exit::Ok)
        }
        result => result,
    }
}

/// Explains `$$` if an argument contains an unset variable: it may be meant for the program, such
/// as a shell.
fn warn_about_dollars(server: &NewServer, config: &Config, output: &mut Output) {
    let mut held_back = config.agents.iter().filter_map(|it| it.mcp.held_back.get(&server.name));
    let Some(held_back) = held_back.next() else { return };
    let args = server.entry.get("args").and_then(Value::as_array).into_iter().flatten();
    let args: Vec<&str> = args.filter_map(Value::as_str).collect();
    let is_argument = |name: &&String| {
        let forms = [format!("${name}"), format!("${{{name}")];
        args.iter().any(|arg| forms.iter().any(|form| arg.contains(form)))
    };
    if let Some(name) = held_back.unset_variables.iter().find(is_argument) {
        output.line(format_args!(
            "  write `$$` for a dollar sign: `$${name}` passes `${name}` to the program"
        ));
    }
}

/// Rejects an invalid URL with a usage error: it is from the command line, not from the file.
fn check_address(server: &NewServer, paths: &Paths, edge: &Edge) -> Result<(), CommandError> {
    if server.entry.get("url").is_none() {
        return Ok(());
    }
    let alone = json!({ "mcp": { "servers": { server.name.as_str(): server.entry } } });
    let report = edge.load_text(&paths.config, &alone.to_string()).report;
    let about = report.about(&format!("{}.url", Document::server_path(&server.name)));
    let mut found = about.diagnostics().iter();
    let Some(error) = found.find(|found| found.severity() == Severity::Error) else {
        return Ok(());
    };
    let hint = error.advice().unwrap_or("write it in full: `https://example.com/mcp`");
    Err(CommandError::usage("invalid URL").cause(error.message()).hint(hint))
}
