//! Persistent conversations: who may have which, what callers see of them, and changes.

mod change;
mod history;
mod list;
mod previews;
mod row;
mod titles;
mod usage;

pub(crate) use change::usable_model;
pub(crate) use history::text_part;

use std::error::Error as _;
use std::path::PathBuf;
use std::sync::Arc;

use openclaw_protocol::sessions::ChangedEvent;
use openclaw_protocol::{ErrorShape, keys};
use openclaw_sessions::{Session, SessionKey, SessionStore, StoreError};
use openclaw_tools::PermissionMode;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::agents::{AgentRuntime, Agents};
use crate::callers::Callers;
use crate::clock::now_ms;
use crate::runs::Runs;

/// All conversations.
pub(crate) struct Sessions {
    store: Arc<dyn SessionStore>,
    /// The database.
    file: PathBuf,
    agents: Arc<Agents>,
    runs: Arc<Runs>,
    callers: Arc<Callers>,
    tasks: TaskTracker,
    /// Cancelled when the gateway stops.
    ending: CancellationToken,
}

impl Sessions {
    pub(crate) fn new(
        (store, file): (Arc<dyn SessionStore>, PathBuf),
        agents: Arc<Agents>,
        runs: Arc<Runs>,
        callers: Arc<Callers>,
        (tasks, ending): (TaskTracker, CancellationToken),
    ) -> Self {
        Self { store, file, agents, runs, callers, tasks, ending }
    }

    /// Where the messages are stored.
    pub(crate) fn store(&self) -> &Arc<dyn SessionStore> {
        &self.store
    }

    fn key(&self, key: &str, agent: Option<&str>) -> Result<SessionKey, ErrorShape> {
        self.agents.session_key(key, agent)
    }

    /// Returns the agent of a session: the named one, the one it belongs to, or the one in its key.
    pub(crate) async fn agent_of(
        &self,
        key: &SessionKey,
        named: Option<&str>,
    ) -> Result<Arc<AgentRuntime>, ErrorShape> {
        let in_key = keys::agent_of(key.as_str());
        if let Some(named) = named {
            let agent = self.agents.agent(Some(named))?;
            return match in_key {
                Some(agent) if agent != named => {
                    let message =
                        format!("the session belongs to agent `{agent}`, not to `{named}`");
                    Err(ErrorShape::invalid(message))
                }
                _ => Ok(agent),
            };
        }
        if let Some(session) = self.store.get(key).await.map_err(store_error)? {
            return self.agents.agent(Some(&session.agent));
        }
        self.agents.agent(in_key)
    }

    /// Tells the followers of a session that it has changed.
    pub(crate) async fn announce(&self, key: &SessionKey, reason: &str) {
        if !self.callers.has_chat_follower(key.as_str(), false) {
            return;
        }
        let session = self.store.get(key).await.ok().flatten();
        let session = match session {
            Some(session) => Some(self.row(&session).await),
            None => None,
        };
        let active_run_ids = self.runs.active(key.as_str());
        let event = ChangedEvent {
            session_key: key.to_string(),
            agent_id: session.as_ref().and_then(|session| session.agent_id.clone()),
            reason: reason.to_owned(),
            ts: now_ms(),
            has_active_run: !active_run_ids.is_empty(),
            active_run_ids,
            session,
        };
        self.callers.send_changed(key.as_str(), event);
    }
}

/// How strict a session is about tool calls. An unknown mode, of a newer version, is the strictest.
pub(crate) fn permission(session: &Session) -> PermissionMode {
    let mode = PermissionMode::from_name(session.permission.as_deref());
    mode.unwrap_or(PermissionMode::ReadOnly)
}

/// Converts an error of the store for a caller.
#[allow(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
pub(crate) fn store_error(error: StoreError) -> ErrorShape {
    let message = with_causes(&error);
    match error {
        // A retry would not help.
        StoreError::TooLong { .. }
        | StoreError::TooDeep { .. }
        | StoreError::TooMany { .. }
        | StoreError::OtherAgent { .. } => ErrorShape::invalid(message),
        _ => {
            tracing::warn!(error = %message, "session store failed");
            ErrorShape::unavailable(message)
        }
    }
}

/// An error of the store and its causes, in one line.
pub(crate) fn with_causes(error: &StoreError) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(it) = cause {
        message.push_str(": ");
        message.push_str(&it.to_string());
        cause = it.source();
    }
    message
}
