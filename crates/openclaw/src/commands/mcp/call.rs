//! `openclaw mcp call`: one tool, once, for a person at the shell.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use openclaw_content::{Untrusted, clean_line};
use openclaw_gateway::mcp::{self, Hand, Problem, ProblemKind, ToolsWanted};
use openclaw_mcp::catalogue::CatalogueTool;
use openclaw_protocol::mcp::{CallParams, ListParams, Outcome, Tool, ToolsResult};
use openclaw_protocol::rpc;
use openclaw_tools::pipeline::{NotMade, One, Refusal};
use openclaw_tools::{Call, CallContext, CallOptions, Consent, Failure};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout};

use super::answer;
use super::arguments::{self, Sources};
use super::beside::{Gateway, beside, tell};
use super::host::{Need, Session, Terminal, somebody, unknown_server, with_session};
use crate::cli::{CallArgs, TimeArgs};
use crate::edge::Edge;
use crate::exit::Exit;
use crate::output::Output;

/// Who calls, in the audit log.
const WHO: &str = "shell";
/// Who types a command decides about it.
pub(super) const HAND: Hand<'static> = Hand { who: WHO, decides: true, watcher: None };
/// How much of a tool's name is shown.
const NAME_CHARS: usize = 100;
/// How much of a description is shown to somebody who decides about it.
const DESCRIPTION_CHARS: usize = 2_000;

pub(super) fn call(args: &CallArgs, flag: Option<&Path>, edge: &Edge, output: &mut Output) -> Exit {
    if let Err(exit) = answer::check(&args.show, output) {
        return exit;
    }
    // Before anything starts: nothing else happens while somebody types.
    let is_piped = args.rest.last().is_some_and(|word| word == "-");
    let stdin = is_piped.then(|| arguments::read_text(std::io::stdin().lock()));
    let stdin = match stdin.transpose() {
        Ok(stdin) => stdin.unwrap_or_default(),
        Err(error) => {
            output.problem(&format!("stdin cannot be read: {error}"), None);
            return Exit::Failed;
        }
    };
    let terminal = somebody(edge, output);
    let exit = beside(&args.by, flag, edge, output, async |gateway, output| {
        have_it_called(args, &stdin, gateway, terminal.as_ref(), output).await
    });
    exit.unwrap_or_else(|| {
        let need = Need { answers: true, timeout: args.time.all(), ..Need::of(&args.whose) };
        with_session(need, flag, edge, output, async |session, output| {
            carry_out(args, &stdin, session, output).await.unwrap_or_else(|exit| exit)
        })
    })
}

/// Has a gateway call the tool. Unless its schema is needed to read the arguments, that is all it is
/// asked for.
async fn have_it_called(
    args: &CallArgs,
    stdin: &str,
    gateway: &Gateway,
    terminal: Option<&Terminal>,
    output: &mut Output,
) -> Result<Exit, Exit> {
    let (server, tool, words) = match args.rest.split_first() {
        Some((tool, words)) if !arguments::is_argument(tool) => (Some(&args.target), tool, words),
        _ => (None, &args.target, &args.rest[..]),
    };
    let described = ListParams {
        agent_id: args.whose.agent.clone(),
        server: server.cloned(),
        tool: Some(tool.clone()),
        schema: Some(true),
        raw: None,
    };
    let needs_schema = |word: &String| word != "-" && !word.trim_start().starts_with('{');
    let mut schema = Map::new();
    if words.iter().any(needs_schema) {
        let params = ListParams { raw: Some(true), ..described.clone() };
        let found: ToolsResult = gateway.ask::<rpc::McpTools>(params, output).await?;
        let found = found.tools.into_iter().next().and_then(|tool| tool.input_schema);
        if let Some(Value::Object(found)) = found {
            schema = found;
        }
    }
    let owner = server.map_or("SERVER", |server| server.as_str());
    let params = CallParams {
        agent_id: args.whose.agent.clone(),
        server: server.cloned(),
        tool: tool.clone(),
        args: Some(read_arguments(&schema, owner, words, stdin, output)?),
        session_key: None,
        approve: None,
        fingerprint: None,
        timeout_ms: args.time.in_ms(),
        raw: Some(args.show.raw),
    };
    let mut called: Result<Outcome, Problem> =
        gateway.try_ask::<rpc::McpCall>(params.clone()).await;
    if let Err(problem) = &called
        && problem.kind == ProblemKind::Changed
        && (args.approve || terminal.is_some())
    {
        let found: ToolsResult = gateway.ask::<rpc::McpTools>(described, output).await?;
        let Some(tool) = found.tools.first() else { return Err(tell(problem, output)) };
        if let (false, Some(terminal)) = (args.approve, terminal) {
            confirm(problem, tool, terminal, output).await?;
        }
        // What was looked at is approved, and not what the tool may say by now.
        let fingerprint = Some(tool.fingerprint.clone());
        let params = CallParams { approve: Some(true), fingerprint, ..params };
        called = gateway.try_ask::<rpc::McpCall>(params).await;
    }
    let outcome = called.map_err(|problem| tell(&problem, output))?;
    let details = &outcome.details;
    let (server, name) = (details.server.as_deref(), details.tool.as_deref());
    let what = format!("{}/{}", server.unwrap_or_default(), outside(name.unwrap_or(tool)));
    Ok(answer::show(&outcome, &what, &args.show, output))
}

