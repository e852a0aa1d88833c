//! `openclaw mcp call`: one tool, once, for a person at the shell.

use std::path::Path;

use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::mcp::{CallParams, ListParams, Tool};
use openclaw_protocol::{AskError, detail, rpc};
use serde_json::value::to_raw_value;

use super::arguments::{self, Given, Sources};
use super::shell::{Shell, in_time, servers_of, with_shell};
use super::terminal::Terminal;
use super::{answer, save};
use crate::cli::CallArgs;
use crate::commands::link::Servers;
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult, Context as _};
use crate::exit::Exit;
use crate::output::Output;

/// How much of a tool's name is shown.
const NAME_CHARS: usize = 100;
/// How much of a description is shown to a user who decides about it.
const DESCRIPTION_CHARS: usize = 2_000;

pub(super) fn call(
    args: &CallArgs,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    save::check(&args.show)?;
    // Before anything starts: nothing else happens while the user types.
    let is_piped = args.rest.last().is_some_and(|word| word == "-");
    let stdin = is_piped.then(|| arguments::read_text(std::io::stdin().lock()));
    let stdin = stdin.transpose().context("cannot read stdin")?.unwrap_or_default();
    let servers = Servers { calls: true, ..servers_of(&args.whose, &args.by, edge) };
    with_shell(servers, flag, edge, output, async |shell, output| {
        carry_out(args, &stdin, shell, output).await
    })
}

/// The tool that is meant, and the words that are its arguments.
struct Target<'a> {
    /// None: `tool` is the name that models use.
    server: Option<&'a String>,
    tool: &'a String,
    words: &'a [String],
}

impl<'a> Target<'a> {
    fn of(args: &'a CallArgs) -> Self {
        match args.rest.split_first() {
            Some((tool, words)) if !arguments::is_argument(tool) => {
                Self { server: Some(&args.target), tool, words }
            }
            _ => Self { server: None, tool: &args.target, words: &args.rest },
        }
    }

    /// What it is called while it runs.
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
    let Given { values, texts } = match given(target.words, stdin) {
        Ok(given) => given,
        Err(problem) => wrong_words(args, &target, &problem, shell).await?,
    };
    let is_empty = values.is_empty();
    let params = CallParams {
        agent_id: args.whose.agent.clone(),
        server: target.server.cloned(),
        tool: target.tool.clone(),
        args: if is_empty { None } else { to_raw_value(&values).ok() },
        texts: (!texts.is_empty()).then_some(texts),
        approve: Some(args.approve),
        timeout_ms: args.time.in_ms(),
        raw: Some(args.show.raw),
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
        // What was looked at is approved, and not what the tool may say by now.
        let fingerprint = Some(tool.fingerprint);
        let params = CallParams { approve: Some(true), fingerprint, ..params };
        called = shell.call(params, &target.shown()).await;
    }
    let outcome = called.map_err(in_time)?;
    let details = &outcome.details;
    let (server, name) = (details.server.as_deref(), details.tool.as_deref());
    let what = format!("{}/{}", server.unwrap_or_default(), outside(name.unwrap_or(target.tool)));
    let shown = answer::show(&outcome, &what, &args.show, output);
    outcome.warnings.iter().for_each(|warning| output.warning(warning));
    shown
}

/// Whether the tool says something else about itself than when it was approved.
fn is_changed(error: &AskError) -> bool {
    matches!(error, AskError::Refused(shape)
        if shape.detail().as_deref() == Some(detail::TOOL_CHANGED))
}

fn outside(name: &str) -> String {
    clean_line(Untrusted::new(name), NAME_CHARS)
}

fn given(words: &[String], stdin: &str) -> Result<Given, String> {
    let file = |path: &Path| arguments::read_text(std::fs::File::open(path)?);
    arguments::read(words, Sources { stdin, file: &file })
}

/// Words that are no arguments. Of a tool that is denied, that matters more: it is called without them.
async fn wrong_words(
    args: &CallArgs,
    target: &Target<'_>,
    problem: &str,
    shell: &Shell<'_>,
) -> Result<Given, CommandError> {
    let tool = described(args, target, shell).await?;
    if tool.is_some_and(|tool| tool.denied_by.is_some()) {
        return Ok(Given::default());
    }
    let server = target.server.map_or("SERVER", String::as_str);
    Err(CommandError::usage(problem)
        .hint(format!("run `openclaw mcp tools {server} --schema` to see the arguments")))
}

/// The tool as its server describes it now.
async fn described(
    args: &CallArgs,
    target: &Target<'_>,
    shell: &Shell<'_>,
) -> Result<Option<Tool>, CommandError> {
    let params = ListParams {
        agent_id: args.whose.agent.clone(),
        server: target.server.cloned(),
        tool: Some(target.tool.clone()),
        schema: Some(true),
        raw: None,
    };
    let server = target.server.map(String::as_str);
    let found = shell.ask::<rpc::McpTools>(params, server).await?;
    Ok(found.tools.into_iter().next())
}

/// Shows what a tool says about itself now, and asks.
async fn confirm(
    problem: &str,
    tool: &Tool,
    terminal: &Terminal,
    output: &mut Output,
) -> Result<(), CommandError> {
    output.warning(problem);
    let description = tool.description.as_deref().unwrap_or("(no description)");
    let description = clean_line(Untrusted::new(description), DESCRIPTION_CHARS);
    output.note(&format!("new description: {description}"));
    let schema = tool.input_schema.as_ref().map(ToString::to_string).unwrap_or_default();
    output.note(&format!("new schema: {schema}"));
    if terminal.confirm("Approve the changed tool and call it?").await {
        return Ok(());
    }
    Err(CommandError::new(Exit::Denied, "not approved; the tool was not called"))
}
