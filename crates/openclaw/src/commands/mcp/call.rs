//! `openclaw mcp call`: one tool, once, for a person at the shell.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::bridge::{Approved, Call, Wishes};
use openclaw_mcp::catalogue::CatalogueTool;
use openclaw_mcp::inventory::LeftOut;
use openclaw_mcp::pins::Pin;
use openclaw_tools::Approval;
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::{Instant, timeout};

use super::answer;
use super::arguments::{self, Sources};
use super::host::{Need, Session, unknown_server, with_session};
use crate::cli::CallArgs;
use crate::edge::Edge;
use crate::exit::Exit;
use crate::output::Output;

/// Who calls, in the audit log.
pub(super) const WHO: &str = "shell";
/// How much of a tool's name is shown.
const NAME_CHARS: usize = 100;
/// How much of a description is shown to somebody who decides about it.
const DESCRIPTION_CHARS: usize = 2_000;

pub(super) fn call(args: &CallArgs, flag: Option<&Path>, edge: &Edge, output: &mut Output) -> Exit {
    let need = Need {
        answers: true,
        timeout: args.timeout.map(|ms| Duration::from_millis(ms.get())),
        ..Need::of(&args.whose)
    };
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
    with_session(need, flag, edge, output, async |session, output| {
        carry_out(args, &stdin, session, output).await.unwrap_or_else(|exit| exit)
    })
}

async fn carry_out(
    args: &CallArgs,
    stdin: &str,
    session: &Session,
    output: &mut Output,
) -> Result<Exit, Exit> {
    let all = args.timeout.map(|ms| Duration::from_millis(ms.get()));
    let started = Instant::now();
    let (tool, words) = match all {
        Some(all) => match timeout(all, find(args, session, output)).await {
            Ok(found) => found?,
            Err(_) => return Err(too_late(all, output)),
        },
        None => find(args, session, output).await?,
    };
    // How long somebody thinks about an approval does not count.
    let within = all.map(|all| all.saturating_sub(started.elapsed()));
    let arguments = match tool.is_allowed() {
        true => read_arguments(&tool, words, stdin, output)?,
        // Whatever they are, it is not called with them.
        false => RawValue::NULL.to_owned(),
    };
    approve(&tool, args.approve, session, output).await?;
    let approved = Some(Approved { fingerprint: *tool.fingerprint(), how: Approval::Once });
    let name = tool.spec.name.as_str();
    let call = Call { name, arguments: &arguments, who: WHO, session: None, approved };
    let wishes = Wishes { within, everything: true, ..Wishes::default() };
    let name = clean_line(Untrusted::new(&tool.listed().name), NAME_CHARS);
    let what = format!("{}/{name}", tool.server().name());
    let outcome = session.call(call, wishes, &what).await;
    Ok(answer::show(&outcome, &what, &args.show, output))
}

fn too_late(after: Duration, output: &mut Output) -> Exit {
    let message =
        format!("nothing was called: the server was not ready after {} ms", after.as_millis());
    output.problem(&message, Some("`--timeout MS` gives it longer"));
    Exit::TimedOut
}

fn read_arguments(
    tool: &CatalogueTool,
    words: &[String],
    stdin: &str,
    output: &mut Output,
) -> Result<Box<RawValue>, Exit> {
    let arguments = arguments::read(
        words,
        &tool.listed().input_schema,
        Sources { stdin, file: &|path| arguments::read_text(std::fs::File::open(path)?) },
    );
    let arguments = arguments.and_then(|arguments| {
        to_raw_value(&arguments).map_err(|error| format!("the arguments cannot be sent: {error}"))
    });
    arguments.map_err(|problem| {
        let server = tool.server().name();
        let hint = format!("`openclaw mcp tools {server} --schema` shows what tools take");
        output.problem(&problem, Some(&hint));
        Exit::Usage
    })
}