async fn carry_out(
    args: &CallArgs,
    stdin: &str,
    session: &Session,
    output: &mut Output,
) -> Result<Exit, Exit> {
    let all = args.time.all();
    let started = Instant::now();
    let found = match all {
        Some(all) => match timeout(all, find(args, session, output)).await {
            Ok(found) => found,
            Err(_) => Err(too_late(all, output)),
        },
        None => find(args, session, output).await,
    };
    let (tool, words) = match found {
        Ok(found) => found,
        Err(exit) => {
            write_down(exit, args, stdin, session).await;
            return Err(exit);
        }
    };
    let left = all.map(|all| all.saturating_sub(started.elapsed()));
    let server = tool.server().name().as_str();
    let arguments = match tool.is_allowed() {
        true => read_arguments(&tool.listed().input_schema, server, words, stdin, output)?,
        false => denied_arguments(&tool.listed().input_schema, words, stdin),
    };
    let call = Call::new(tool.spec.name.as_str(), &*arguments);
    let agent = Some(session.tools.id().as_str());
    let mut context = CallContext { agent, ..CallContext::by_hand(WHO) };
    let is_asked_for = match approve(&tool, args.approve, session, output).await {
        Ok(is_asked_for) => is_asked_for,
        Err(exit) => {
            // It is logged as what it is: a call of a tool that has changed, and was not approved.
            session.tools.pipeline().call(&One(Arc::clone(&tool) as _), call, &context).await;
            return Err(exit);
        }
    };
    let seen = Some(*tool.fingerprint());
    context.consent = Consent::Caller { seen, approves_change: is_asked_for };
    // How long somebody thinks about an approval does not count.
    let deadline = left.map(|left| Instant::now() + left);
    context.options = CallOptions { deadline, everything: true, ..CallOptions::default() };
    let what = format!("{server}/{}", outside(&tool.listed().name));
    let outcome = session.call(Arc::clone(&tool), call, context, &what).await;
    let exit = answer::show(&mcp::outcome(outcome, args.show.raw), &what, &args.show, output);
    // Whoever only calls a new tool is asked about it neither now nor next time.
    if is_asked_for && let Err(unsaved) = session.tools.approvals_saved().await {
        output.warning(&format!("approved for this call only: {unsaved}"));
    }
    Ok(exit)
}

/// Writes down a call whose tool was not found because its server is not there, or not in time.
async fn write_down(exit: Exit, args: &CallArgs, stdin: &str, session: &Session) {
    let failure = match exit {
        Exit::Unavailable => Failure::Unavailable,
        Exit::TimedOut => Failure::TimedOut,
        _ => Failure::Denied,
    };
    let target = args.target.as_str();
    let (server, name, words) = match args.rest.split_first() {
        Some((tool, words)) if session.knows(target) => (Some(target), tool.as_str(), words),
        _ => (None, target, &args.rest[..]),
    };
    let known = mcp::known(&session.tools, server, name);
    let nothing = Map::new();
    let schema = known.as_ref().map_or(&nothing, |tool| &*tool.listed().input_schema);
    let arguments = denied_arguments(schema, words, stdin);
    let refusal = || {
        let refusal = Refusal::new(failure, "not called");
        match &known {
            Some(tool) => refusal
                .at(tool.server().name().as_str(), &tool.listed().name)
                .called(tool.spec.name.as_str()),
            None => refusal.at(server.unwrap_or_default(), server.map_or("", |_| name)),
        }
    };
    let agent = Some(session.tools.id().as_str());
    let context = CallContext { agent, ..CallContext::by_hand(WHO) };
    let call = Call::new(name, &*arguments);
    session.tools.pipeline().call(&NotMade(refusal), call, &context).await;
}

fn outside(name: &str) -> String {
    clean_line(Untrusted::new(name), NAME_CHARS)
}

/// Waits for a server; how much time is left, if it is limited.
pub(super) async fn ready_in_time(
    server: &str,
    time: &TimeArgs,
    session: &Session,
    output: &mut Output,
) -> Result<Option<Duration>, Exit> {
    let Some(all) = time.all() else {
        session.ready(server, output).await?;
        return Ok(None);
    };
    let started = Instant::now();
    match timeout(all, session.ready(server, output)).await {
        Ok(ready) => drop(ready?),
        Err(_) => return Err(too_late(all, output)),
    }
    Ok(Some(all.saturating_sub(started.elapsed())))
}

