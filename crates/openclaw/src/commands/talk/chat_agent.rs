//! The agent of a chat, its model, and the keys of its conversations.

use openclaw_protocol::agents::{Agent, ListParams};
use openclaw_protocol::keys::{self, agent_of};
use openclaw_protocol::{Surface, rpc};

use super::fresh_key;
use crate::commands::link::look;
use crate::commands::unknown_agent;
use crate::error::CommandError;

/// The built-in model.
const OFFLINE: &str = "offline";

/// The agent of a chat.
#[derive(Debug, Clone)]
pub(crate) struct ChatAgent {
    pub(crate) agent: String,
    pub(crate) model: String,
    /// Its workspace.
    pub(crate) workspace: Option<String>,
    /// Whether the user named this agent explicitly.
    is_asked_for: bool,
}

impl ChatAgent {
    /// Finds the agent that was named, or that of the session, or the default one.
    pub(crate) async fn find(
        surface: &dyn Surface,
        asked: Option<&str>,
        session: Option<&str>,
    ) -> Result<Self, CommandError> {
        let known = look::<rpc::AgentsList>(surface, ListParams::default()).await?;
        let of_session = session.and_then(agent_of);
        let id = asked.or(of_session).unwrap_or(&known.default_id).to_owned();
        let Some(agent) = known.agents.iter().find(|agent| agent.id == id) else {
            let names: Vec<&str> = known.agents.iter().map(|agent| agent.id.as_str()).collect();
            return Err(unknown_agent(&id, &names));
        };
        if let (Some(asked), Some(other)) = (asked, of_session.filter(|it| asked != Some(it))) {
            let message = format!("the session belongs to agent `{other}`, not to `{asked}`");
            return Err(CommandError::usage(message).hint("leave out `--agent` or `--session`"));
        }
        Ok(Self::new(agent, asked.is_some()))
    }

    fn new(agent: &Agent, is_asked_for: bool) -> Self {
        let primary = agent.model.as_ref().and_then(|model| model.primary.clone());
        Self {
            agent: agent.id.clone(),
            workspace: agent.workspace.clone(),
            model: primary.unwrap_or_else(|| OFFLINE.to_owned()),
            is_asked_for,
        }
    }

    /// Whether the model is the built-in offline model.
    pub(crate) fn is_offline(&self) -> bool {
        self.model == OFFLINE
    }

    /// Returns the agent id to send with a conversation. `None` if the key contains it, or if the
    /// user named no agent: the gateway then decides.
    pub(crate) fn named_for(&self, session: &str) -> Option<String> {
        let is_needed = self.is_asked_for && agent_of(session).is_none();
        is_needed.then(|| self.agent.clone())
    }

    /// Returns the full key of a conversation that the user named.
    pub(crate) fn session(&self, named: &str) -> String {
        keys::whole(named, &self.agent)
    }

    /// Returns the key of a new conversation.
    pub(crate) fn new_session(&self) -> String {
        let key: String = fresh_key().chars().filter(|c| *c != '-').take(12).collect();
        format!("agent:{}:{key}", self.agent)
    }
}
