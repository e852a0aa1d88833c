//! Changes, resets and deletes sessions.

use openclaw_protocol::ErrorShape;
use openclaw_protocol::sessions::{
    DeleteParams, DeleteResult, PatchParams, PatchResult, PermissionMode as ShownMode, ResetResult,
    SessionParams,
};
use openclaw_sessions::{SessionField, SessionKey};
use openclaw_tools::PermissionMode;

use super::{Sessions, store_error};
use crate::agents::AgentRuntime;

impl Sessions {
    /// Changes a session, which is created if necessary. All or nothing is checked first.
    pub(crate) async fn patch(&self, params: PatchParams) -> Result<PatchResult, ErrorShape> {
        let PatchParams { key, agent_id, label, model, permission_mode } = params;
        let key = self.key(&key, agent_id.as_deref())?;
        let agent = self.agent_of(&key, agent_id.as_deref()).await?;
        let model = match model {
            Some(Some(model)) => Some(Some(usable_model(&agent, model).await?)),
            other => other,
        };
        let mode = match permission_mode {
            Some(Some(ShownMode::Workspace | ShownMode::Full)) => {
                let message = "this mode would allow more than the configuration; use `guarded`, \
                             `read-only` or null";
                return Err(ErrorShape::invalid(message));
            }
            Some(Some(ShownMode::Guarded)) => Some(PermissionMode::Guarded),
            Some(Some(ShownMode::ReadOnly)) => Some(PermissionMode::ReadOnly),
            Some(None) => Some(PermissionMode::Configured),
            None => None,
        };
        self.store.open(&key, agent.config.id.as_str()).await.map_err(store_error)?;
        if let Some(label) = label {
            self.set(&key, SessionField::Title, label.as_deref()).await?;
        }
        if let Some(model) = model {
            self.set(&key, SessionField::Model, model.as_deref()).await?;
        }
        if let Some(mode) = mode {
            self.set(&key, SessionField::Permission, mode.name()).await?;
        }
        let session = self.store.open(&key, agent.config.id.as_str()).await.map_err(store_error)?;
        let path = self.file.display().to_string();
        let entry = self.row(&session).await;
        self.announce(&key, "patch").await;
        Ok(PatchResult { ok: true, path, key: key.to_string(), entry })
    }

    async fn set(
        &self,
        key: &SessionKey,
        field: SessionField,
        value: Option<&str>,
    ) -> Result<(), ErrorShape> {
        self.store.set(key, field, value).await.map_err(store_error)
    }

    /// Fails while a turn of the session is running, besides this run.
    fn check_idle(&self, key: &SessionKey, run: Option<&str>) -> Result<(), ErrorShape> {
        let active = self.runs.active(key.as_str());
        match active.iter().any(|id| run != Some(id)) {
            true => Err(ErrorShape::unavailable(
                "a turn of this session is running; abort it first with `chat.abort`",
            )),
            false => Ok(()),
        }
    }

    pub(crate) async fn delete(&self, params: DeleteParams) -> Result<DeleteResult, ErrorShape> {
        let key = self.key(&params.key, None)?;
        self.check_idle(&key, None)?;
        let deleted = self.store.delete(&key).await.map_err(store_error)?;
        if deleted {
            self.announce(&key, "delete").await;
        }
        Ok(DeleteResult { ok: true, key: key.to_string(), deleted, archived: Vec::new() })
    }

    /// Deletes the messages of a session and keeps its settings. `run` is the message that asks for it,
    /// if it is one of the session.
    pub(crate) async fn reset(
        &self,
        params: SessionParams,
        run: Option<&str>,
    ) -> Result<ResetResult, ErrorShape> {
        let key = self.key(&params.key, params.agent_id.as_deref())?;
        self.check_idle(&key, run)?;
        let agent = self.agent_of(&key, params.agent_id.as_deref()).await?;
        let before = self.store.get(&key).await.map_err(store_error)?;
        self.store.delete(&key).await.map_err(store_error)?;
        let mut session =
            self.store.open(&key, agent.config.id.as_str()).await.map_err(store_error)?;
        if let Some(before) = before {
            self.set(&key, SessionField::Model, before.model.as_deref()).await?;
            self.set(&key, SessionField::Permission, before.permission.as_deref()).await?;
            (session.model, session.permission) = (before.model, before.permission);
        }
        self.announce(&key, "reset").await;
        Ok(ResetResult { ok: true, key: key.to_string(), entry: self.row(&session).await })
    }
}

/// Returns the name of a model that a session of this agent can use.
pub(crate) async fn usable_model(
    agent: &AgentRuntime,
    model: String,
) -> Result<String, ErrorShape> {
    let known: Vec<&str> = agent.models.names().await.collect();
    if known.contains(&model.as_str()) {
        return Ok(model);
    }
    // Some clients put the provider before the name once more.
    if let Some((_, short)) = model.split_once('/').filter(|(_, short)| known.contains(short)) {
        return Ok(short.to_owned());
    }
    if agent.models.has_provider_of(&model).await {
        return Ok(model);
    }
    let model: String = model.chars().filter(|c| !c.is_control()).take(100).collect();
    let message = format!("unknown model `{model}`; configured: {}", known.join(", "));
    Err(ErrorShape::invalid(message))
}
