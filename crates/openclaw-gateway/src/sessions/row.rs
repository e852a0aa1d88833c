//! A session as callers see it.

use std::time::{SystemTime, UNIX_EPOCH};

use openclaw_protocol::keys;
use openclaw_protocol::sessions::{
    Defaults, DeliveryContext, Kind, PermissionMode as ShownMode, Row, RunStatus,
};
use openclaw_sessions::{Session, SessionKey};
use openclaw_tools::PermissionMode;

use super::{Sessions, permission, usage};
use crate::clock::now_ms;

/// The channel of conversations with front ends, as the Node gateway calls it.
const CHANNEL: &str = "webchat";

impl Sessions {
    /// Defaults for sessions without settings of their own: those of the default agent.
    pub(crate) async fn defaults(&self) -> Defaults {
        let Ok(agent) = self.agents.agent(None) else { return Defaults::default() };
        let model = agent.models.in_use().await.name.clone();
        let context_tokens = agent.window(&model);
        Defaults { model_provider: None, model: Some(model), context_tokens }
    }

    /// Describes a session that does not exist yet.
    pub(crate) async fn missing(&self, key: &SessionKey) -> Row {
        let active = self.agents.active();
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
        let row = self.row(&session).await;
        Row { session_id: None, created_at: None, updated_at: None, ..row }
    }

    /// Describes a session for callers.
    pub(crate) async fn row(&self, session: &Session) -> Row {
        let ms = |at: SystemTime| {
            at.duration_since(UNIX_EPOCH).ok().map(|it| it.as_secs_f64() * 1_000.0)
        };
        let active_run_ids = self.runs.active(session.key.as_str());
        let is_running = !active_run_ids.is_empty();
        let active = self.agents.active();
        let agent = active.agent(&session.agent);
        let model = match (&session.model, agent) {
            (Some(model), _) => Some(model.clone()),
            (None, Some(agent)) => Some(agent.models.in_use().await.name.clone()),
            (None, None) => None,
        };
        let window = agent.zip(model.as_deref()).and_then(|(it, model)| it.window(model));
        let last = usage::last(&*self.store, session).await;
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
                PermissionMode::Guarded => Some(ShownMode::Guarded),
                PermissionMode::ReadOnly => Some(ShownMode::ReadOnly),
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
}

/// Identifies a session until it is deleted or reset.
pub(super) fn session_id(session: &Session) -> String {
    let created = session.created_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    format!("{}-{created:x}", session.agent)
}
