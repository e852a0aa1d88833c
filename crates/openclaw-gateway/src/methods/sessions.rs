//! Methods that list, describe, change and delete sessions.

use std::error::Error as _;
use std::time::{SystemTime, UNIX_EPOCH};

use openclaw_protocol::sessions::{
    ChangedEvent, Defaults, DeleteParams, DeleteResult, DeliveryContext, DescribeParams,
    DescribeResult, Kind, ListParams, ListResult, MessagesResult, PatchParams, PatchResult,
    PermissionMode as Asked, ResolveParams, ResolveResult, Row, RunStatus, SessionParams,
    SubscribeResult,
};
use openclaw_protocol::{ErrorShape, keys};
use openclaw_sessions::{ListFilter, MAX_LISTED, Session, SessionField, SessionKey, StoreError};
use openclaw_tools::PermissionMode;

use super::chat::service;
use super::previews::Previews;
use super::{Reply, RequestContext};
use crate::agents::AgentRuntime;
use crate::gateway::{Gateway, now_ms};
use crate::usage;

/// Default number of sessions listed.
const USUAL: usize = 100;
/// The channel of conversations with front ends, as the Node gateway calls it.
const CHANNEL: &str = "webchat";

pub(super) async fn list(asked: &RequestContext<'_>, params: ListParams) -> Reply<ListResult> {
    let number = |it: Option<u64>| it.and_then(|it| usize::try_from(it).ok());
    let limit = number(params.limit).unwrap_or(USUAL).clamp(1, MAX_LISTED);
    let offset = number(params.offset).unwrap_or(0);
    // A match may be far down the list.
    let is_filtered = params.search.is_some() || params.active_minutes.is_some();
    let needed = if is_filtered { MAX_LISTED } else { limit.saturating_add(offset) };
    let filter = ListFilter { agent: params.agent_id, limit: needed.min(MAX_LISTED), before: None };
    let sessions = asked.gateway.store.list(filter).await.map_err(store_error)?;
    let since = params.active_minutes.map(|minutes| {
        let ago = std::time::Duration::from_secs(minutes.saturating_mul(60));
        SystemTime::now().checked_sub(ago).unwrap_or(UNIX_EPOCH)
    });
    let words = params.search.map(|words| words.to_lowercase()).filter(|words| !words.is_empty());
    let mut found = Vec::new();
    let recent = |session: &&Session| since.is_none_or(|since| session.updated_at >= since);
    for session in sessions.iter().filter(recent) {
        if found.len() == limit.saturating_add(offset) {
            break;
        }
        let is_wanted = match &words {
            Some(words) => contains(asked, session, words).await,
            None => true,
        };
        if is_wanted {
            found.push(session);
        }
    }
    let mut rows = Vec::new();
    for session in found.into_iter().skip(offset) {
        rows.push(row(asked, session).await);
    }
    let previews = Previews::new(params.include_derived_titles, params.include_last_message);
    for row in &mut rows {
        previews.add(asked, row).await;
    }
    Ok(ListResult {
        ts: now_ms(),
        path: asked.gateway.state.join("sessions.db").display().to_string(),
        count: rows.len() as u64,
        defaults: defaults(asked).await,
        sessions: rows,
    })
}

/// Whether the key, the title or the first message of a session contains these words, in lower case.
async fn contains(asked: &RequestContext<'_>, session: &Session, words: &str) -> bool {
    let has = |text: &str| text.to_lowercase().contains(words);
    if has(session.key.as_str()) || session.title.as_deref().is_some_and(has) {
        return true;
    }
    let first = Previews::first_text(asked, &session.key).await;
    first.is_some_and(|text| has(&text))
}

pub(crate) async fn describe(
    asked: &RequestContext<'_>,
    params: DescribeParams,
) -> Reply<DescribeResult> {
    let key = asked.session(&params.key, None)?;
    let session = asked.gateway.store.get(&key).await.map_err(store_error)?;
    let mut session = match session {
        Some(session) => Some(row(asked, &session).await),
        None => None,
    };
    let previews = Previews::new(params.include_derived_titles, params.include_last_message);
    if let Some(row) = &mut session {
        previews.add(asked, row).await;
    }
    Ok(DescribeResult { session })
}

/// Returns the list only if parameters are given.
pub(super) async fn subscribe(
    asked: &RequestContext<'_>,
    params: Option<ListParams>,
) -> Reply<SubscribeResult> {
    asked.caller.follow_all();
    let list = match params {
        None => None,
        Some(params) => Some(list(asked, params).await?),
    };
    Ok(SubscribeResult { subscribed: true, list })
}

