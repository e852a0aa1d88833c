//! Methods for sessions that depend on the caller: it follows them, or sends a message.

use openclaw_protocol::chat::{HistoryParams, HistoryResult, SendParams};
use openclaw_protocol::keys;
use openclaw_protocol::sessions::{
    CreateParams, CreateResult, GetParams, GetResult, ListParams, MessagesResult, PatchParams,
    SessionParams, SubscribeResult,
};

use super::{Reply, RequestContext, chat};
use crate::socket::random_hex;

/// Returns the list only if parameters are given.
pub(super) async fn subscribe(
    context: &RequestContext<'_>,
    params: Option<ListParams>,
) -> Reply<SubscribeResult> {
    context.caller.follow_all();
    let list = match params {
        None => None,
        Some(params) => Some(context.services.sessions.list(params).await?),
    };
    Ok(SubscribeResult { subscribed: true, list })
}

/// Subscribes to a session's events, or unsubscribes.
pub(super) fn follow(
    context: &RequestContext<'_>,
    params: &SessionParams,
    subscribed: bool,
) -> Reply<MessagesResult> {
    let key = context.session(&params.key, params.agent_id.as_deref())?;
    match subscribed {
        true => context.caller.follow(key.as_str()),
        false => context.caller.unfollow(key.as_str()),
    }
    Ok(MessagesResult { subscribed, key: key.to_string() })
}

pub(super) async fn history(
    context: &RequestContext<'_>,
    params: HistoryParams,
) -> Reply<HistoryResult> {
    let key = context.session(&params.session_key, params.agent_id.as_deref())?;
    context.caller.follow(key.as_str());
    context.services.sessions.history(&key, &params).await
}

/// The last messages of a session.
pub(super) async fn get(context: &RequestContext<'_>, params: GetParams) -> Reply<GetResult> {
    let GetParams { key, limit } = params;
    let params = HistoryParams { session_key: key, limit, ..HistoryParams::default() };
    Ok(GetResult { messages: history(context, params).await?.messages })
}

/// Creates a session, and sends its first message if there is one.
pub(super) async fn create(
    context: &RequestContext<'_>,
    params: CreateParams,
) -> Reply<CreateResult> {
    let agent = context.services.agents.id(params.agent_id.as_deref())?.to_string();
    let key = match &params.key {
        Some(key) if keys::agent_of(key).is_none() && key != keys::MAIN => {
            format!("agent:{agent}:{key}")
        }
        Some(key) => key.clone(),
        None => format!("agent:{agent}:{}", random_hex()),
    };
    let settings = PatchParams {
        key,
        agent_id: params.agent_id.clone(),
        label: params.label.or(params.display_name).map(Some),
        model: params.model.map(Some),
        permission_mode: params.permission_mode.map(Some),
    };
    let created = context.services.sessions.patch(settings).await?;
    let key = created.key;
    let message = params.message.or(params.task).unwrap_or_default();
    let is_empty = message.trim().is_empty() && params.attachments.is_none();
    let sent = if is_empty {
        None
    } else {
        let idempotency_key = params.idempotency_key.unwrap_or_else(random_hex);
        let sent = SendParams {
            session_key: key.clone(),
            agent_id: params.agent_id,
            message,
            attachments: params.attachments,
            idempotency_key,
            ..SendParams::default()
        };
        Some(chat::send(context, sent).await)
    };
    let (run_id, run_error) = match sent {
        Some(Ok(sent)) => (Some(sent.run_id), None),
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    let session_id = created.entry.session_id.clone();
    let run_started = run_id.is_some();
    let entry = created.entry;
    Ok(CreateResult { ok: true, key, session_id, entry, run_started, run_id, run_error })
}
