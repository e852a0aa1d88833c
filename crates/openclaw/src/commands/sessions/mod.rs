//! `openclaw sessions list | show | delete | export`.

mod export;
mod history;
mod list;
mod transcript;

use std::io::{self, BufRead as _};
use std::path::Path;

use openclaw_protocol::sessions::{
    DeleteParams, DeleteResult, DescribeParams, DescribeResult, Row,
};
use openclaw_protocol::{AskError, Method};
use serde_json::json;

use super::link::{Link, tell, with_records};
use crate::cli::SessionsCommand;
use crate::edge::Edge;
use crate::exit::Exit;
use crate::output::{GOOD, Output, plural, printable};
use crate::typed_ahead;

pub(crate) use list::{latest, rows};

/// Runs the verb that was asked for.
pub(crate) fn sessions(
    command: &SessionsCommand,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
) -> Exit {
    with_records(flag, edge, output, async |link, output| match command {
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

async fn show(link: &Link, key: &str, last: Option<u64>, output: &mut Output) -> Exit {
    let row = match find(link, key, output).await {
        Ok(row) => row,
        Err(exit) => return exit,
    };
    let messages = match history::read(link, key, last, history::Media::Described).await {
        Ok(messages) => messages,
        Err(error) => return tell(&error, output),
    };
    if output.json {
        output.value(&json!({ "session": row, "messages": messages }));
    } else {
        transcript::show(&row, &messages, output);
    }
    Exit::Ok
}

/// The conversation of a key; that there is none is told.
async fn find(link: &Link, key: &str, output: &mut Output) -> Result<Row, Exit> {
    let params = DescribeParams {
        key: key.to_owned(),
        include_derived_titles: Some(true),
        include_last_message: None,
    };
    let answer: Result<DescribeResult, AskError> =
        link.look(Method::SessionsDescribe, &params).await;
    let found = answer.map_err(|error| tell(&error, output))?.session;
    found.ok_or_else(|| {
        let hint = "`openclaw sessions list` lists them";
        output.problem(&format!("there is no conversation `{key}`"), Some(hint));
        Exit::Failed
    })
}

async fn delete(link: &Link, key: &str, yes: bool, edge: &Edge, output: &mut Output) -> Exit {
    if let Err(exit) = find(link, key, output).await {
        return exit;
    }
    if !yes {
        if !edge.has_person() {
            output.problem("nobody can be asked", Some("`--yes` deletes it without asking"));
            return Exit::Usage;
        }
        let key = printable(key);
        typed_ahead::forget();
        output.prompt(&format!("Delete the conversation {key}, with all that was said? [y/N] "));
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer);
        if read.is_err() || !matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
            output.line("Nothing was deleted.");
            return Exit::Failed;
        }
    }
    let params = DeleteParams {
        key: key.to_owned(),
        delete_transcript: Some(true),
        ..DeleteParams::default()
    };
    let answer: Result<DeleteResult, AskError> = link.look(Method::SessionsDelete, &params).await;
    match answer {
        Ok(answer) if output.json => {
            output.value(&json!({ "ok": answer.deleted, "key": answer.key }));
            if answer.deleted { Exit::Ok } else { Exit::Failed }
        }
        Ok(DeleteResult { deleted: true, .. }) => {
            output.line(format_args!("{GOOD}✓{GOOD:#} {} is deleted", printable(key)));
            Exit::Ok
        }
        Ok(_) => {
            output.problem(&format!("`{key}` was not deleted"), None);
            Exit::Failed
        }
        Err(error) => tell(&error, output),
    }
}

/// "now", "5 min ago", "3 h ago", "2 days ago"
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