/// Changes a session, which is created if necessary. All or nothing is checked first.
pub(crate) async fn patch(asked: &RequestContext<'_>, params: PatchParams) -> Reply<PatchResult> {
    let PatchParams { key, agent_id, label, model, permission_mode } = params;
    let key = asked.session(&key, agent_id.as_deref())?;
    let service = service(asked, &key, agent_id.as_deref()).await?;
    let model = match model {
        Some(Some(model)) => Some(Some(usable_model(&service, model).await?)),
        other => other,
    };
    let mode = match permission_mode {
        Some(Some(Asked::Workspace | Asked::Full)) => {
            let words = "this mode would allow more than the configuration; use `guarded`, \
                         `read-only` or null";
            return Err(ErrorShape::invalid(words));
        }
        Some(Some(Asked::Guarded)) => Some(PermissionMode::Guarded),
        Some(Some(Asked::ReadOnly)) => Some(PermissionMode::ReadOnly),
        Some(None) => Some(PermissionMode::Configured),
        None => None,
    };
    let store = &asked.gateway.store;
    store.open(&key, service.config.id.as_str()).await.map_err(store_error)?;
    if let Some(label) = label {
        store.set(&key, SessionField::Title, label.as_deref()).await.map_err(store_error)?;
    }
    if let Some(model) = model {
        store.set(&key, SessionField::Model, model.as_deref()).await.map_err(store_error)?;
    }
    if let Some(mode) = mode {
        store.set(&key, SessionField::Permission, mode.name()).await.map_err(store_error)?;
    }
    let session = store.open(&key, service.config.id.as_str()).await.map_err(store_error)?;
    let path = asked.gateway.state.join("sessions.db").display().to_string();
    let entry = row(asked, &session).await;
    announce(asked.gateway, &key, "patch").await;
    Ok(PatchResult { ok: true, path, key: key.to_string(), entry })
}

/// Returns the name of a model that a session of this agent can use.
pub(super) async fn usable_model(service: &AgentRuntime, model: String) -> Reply<String> {
    let known: Vec<&str> = service.models.names().await.collect();
    if known.contains(&model.as_str()) {
        return Ok(model);
    }
    // Some clients put the provider before the name once more.
    if let Some((_, short)) = model.split_once('/').filter(|(_, short)| known.contains(short)) {
        return Ok(short.to_owned());
    }
    if service.models.has_provider_of(&model).await {
        return Ok(model);
    }
    let model: String = model.chars().filter(|c| !c.is_control()).take(100).collect();
    let words = format!("unknown model `{model}`; configured: {}", known.join(", "));
    Err(ErrorShape::invalid(words))
}

/// How strict a session is about tool calls. An unknown mode, of a newer version, is the strictest.
pub(crate) fn permission(session: &Session) -> PermissionMode {
    let mode = PermissionMode::from_name(session.permission.as_deref());
    mode.unwrap_or(PermissionMode::ReadOnly)
}

/// Fails while a turn of the session is running, besides this run.
pub(super) fn check_idle(
    asked: &RequestContext<'_>,
    key: &SessionKey,
    run: Option<&str>,
) -> Reply<()> {
    let active = asked.gateway.runs.active(key.as_str());
    match active.iter().any(|id| run != Some(id)) {
        true => Err(ErrorShape::unavailable(
            "a turn of this session is running; abort it first with `chat.abort`",
        )),
        false => Ok(()),
    }
}

pub(super) async fn delete(
    asked: &RequestContext<'_>,
    params: DeleteParams,
) -> Reply<DeleteResult> {
    let key = asked.session(&params.key, None)?;
    check_idle(asked, &key, None)?;
    let deleted = asked.gateway.store.delete(&key).await.map_err(store_error)?;
    if deleted {
        announce(asked.gateway, &key, "delete").await;
    }
    Ok(DeleteResult { ok: true, key: key.to_string(), deleted, archived: Vec::new() })
}

/// Defaults for sessions without settings of their own: those of the default agent.
pub(super) async fn defaults(asked: &RequestContext<'_>) -> Defaults {
    let Ok(service) = asked.agent(None) else { return Defaults::default() };
    let model = service.models.in_use().await.name.clone();
    let context_tokens = service.window(&model);
    Defaults { model_provider: None, model: Some(model), context_tokens }
}

/// Describes a session for callers.
pub(super) async fn row(asked: &RequestContext<'_>, session: &Session) -> Row {
    described(asked.gateway, session).await
}

/// Describes a session that does not exist yet.
pub(crate) async fn missing(asked: &RequestContext<'_>, key: &SessionKey) -> Row {
    let active = asked.gateway.active.load_full();
    let agent = keys::agent_of(key.as_str()).unwrap_or_else(|| active.default_agent());
    let session = Session {
        key: key.clone(),
        agent: agent.to_owned(),
        title: None,
        model: None,
        permission: None,
        folder: None,
        created_at: UNIX_EPOCH,
        updated_at: UNIX_EPOCH,
        entries: 0,
    };
    let row = described(asked.gateway, &session).await;
    Row { session_id: None, created_at: None, updated_at: None, ..row }
}

