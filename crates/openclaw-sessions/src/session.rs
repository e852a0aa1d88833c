//! Session metadata, and listings of sessions.

use std::time::SystemTime;

use crate::key::SessionKey;

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Session key.
    pub key: SessionKey,
    /// Agent that owns the session.
    pub agent: String,
    /// Title shown in listings.
    pub title: Option<String>,
    /// Model selected for the session.
    pub model: Option<String>,
    /// How strict the session is about tool calls; `None` if that was not set.
    pub permission: Option<String>,
    /// Folder that the last turn worked in, if it was not the agent's own.
    pub folder: Option<String>,
    /// Creation time.
    pub created_at: SystemTime,
    /// Time of the last append.
    pub updated_at: SystemTime,
    /// Number of entries, which is also the last sequence number.
    pub entries: u64,
}

impl Session {
    /// Returns the position in a listing.
    pub fn position(&self) -> Position {
        Position { updated_at: self.updated_at, key: self.key.clone() }
    }
}

/// A value of a session that can be set and removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionField {
    /// [`Session::title`].
    Title,
    /// [`Session::model`].
    Model,
    /// [`Session::permission`].
    Permission,
    /// [`Session::folder`].
    Folder,
}

/// A position in a listing of sessions. It stays valid when sessions are added, changed or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Update time of the session at this position.
    pub updated_at: SystemTime,
    /// Its key.
    pub key: SessionKey,
}

/// Selects sessions to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListFilter {
    /// Only sessions of this agent.
    pub agent: Option<String>,
    /// Maximum number of sessions; never more than [`MAX_LISTED`](crate::MAX_LISTED).
    pub limit: usize,
    /// Only sessions after this position, which are older: for the next page.
    pub before: Option<Position>,
}

impl Default for ListFilter {
    /// Selects the newest 100 sessions of all agents.
    fn default() -> Self {
        Self { agent: None, limit: 100, before: None }
    }
}
