//! Methods that list, describe and delete sessions.

use std::time::{SystemTime, UNIX_EPOCH};

use openclaw_protocol::sessions::{
    Defaults, DeleteParams, DeleteResult, DescribeParams, DescribeResult, Kind, ListParams,
    ListResult, Row, RunStatus, SubscribeResult,
};
use openclaw_protocol::{ErrorShape, keys};
use openclaw_sessions::{ListFilter, MAX_LISTED, Session, StoreError};

use super::RequestContext;
use crate::gateway::now_ms;

/// Default number of sessions listed.
const USUAL: usize = 100;

pub(super) async fn list(
    asked: &RequestContext<'_>,
    params: ListParams,
) -> Result<ListResult, ErrorShape> {
    let number = |it: Option<u64>| it.and_then(|it| usize::try_from(it).ok());
    let limit = number(params.limit).unwrap_or(USUAL).clamp(1, MAX_LISTED);
    let offset = number(params.offset).unwrap_or(0);
    // A match may be far down the list.
    let is_filtered = params.search.is_some() || params.active_minutes.is_some();
    let needed = if is_filtered { MAX_LISTED } else { limit.saturating_add(offset) };
    let filter = ListFilter { agent: params.agent_id, limit: needed.min(MAX_LISTED), before: None };
    let sessions = asked.gateway.store.list(filter).await.map_err(told)?;
    let since = params.active_minutes.map(|minutes| {
        let ago = std::time::Duration::from_secs(minutes.saturating_mul(60));
        SystemTime::now().checked_sub(ago).unwrap_or(UNIX_EPOCH)
    });
    let wanted = params.search.map(|words| words.to_lowercase());
    let is_wanted = |session: &Session| {
        since.is_none_or(|since| session.updated_at >= since)
            && wanted.as_deref().is_none_or(|words| {
                let title = session.title.as_deref().unwrap_or_default();
                session.key.as_str().to_lowercase().contains(words)
                    || title.to_lowercase().contains(words)
            })
    };
    let rows = sessions.iter().filter(|session| is_wanted(session)).skip(offset).take(limit);
    let rows: Vec<Row> = rows.map(|session| row(asked, session)).collect();
    Ok(ListResult {
        ts: now_ms(),
        path: asked.gateway.state.join("sessions.db").display().to_string(),
        count: rows.len() as u64,
        defaults: Defaults::default(),
        sessions: rows,
    })
}

pub(super) async fn describe(
    asked: &RequestContext<'_>,
    params: DescribeParams,
) -> Result<DescribeResult, ErrorShape> {
    let key = asked.session(&params.key, None)?;
    let session = asked.gateway.store.get(&key).await.map_err(told)?;
    Ok(DescribeResult { session: session.map(|session| row(asked, &session)) })
}

/// Returns the list only if parameters are given.
pub(super) async fn subscribe(
    asked: &RequestContext<'_>,
    params: Option<ListParams>,
) -> Result<SubscribeResult, ErrorShape> {
    asked.caller.follow_all();
    let list = match params {
        None => None,
        Some(params) => Some(list(asked, params).await?),
    };
    Ok(SubscribeResult { subscribed: true, list })
}

pub(super) async fn delete(
    asked: &RequestContext<'_>,
    params: DeleteParams,
) -> Result<DeleteResult, ErrorShape> {
    let key = asked.session(&params.key, None)?;
    if asked.gateway.runs.is_active(key.as_str()) {
        let words = "a turn of this session is running; abort it first with `chat.abort`";
        return Err(ErrorShape::unavailable(words));
    }
    let deleted = asked.gateway.store.delete(&key).await.map_err(told)?;
    Ok(DeleteResult { ok: true, key: key.to_string(), deleted, archived: Vec::new() })
}

fn row(asked: &RequestContext<'_>, session: &Session) -> Row {
    let ms =
        |at: SystemTime| at.duration_since(UNIX_EPOCH).ok().map(|it| it.as_secs_f64() * 1_000.0);
    let is_running = asked.gateway.runs.is_active(session.key.as_str());
    Row {
        key: session.key.as_str().to_owned(),
        kind: Kind::Direct,
        session_id: None,
        label: None,
        display_name: session.title.clone(),
        derived_title: None,
        last_message_preview: None,
        channel: None,
        agent_id: Some(session.agent.clone()),
        is_main: Some(session.key.as_str() == keys::main_of(&session.agent)),
        created_at: ms(session.created_at).map(f64::floor),
        updated_at: ms(session.updated_at).map(f64::floor),
        last_interaction_at: None,
        archived: None,
        status: Some(if is_running { RunStatus::Running } else { RunStatus::Done }),
        last_run_error: None,
        last_run_id: None,
        spawned_by: None,
        input_tokens: None,
        output_tokens: None,
        total_tokens: None,
        context_tokens: None,
        model: session.model.clone(),
        model_provider: None,
    }
}

/// Converts an error of the store for a caller.
#[allow(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
pub(super) fn told(error: StoreError) -> ErrorShape {
    tracing::warn!(%error, "session store failed");
    ErrorShape::unavailable(error.to_string())
}
