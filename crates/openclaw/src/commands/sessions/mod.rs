//! `openclaw sessions list | show | delete | export`.

mod export;
mod history;
mod list;
mod transcript;

use std::io::{self, BufRead as _};

use openclaw_protocol::rpc;
use openclaw_protocol::sessions::{
    DeleteParams, DeleteResult, DescribeParams, DescribeResult, Row,
};
use serde_json::json;

use super::elicitation::is_yes;
use super::link::{GatewayLink, GatewayTarget, with_records};
use super::talk::InputLines;
use crate::cli::{SessionsArgs, SessionsCommand};
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::exit::Exit;
use crate::output::{Output, plural, printable};
use crate::prompt::OpenQuestion;
use crate::typed_ahead;
use openclaw_terminal::style::GOOD;

pub(crate) use list::{latest, rows, title, when};

/// Runs the subcommand.
pub(crate) fn sessions(args: &SessionsArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let target = GatewayTarget::find(&args.gateway, edge)?;
    with_records(&target, edge, output, async |link, output| match &args.command {
        SessionsCommand::List { agent, search, limit } => {
            list::list(link, agent.as_deref(), search.as_deref(), limit.get(), output).await
        }
        SessionsCommand::Show { key, last } => {
            show(link, key, last.map(std::num::NonZeroU64::get), output).await
        }
        SessionsCommand::Delete { key, yes } => delete(link, key, *yes, edge, output).await,
        SessionsCommand::Export { key, format } => export::export(link, key, *format, output).await,
    })
}

async fn show(
    link: &GatewayLink,
    key: &str,
    last: Option<u64>,
    output: &mut Output,
) -> CommandResult {
    let row = find(link, key).await?;
    let messages = history::read(link, key, last, history::Media::Described).await?;
    if output.json {
        output.value(&json!({ "session": row, "messages": messages }));
    } else {
        transcript::show(&row, &messages, output);
    }
    Ok(Exit::Ok)
}

/// Returns the conversation with this key.
async fn find(link: &GatewayLink, key: &str) -> Result<Row, CommandError> {
    let params = DescribeParams {
        key: key.to_owned(),
        include_derived_titles: Some(true),
        include_last_message: None,
    };
    let found: DescribeResult = link.look::<rpc::SessionsDescribe>(params).await?;
    found.session.ok_or_else(|| {
        CommandError::failed(format!("no session `{key}`"))
            .hint("run `openclaw sessions list` to list them")
    })
}

async fn delete(
    link: &GatewayLink,
    key: &str,
    yes: bool,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    find(link, key).await?;
    let question = format!("Delete the session {} and all its messages?", printable(key));
    let way_out = "use `--yes` to delete without confirmation";
    let is_agreed = yes || {
        ask(&question, way_out, edge, output)?;
        answered_yes().await
    };
    if !is_agreed {
        output.line("Nothing was deleted.");
        return Ok(Exit::Failed);
    }
    let params = DeleteParams {
        key: key.to_owned(),
        delete_transcript: Some(true),
        ..DeleteParams::default()
    };
    let answer: DeleteResult = link.look::<rpc::SessionsDelete>(params).await?;
    if output.json {
        output.value(&json!({ "ok": answer.deleted, "key": answer.key }));
    } else if answer.deleted {
        output.line(format_args!("{GOOD}✓{GOOD:#} deleted {}", printable(key)));
    }
    match answer.deleted {
        true => Ok(Exit::Ok),
        false => Err(CommandError::failed(format!("`{key}` was not deleted"))),
    }
}

/// Like [`ask`], and waits for the answer. Blocks: for commands that do not handle signals.
pub(super) fn agree(
    question: &str,
    way_out: &str,
    edge: &Edge,
    output: &mut Output,
) -> Result<bool, CommandError> {
    ask(question, way_out, edge, output)?;
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    Ok(read.is_ok() && is_yes(&answer))
}

/// Waits for the answer to a question, without blocking. Cancel-safe.
async fn answered_yes() -> bool {
    let open = OpenQuestion::new();
    let Some(answer) = InputLines::of_stdin().next().await.ok().flatten() else { return false };
    open.answered();
    is_yes(&answer)
}

/// Shows a question; `way_out` is the hint if there is no terminal.
fn ask(
    question: &str,
    way_out: &str,
    edge: &Edge,
    output: &mut Output,
) -> Result<(), CommandError> {
    if !edge.has_user() {
        return Err(CommandError::usage("no terminal to confirm on").hint(way_out));
    }
    typed_ahead::forget();
    output.prompt(&format!("{question} [y/N] "));
    Ok(())
}

/// Formats a past time: "now", "5 min ago", "3 h ago", "2 days ago".
pub(crate) fn ago(time_ms: u64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = u64::try_from(now.unwrap_or_default().as_millis()).unwrap_or(u64::MAX);
    match now.saturating_sub(time_ms) / 1_000 {
        0..60 => "now".to_owned(),
        seconds @ 60..7_200 => format!("{} min ago", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h ago", seconds / 3_600),
        seconds => format!("{} ago", plural(usize::try_from(seconds / 86_400).unwrap_or(0), "day")),
    }
}