fn too_late(after: Duration, output: &mut Output) -> Exit {
    let message =
        format!("nothing was called: the server was not ready after {} ms", after.as_millis());
    output.problem(&message, Some("`--timeout MS` gives it longer"));
    Exit::TimedOut
}

fn read_arguments(
    schema: &Map<String, Value>,
    server: &str,
    words: &[String],
    stdin: &str,
    output: &mut Output,
) -> Result<Box<RawValue>, Exit> {
    arguments_of(schema, words, stdin).map_err(|problem| {
        let hint = format!("`openclaw mcp tools {server} --schema` shows what tools take");
        output.problem(&problem, Some(&hint));
        Exit::Usage
    })
}

fn arguments_of(
    schema: &Map<String, Value>,
    words: &[String],
    stdin: &str,
) -> Result<Box<RawValue>, String> {
    let file = |path: &Path| arguments::read_text(std::fs::File::open(path)?);
    let arguments = arguments::read(words, schema, Sources { stdin, file: &file })?;
    to_raw_value(&arguments).map_err(|error| format!("the arguments cannot be sent: {error}"))
}

/// Those of a tool that is not called with them: they are only written down. Where they make no sense,
/// the words are: that the tool is denied matters more.
fn denied_arguments(schema: &Map<String, Value>, words: &[String], stdin: &str) -> Box<RawValue> {
    let given = arguments_of(schema, words, stdin);
    given.or_else(|_| to_raw_value(words)).unwrap_or_default()
}

/// The tool that is meant, its server ready; and the words that are its arguments.
async fn find<'a>(
    args: &'a CallArgs,
    session: &Session,
    output: &mut Output,
) -> Result<(Arc<CatalogueTool>, &'a [String]), Exit> {
    let target = args.target.as_str();
    let (found, words) = if session.knows(target) {
        let Some((tool, words)) = args.rest.split_first() else {
            let hint = format!("`openclaw mcp tools {target}` shows what it has");
            output.problem("which tool?", Some(&hint));
            return Err(Exit::Usage);
        };
        session.ready(target, output).await?;
        (mcp::find(&session.tools, Some(target), tool).await, words)
    } else {
        // A single name that is no server's: the whole name of a tool. Where it is remembered whose it
        // is, only that server starts; otherwise it has to be looked for.
        if !args.rest.iter().all(|word| arguments::is_argument(word)) {
            return Err(unknown_server(target, &session.names(), output));
        }
        let remembered = session.tools.catalogue().get(target).map(Arc::clone);
        match remembered {
            Some(tool) => drop(session.ready(tool.server().name().as_str(), output).await?),
            None => {
                let gathered = session.gather(None, output).await?;
                super::tools::tell_missing(&gathered.missing, output);
            }
        }
        (mcp::find(&session.tools, None, target).await, &args.rest[..])
    };
    found.map(|tool| (tool, words)).map_err(|problem| tell(&problem, output))
}

/// Whether the call is an approval (B13): says whether somebody asked for one. Who calls a tool by hand
/// means it as it is; one that has changed since it was approved needs another look.
async fn approve(
    tool: &CatalogueTool,
    flag: bool,
    session: &Session,
    output: &mut Output,
) -> Result<bool, Exit> {
    // What is denied is denied by the call itself.
    if flag || !tool.is_allowed() || !tool.is_changed() {
        return Ok(flag);
    }
    let problem = mcp::changed(tool);
    let Some(terminal) = &session.terminal else { return Err(tell(&problem, output)) };
    let wanted = ToolsWanted { schema: true, raw: false };
    let shown = mcp::one_tool(tool, wanted);
    match shown.tools.first() {
        Some(shown) => confirm(&problem, shown, terminal, output).await.map(|()| true),
        None => Err(tell(&problem, output)),
    }
}

/// Shows what a tool says about itself now, and asks.
async fn confirm(
    problem: &Problem,
    tool: &Tool,
    terminal: &Terminal,
    output: &mut Output,
) -> Result<(), Exit> {
    output.warning(&problem.message);
    let description = tool.description.as_deref().unwrap_or("(no description)");
    let description = clean_line(Untrusted::new(description), DESCRIPTION_CHARS);
    output.note(&format!("it now says: {description}"));
    let schema = tool.input_schema.as_ref().map(ToString::to_string).unwrap_or_default();
    output.note(&format!("and takes: {schema}"));
    if terminal.confirm("Approve it as it is now, and call it?").await {
        return Ok(());
    }
    output.problem("it was not approved, and not called", None);
    Err(Exit::Denied)
}
