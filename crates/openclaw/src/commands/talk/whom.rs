//! Whom a front end talks to: an agent, its model, and a conversation.

use openclaw_protocol::agents::{Agent, ListParams, ListResult};
use openclaw_protocol::keys::{self, agent_of};
use openclaw_protocol::{Surface, rpc};

use super::fresh_key;
use crate::commands::link::look;
use crate::commands::unknown_agent;
use crate::error::CommandError;

/// The built-in model.
const OFFLINE: &str = "offline";

/// Whom a front end talks to.
#[derive(Debug, Clone)]
pub(crate) struct Whom {
    pub(crate) agent: String,
    pub(crate) model: String,
    pub(crate) fallbacks: Vec<String>,
    /// Whether somebody asked for this agent by its id.
    is_asked_for: bool,
}

impl Whom {
    /// Asks the gateway for an agent.
    pub(crate) async fn find(
        surface: &dyn Surface,
        asked: Option<&str>,
        session: Option<&str>,
    ) -> Result<Self, CommandError> {
        let known: ListResult = look::<rpc::AgentsList>(surface, ListParams::default()).await?;
        let of_session = session.and_then(agent_of);
        let id = asked.or(of_session).unwrap_or(&known.default_id).to_owned();
        let Some(agent) = known.agents.iter().find(|agent| agent.id == id) else {
            let names: Vec<&str> = known.agents.iter().map(|agent| agent.id.as_str()).collect();
            return Err(unknown_agent(&id, &names));
        };
        if let (Some(asked), Some(other)) = (asked, of_session.filter(|it| asked != Some(it))) {
            let message = format!("the conversation belongs to agent `{other}`, not to `{asked}`");
            return Err(CommandError::usage(message).hint("leave out `--agent` or `--session`"));
        }
        Ok(Self::new(agent, asked.is_some()))
    }

    fn new(agent: &Agent, is_asked_for: bool) -> Self {
        let model = agent.model.clone();
        let primary = model.as_ref().and_then(|model| model.primary.clone());
        Self {
            agent: agent.id.clone(),
            model: primary.unwrap_or_else(|| OFFLINE.to_owned()),
            fallbacks: model.and_then(|model| model.fallbacks).unwrap_or_default(),
            is_asked_for,
        }
    }

    /// Whether nobody thinks but the built-in stand-in.
    pub(crate) fn is_offline(&self) -> bool {
        self.model == OFFLINE
    }

    /// The agent to name for a conversation. Where its key tells, or it may be another agent's, none:
    /// the gateway knows better.
    pub(crate) fn named_for(&self, session: &str) -> Option<String> {
        let is_needed = self.is_asked_for && agent_of(session).is_none();
        is_needed.then(|| self.agent.clone())
    }

    /// The key of a conversation that somebody names.
    pub(crate) fn session(&self, named: &str) -> String {
        keys::whole(named, &self.agent)
    }

    /// The key of a conversation that is not there yet.
    pub(crate) fn new_session(&self) -> String {
        let key: String = fresh_key().chars().filter(|c| *c != '-').take(12).collect();
        format!("agent:{}:{key}", self.agent)
    }
}
