//! What is known of a session besides its entries, and lists of sessions.

use std::time::SystemTime;

use crate::key::SessionKey;

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// What it is called.
    pub key: SessionKey,
    /// The agent that it belongs to.
    pub agent: String,
    /// What people see of it in a list.
    pub title: Option<String>,
    /// The model that was chosen for it.
    pub model: Option<String>,
    /// When it was made.
    pub created_at: SystemTime,
    /// When something was appended last.
    pub updated_at: SystemTime,
    /// How many entries it has, which is the number of the last one, too.
    pub entries: u64,
}

impl Session {
    /// Where it stands in a list.
    pub fn position(&self) -> Position {
        Position { updated_at: self.updated_at, key: self.key.clone() }
    }
}

/// A place in a list of sessions. It stays valid when sessions come, change and go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// When the session there was changed.
    pub updated_at: SystemTime,
    /// Its key.
    pub key: SessionKey,
}

/// Which sessions are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListFilter {
    /// Only those of this agent.
    pub agent: Option<String>,
    /// At most so many; never more than [`MAX_LISTED`](crate::MAX_LISTED).
    pub limit: usize,
    /// Only what comes after this place, which is older: for the next page.
    pub before: Option<Position>,
}

impl Default for ListFilter {
    /// The newest 100 of all agents.
    fn default() -> Self {
        Self { agent: None, limit: 100, before: None }
    }
}
