//! `openclaw mcp call`: calls a tool.

use std::path::Path;

use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::mcp::{CallParams, ListParams, Tool};
use openclaw_protocol::{RequestError, detail, rpc};
use serde_json::value::to_raw_value;

use super::arguments::{self, ParsedArguments, TextSources};
use super::shell::{Shell, in_time, servers_of, with_shell};
use super::terminal::Terminal;
use super::{answer, save};
use crate::cli::CallArgs;
use crate::commands::link::Servers;
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult, Context as _};
use crate::exit::Exit;
use crate::output::Output;
use openclaw_terminal::style::{BAD, GOOD};

/// The maximum length of a tool's name.
const NAME_CHARS: usize = 100;

pub(super) fn call(args: &CallArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    save::check(&args.request.show)?;
    // Read before any server is started.
    let is_piped = args.rest.last().is_some_and(|word| word == "-");
    let stdin = is_piped.then(|| arguments::read_text(std::io::stdin().lock()));
    let stdin = stdin.transpose().context("cannot read stdin")?.unwrap_or_default();
    let servers = Servers { calls: true, ..servers_of(&args.request.context, edge) };
    with_shell(servers, edge, output, async |shell, output| {
        carry_out(args, &stdin, shell, output).await
    })
}

/// The tool to call, and its arguments.
struct Target<'a> {
    /// `None` if `tool` is the full name, as agents see it.
    server: Option<&'a String>,
    tool: &'a String,
    words: &'a [String],
}

impl<'a> Target<'a> {
    fn of(args: &'a CallArgs) -> Self {
        // `SERVER.TOOL key:value`, as other programs write arguments: no tool has such a name.
        let is_value = |word: &str| args.target.contains('.') && word.contains(':');
        match args.rest.split_first() {
            Some((tool, words)) if !arguments::is_argument(tool) && !is_value(tool) => {
                Self { server: Some(&args.target), tool, words }
            }
            _ => Self { server: None, tool: &args.target, words: &args.rest },
        }
    }

    /// Returns the label of the running call.
    fn shown(&self) -> String {
        match self.server {
            Some(server) => format!("{server}/{}", outside(self.tool)),
            None => outside(self.tool),
        }
    }
}

async fn carry_out(
    args: &CallArgs,
    stdin: &str,
    shell: &Shell<'_>,
    output: &mut Output,
) -> CommandResult {
    let target = Target::of(args);
    let ParsedArguments { values, texts } = match given(target.words, stdin) {
        Ok(given) => given,
        Err(problem) => wrong_words(args, &target, &problem, shell).await?,
    };
    let is_empty = values.is_empty();
    let params = CallParams {
        agent_id: args.request.context.agent.clone(),
        server: target.server.cloned(),
        tool: target.tool.clone(),
        args: if is_empty { None } else { to_raw_value(&values).ok() },
        texts: (!texts.is_empty()).then_some(texts),
        approve: Some(args.approve),
        timeout_ms: args.request.timeout_ms(),
        raw: Some(args.request.show.raw),
        ..CallParams::default()
    };
    let mut called = shell.call(params.clone(), &target.shown()).await;
    if let Err(error) = &called
        && is_changed(error)
        && (args.approve || shell.terminal.is_some())
        && let Some(tool) = described(args, &target, shell).await?
    {
        if let (false, Some(terminal)) = (args.approve, &shell.terminal) {
            confirm(&error.to_string(), &tool, terminal, output).await?;
        }
        // Approves the version that the user saw, even if the tool has changed again.
        let fingerprint = Some(tool.fingerprint);
        let params = CallParams { approve: Some(true), fingerprint, ..params };
        called = shell.call(params, &target.shown()).await;
    }
    let outcome = called.map_err(in_time)?;
    let details = &outcome.details;
    let (server, name) = (details.server.as_deref(), details.tool.as_deref());
    let what = format!("{}/{}", server.unwrap_or_default(), outside(name.unwrap_or(target.tool)));
    let shown = answer::show(&outcome, &what, &args.request.show, output);
    outcome.warnings.iter().for_each(|warning| output.warning(warning));
    shown
}

/// Whether the tool has changed since it was first seen or approved.
fn is_changed(error: &RequestError) -> bool {
    matches!(error, RequestError::Refused(shape)
        if shape.detail().as_deref() == Some(detail::TOOL_CHANGED))
}

fn outside(name: &str) -> String {
    clean_line(Untrusted::new(name), NAME_CHARS)
}

fn given(words: &[String], stdin: &str) -> Result<ParsedArguments, String> {
    let file = |path: &Path| arguments::read_text(std::fs::File::open(path)?);
    arguments::read(words, TextSources { stdin, file: &file })
}

/// Handles invalid arguments. If the tool is denied, returns empty ones instead of the error: the
/// call then reports the denial, which matters more.
async fn wrong_words(
    args: &CallArgs,
    target: &Target<'_>,
    problem: &str,
    shell: &Shell<'_>,
) -> Result<ParsedArguments, CommandError> {
    let tool = described(args, target, shell).await?;
    if tool.is_some_and(|tool| tool.denied_by.is_some()) {
        return Ok(ParsedArguments::default());
    }
    let (server, tool) = match target.server {
        Some(server) => (server.as_str(), target.tool.as_str()),
        None => target.tool.split_once('.').unwrap_or(("SERVER", "TOOL")),
    };
    Err(CommandError::usage(problem)
        .hint(format!("run `openclaw mcp tools {server} {tool}` to see the arguments")))
}

/// Returns the current description of the tool.
async fn described(
    args: &CallArgs,
    target: &Target<'_>,
    shell: &Shell<'_>,
) -> Result<Option<Tool>, CommandError> {
    let params = ListParams {
        agent_id: args.request.context.agent.clone(),
        server: target.server.cloned(),
        tool: Some(target.tool.clone()),
        schema: Some(true),
        raw: None,
    };
    let server = target.server.map(String::as_str);
    let found = shell.ask::<rpc::McpTools>(params, server).await?;
    Ok(found.tools.into_iter().next())
}

/// Shows how a tool has changed, and asks for approval.
async fn confirm(
    problem: &str,
    tool: &Tool,
    terminal: &Terminal,
    output: &mut Output,
) -> Result<(), CommandError> {
    output.warning(problem);
    for change in &tool.changes {
        let style = if change.starts_with('-') { BAD } else { GOOD };
        let change = clean_line(Untrusted::new(change), usize::MAX);
        output.aside(&format!("  {style}{change}{style:#}"));
    }
    if tool.changes.is_empty() {
        let (server, name) = (outside(&tool.server), outside(&tool.tool));
        let words = "the change is too large to be shown here; the tool was not called";
        return Err(CommandError::new(Exit::Denied, words).hint(format!(
            "review the tool with `openclaw mcp tools {server} {name} --raw`, then approve it with \
             `openclaw mcp call {server} {name} --approve`"
        )));
    }
    if terminal.confirm("Approve the changed tool and call it?").await {
        return Ok(());
    }
    Err(CommandError::new(Exit::Denied, "not approved; the tool was not called"))
}
