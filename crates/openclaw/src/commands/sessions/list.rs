//! `openclaw sessions list`: conversations, the latest first.

use comfy_table::{Attribute, Cell};
use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::sessions::{ListParams, ListResult, Row, SortBy};
use openclaw_protocol::{RequestError, rpc};
use serde_json::json;

use super::ago;
use crate::commands::link::{GatewayLink, look};
use crate::error::CommandResult;
use crate::exit::Exit;
use crate::output::Output;

/// The maximum length of a title.
const TITLE_CHARS: usize = 60;

pub(super) async fn list(
    link: &GatewayLink,
    agent: Option<&str>,
    search: Option<&str>,
    limit: u64,
    output: &mut Output,
) -> CommandResult {
    let params = ListParams { search: search.map(ToOwned::to_owned), ..params(agent, limit) };
    let listed: ListResult = link.look::<rpc::SessionsList>(params).await?;
    if output.json {
        output.value(&json!({ "count": listed.count, "sessions": listed.sessions }));
    } else if listed.sessions.is_empty() {
        output.line("No sessions. Run `openclaw chat` to start one.");
    } else {
        output.table(rows(&listed.sessions));
    }
    Ok(Exit::Ok)
}

fn params(agent: Option<&str>, limit: u64) -> ListParams {
    ListParams {
        limit: Some(limit),
        sort_by: Some(SortBy::UpdatedAt),
        include_derived_titles: Some(true),
        include_last_message: Some(true),
        agent_id: agent.map(ToOwned::to_owned),
        ..ListParams::default()
    }
}

/// Returns the latest conversations of an agent, or of all.
pub(crate) async fn latest(
    surface: &dyn openclaw_protocol::Surface,
    agent: Option<&str>,
    limit: u64,
) -> Result<Vec<Row>, RequestError> {
    let params = params(agent, limit);
    let answer = look::<rpc::SessionsList>(surface, params).await?;
    Ok(answer.sessions)
}

/// Formats conversations as table rows: key, time of the last change, title.
pub(crate) fn rows(sessions: &[Row]) -> Vec<Vec<Cell>> {
    sessions.iter().map(row).collect()
}

fn row(session: &Row) -> Vec<Cell> {
    let key = clean_line(Untrusted::new(&session.key), TITLE_CHARS);
    vec![
        Cell::new(key).add_attribute(Attribute::Bold),
        Cell::new(when(session).unwrap_or_default()),
        Cell::new(title(session).unwrap_or_default()),
    ]
}

/// Returns the title of a conversation: the one it was given, or the beginning of its messages.
pub(crate) fn title(session: &Row) -> Option<String> {
    let Row { label, display_name, derived_title, last_message_preview, .. } = session;
    let titles = [label, display_name, derived_title, last_message_preview];
    let titles = titles.into_iter().flatten();
    titles
        .map(|title| clean_line(Untrusted::new(title), TITLE_CHARS))
        .find(|title| !title.is_empty())
}

/// Formats the time of the last change, like [`ago`].
pub(crate) fn when(session: &Row) -> Option<String> {
    updated(session).map(ago)
}

/// Returns the time of the last change, in milliseconds since 1970.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time")]
pub(super) fn updated(session: &Row) -> Option<u64> {
    let time = session.updated_at.or(session.last_interaction_at)?;
    (time >= 0.0).then_some(time as u64)
}