async fn described(gateway: &Gateway, session: &Session) -> Row {
    let ms =
        |at: SystemTime| at.duration_since(UNIX_EPOCH).ok().map(|it| it.as_secs_f64() * 1_000.0);
    let active_run_ids = gateway.runs.active(session.key.as_str());
    let is_running = !active_run_ids.is_empty();
    let active = gateway.active.load_full();
    let service = active.agent(&session.agent);
    let model = match (&session.model, service) {
        (Some(model), _) => Some(model.clone()),
        (None, Some(service)) => Some(service.models.in_use().await.name.clone()),
        (None, None) => None,
    };
    let window = service.zip(model.as_deref()).and_then(|(it, model)| it.window(model));
    let last = usage::last(gateway, session).await;
    let usage = last.map(|last| last.usage);
    let tokens = |number: u64| number.to_string().parse::<f64>().ok();
    Row {
        key: session.key.as_str().to_owned(),
        kind: Kind::Direct,
        session_id: Some(session_id(session)),
        label: None,
        display_name: session.title.clone(),
        derived_title: None,
        last_message_preview: None,
        channel: Some(CHANNEL.to_owned()),
        delivery_context: Some(DeliveryContext {
            channel: Some(CHANNEL.to_owned()),
            to: Some(session.key.to_string()),
        }),
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
        input_tokens: usage.and_then(|it| tokens(it.input_tokens)),
        output_tokens: usage.and_then(|it| tokens(it.output_tokens)),
        total_tokens: last.and_then(|last| tokens(last.context)),
        context_tokens: window.and_then(tokens),
        model,
        model_provider: None,
        model_override_source: session.model.is_some().then(|| "user".to_owned()),
        permission_mode: match permission(session) {
            PermissionMode::Configured => None,
            PermissionMode::Guarded => Some(Asked::Guarded),
            PermissionMode::ReadOnly => Some(Asked::ReadOnly),
        },
        workspace: session.folder.clone(),
        total_tokens_fresh: usage.map(|_| true),
        // All there is: clients decide how much of it they show.
        verbose_level: Some("full".to_owned()),
        has_active_run: Some(is_running),
        active_run_ids: Some(active_run_ids),
        snapshot_at: Some(now_ms()),
    }
}

/// Identifies a session until it is deleted or reset.
fn session_id(session: &Session) -> String {
    let created = session.created_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    format!("{}-{created:x}", session.agent)
}

/// Finds a session by its key, its id or its title.
pub(super) async fn resolve(
    asked: &RequestContext<'_>,
    params: ResolveParams,
) -> Reply<ResolveResult> {
    let found = if let Some(key) = &params.key {
        let key = asked.session(key, params.agent_id.as_deref())?;
        asked.gateway.store.get(&key).await.map_err(store_error)?
    } else {
        let filter = ListFilter { agent: params.agent_id, limit: MAX_LISTED, before: None };
        let sessions = asked.gateway.store.list(filter).await.map_err(store_error)?;
        let is_meant = |session: &Session| {
            params.session_id.as_ref().is_some_and(|id| {
                *id == session_id(session)
                    || session.key.as_str() == keys::explicit(&session.agent, id)
            }) || (params.label.is_some() && params.label == session.title)
        };
        sessions.into_iter().find(is_meant)
    };
    Ok(match found {
        Some(Session { key, agent, title, .. }) => ResolveResult {
            ok: true,
            key: Some(key.to_string()),
            agent_id: Some(agent),
            display_name: title,
        },
        None => ResolveResult::default(),
    })
}

/// Subscribes to a session's events, or unsubscribes.
pub(super) fn follow(
    asked: &RequestContext<'_>,
    params: &SessionParams,
    subscribed: bool,
) -> Reply<MessagesResult> {
    let key = asked.session(&params.key, params.agent_id.as_deref())?;
    match subscribed {
        true => asked.caller.follow(key.as_str()),
        false => asked.caller.unfollow(key.as_str()),
    }
    Ok(MessagesResult { subscribed, key: key.to_string() })
}

/// Tells the followers of a session that it has changed.
pub(crate) async fn announce(gateway: &Gateway, key: &SessionKey, reason: &str) {
    if !gateway.callers.has_chat_follower(key.as_str(), false) {
        return;
    }
    let session = gateway.store.get(key).await.ok().flatten();
    let session = match session {
        Some(session) => Some(described(gateway, &session).await),
        None => None,
    };
    let active_run_ids = gateway.runs.active(key.as_str());
    let event = ChangedEvent {
        session_key: key.to_string(),
        agent_id: session.as_ref().and_then(|session| session.agent_id.clone()),
        reason: reason.to_owned(),
        ts: now_ms(),
        has_active_run: !active_run_ids.is_empty(),
        active_run_ids,
        session,
    };
    gateway.callers.send_changed(key.as_str(), &event);
}

/// Converts an error of the store for a caller.
#[allow(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
pub(super) fn store_error(error: StoreError) -> ErrorShape {
    let words = with_causes(&error);
    match error {
        // A retry would not help.
        StoreError::TooLong { .. }
        | StoreError::TooDeep { .. }
        | StoreError::TooMany { .. }
        | StoreError::OtherAgent { .. } => ErrorShape::invalid(words),
        _ => {
            tracing::warn!(error = %words, "session store failed");
            ErrorShape::unavailable(words)
        }
    }
}

/// An error of the store and its causes, in one line.
pub(crate) fn with_causes(error: &StoreError) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(it) = cause {
        words.push_str(": ");
        words.push_str(&it.to_string());
        cause = it.source();
    }
    words
}