/// The tool that is meant, its server ready; and the words that are its arguments.
async fn find<'a>(
    args: &'a CallArgs,
    session: &Session,
    output: &mut Output,
) -> Result<(Arc<CatalogueTool>, &'a [String]), Exit> {
    let target = args.target.as_str();
    if session.knows(target) {
        let Some((tool, words)) = args.rest.split_first() else {
            let hint = format!("`openclaw mcp tools {target}` shows what it has");
            output.problem("which tool?", Some(&hint));
            return Err(Exit::Usage);
        };
        session.ready(target, output).await?;
        let catalogue = session.tools.catalogue();
        let found = catalogue.find(target, tool);
        let by_name = || catalogue.get(tool).filter(|it| it.server().name().as_str() == target);
        return match found.or_else(by_name) {
            Some(tool) => Ok((Arc::clone(tool), words)),
            None => Err(unknown_tool(target, tool, session, output)),
        };
    }
    // A single name that is no server's: the whole name of a tool. Where it is remembered whose it is,
    // only that server starts; otherwise it has to be looked for.
    if !args.rest.iter().all(|word| arguments::is_argument(word)) {
        return Err(unknown_server(target, &session.names(), output));
    }
    let remembered = session.tools.catalogue().get(target).map(Arc::clone);
    match remembered {
        Some(tool) => drop(session.ready(tool.server().name().as_str(), output).await?),
        None => drop(session.gather(None, output).await?),
    }
    let catalogue = session.tools.catalogue();
    match catalogue.get(target) {
        Some(tool) => Ok((Arc::clone(tool), &args.rest)),
        None if session.tools.left_out(target).is_some() => Err(left_out(target, session, output)),
        None => {
            let mut known: Vec<&str> =
                catalogue.all().iter().map(|tool| tool.spec.name.as_str()).collect();
            known.extend(session.names());
            let hint = match openclaw_config::nearest(target, &known) {
                Some(similar) => format!("did you mean `{similar}`?"),
                None => "`openclaw mcp tools` shows what there is".to_owned(),
            };
            let message = format!("there is no server and no tool `{target}`");
            output.problem(&message, Some(&hint));
            Err(Exit::Usage)
        }
    }
}

/// A tool that its server lists, and that cannot be used.
fn left_out(name: &str, session: &Session, output: &mut Output) -> Exit {
    if let Some((server, LeftOut { name, reason, .. })) = session.tools.left_out(name) {
        let name = clean_line(Untrusted::new(&name), NAME_CHARS);
        let hint = format!("whoever makes `{server}` must put that right");
        output.problem(
            &format!("`{name}` of `{server}` cannot be called, and is left out: {reason}"),
            Some(&hint),
        );
    }
    Exit::Failed
}

fn unknown_tool(server: &str, tool: &str, session: &Session, output: &mut Output) -> Exit {
    let of_server = |(owner, _): &(String, LeftOut)| owner == server;
    if session.tools.left_out(tool).is_some_and(|it| of_server(&it)) {
        return left_out(tool, session, output);
    }
    let catalogue = session.tools.catalogue();
    let known: Vec<&str> = catalogue
        .all()
        .iter()
        .filter(|tool| tool.server().name().as_str() == server)
        .map(|tool| tool.listed().name.as_str())
        .collect();
    let hint = match openclaw_config::nearest(tool, &known) {
        Some(similar) => {
            format!("did you mean `{}`?", clean_line(Untrusted::new(similar), NAME_CHARS))
        }
        None => format!("`openclaw mcp tools {server}` shows what it has"),
    };
    output.problem(&format!("`{server}` has no tool `{tool}`"), Some(&hint));
    Exit::Usage
}

/// Whether the call is an approval (B13). Who calls a tool by hand means it as it is; one that has
/// changed since it was approved needs another look.
async fn approve(
    tool: &CatalogueTool,
    flag: bool,
    session: &Session,
    output: &mut Output,
) -> Result<(), Exit> {
    let Some(pins) = &session.pins else { return Ok(()) };
    let (server, name) = (tool.server().name().as_str(), tool.listed().name.as_str());
    let pin = pins.check(server, name, tool.fingerprint());
    // What is denied is denied by the call itself.
    if flag || !tool.is_allowed() || !matches!(pin, Pin::Changed { .. }) {
        return Ok(());
    }
    let shown = clean_line(Untrusted::new(name), NAME_CHARS);
    let message = format!(
        "`{shown}` of `{server}` says something else about itself than when it was approved: its \
         description or its schema has changed"
    );
    let Some(terminal) = &session.terminal else {
        let hint = format!(
            "look at it with `openclaw mcp tools {server} --schema`; `--approve` approves it"
        );
        output.problem(&message, Some(&hint));
        return Err(Exit::Denied);
    };
    output.warning(&message);
    let description = tool.listed().description.as_deref().unwrap_or("(no description)");
    let description = clean_line(Untrusted::new(description), DESCRIPTION_CHARS);
    output.note(&format!("it now says: {description}"));
    output.note(&format!("and takes: {}", tool.spec.input_schema));
    if terminal.confirm("Approve it as it is now, and call it?").await {
        return Ok(());
    }
    output.problem("it was not approved, and not called", None);
    Err(Exit::Denied)
}
