//! Methods that create and reset sessions.

use openclaw_protocol::chat::SendParams;
use openclaw_protocol::keys;
use openclaw_protocol::sessions::{
    CreateParams, CreateResult, PatchParams, ResetResult, SessionParams,
};
use openclaw_sessions::SessionField;

use super::chat::service;
use super::sessions::{announce, check_idle, patch, row, store_error};
use super::{Reply, RequestContext, chat};
use crate::socket::random_hex;

/// Creates a session, and sends its first message if there is one.
pub(super) async fn create(
    asked: &RequestContext<'_>,
    params: CreateParams,
) -> Reply<CreateResult> {
    let agent = asked.agent_id(params.agent_id.as_deref())?.to_string();
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
    let created = patch(asked, settings).await?;
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
        Some(chat::send(asked, sent).await)
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

/// Deletes the messages of a session and keeps its settings. `run` is the message that asks for it,
/// if it is one of the session.
pub(crate) async fn reset(
    asked: &RequestContext<'_>,
    params: SessionParams,
    run: Option<&str>,
) -> Reply<ResetResult> {
    let key = asked.session(&params.key, params.agent_id.as_deref())?;
    check_idle(asked, &key, run)?;
    let service = service(asked, &key, params.agent_id.as_deref()).await?;
    let store = &asked.gateway.store;
    let before = store.get(&key).await.map_err(store_error)?;
    store.delete(&key).await.map_err(store_error)?;
    let mut session = store.open(&key, service.config.id.as_str()).await.map_err(store_error)?;
    if let Some(before) = before {
        store.set(&key, SessionField::Model, before.model.as_deref()).await.map_err(store_error)?;
        store
            .set(&key, SessionField::Permission, before.permission.as_deref())
            .await
            .map_err(store_error)?;
        (session.model, session.permission) = (before.model, before.permission);
    }
    announce(asked.gateway, &key, "reset").await;
    Ok(ResetResult { ok: true, key: key.to_string(), entry: row(asked, &session).await })
}
