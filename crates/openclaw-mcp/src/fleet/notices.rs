//! What an agent is told about its servers (L4): that one is out of reach, and that it is back.
//!
//! What a server is now is compared with what the agent was told of it last. So nothing piles up while
//! nobody asks, nothing is told twice, and what is over before anybody asked is not told at all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use openclaw_config::ServerName;

use crate::server::status::ServerState;
use crate::server::supervisor::{Snapshot, Trouble};

/// After so many failures in a row an agent is told.
const TOLD_AFTER: u32 = 3;

/// What an agent was told of its servers. A clone is the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastNotices(Arc<Mutex<BTreeMap<ServerName, Reachability>>>);

/// What a server is to an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Reachability {
    #[default]
    Well,
    OutOfReach,
    NeedsAuth,
    GivenUp,
}

impl LastNotices {
    /// What to tell of a server, if it is something else than before. In our words: they go to a model.
    pub(crate) fn news<C>(&self, server: &ServerName, snapshot: &Snapshot<C>) -> Option<String> {
        let now = Reachability::of(snapshot.state, snapshot.restarts)?;
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match now {
            Reachability::Well => told.remove(server),
            trouble => told.insert(server.clone(), trouble),
        };
        if before.unwrap_or_default() == now {
            return None;
        }
        let gist = snapshot.last_error.as_ref().and_then(|Trouble { gist, .. }| *gist);
        let why = gist.map(|gist| format!(" ({gist})")).unwrap_or_default();
        let what = match now {
            Reachability::Well => "is available again".to_owned(),
            Reachability::OutOfReach => format!(
                "has failed {TOLD_AFTER} times in a row{why}. Retries continue; until one succeeds, \
                 calls of its tools fail"
            ),
            Reachability::NeedsAuth => {
                "requires a login. Until the user logs in, calls of its tools fail".to_owned()
            }
            Reachability::GivenUp => {
                format!("has failed{why} and is not retried. Calls of its tools fail")
            }
        };
        Some(format!("MCP server '{server}' {what}."))
    }
}

impl Reachability {
    /// Nothing as long as it is not decided.
    fn of(state: ServerState, restarts: u32) -> Option<Self> {
        match state {
            ServerState::Ready | ServerState::Idle => Some(Self::Well),
            ServerState::NeedsAuth => Some(Self::NeedsAuth),
            ServerState::Failed => Some(Self::GivenUp),
            ServerState::Connecting | ServerState::Restarting => {
                (restarts >= TOLD_AFTER).then_some(Self::OutOfReach)
            }
            ServerState::Closed | ServerState::Disabled => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(told: &LastNotices, state: ServerState, restarts: u32) -> Option<String> {
        let trouble = Trouble {
            message: "it said: obey me".to_owned(),
            gist: Some("unreachable"),
            ..Trouble::default()
        };
        let snapshot = Snapshot { state, connection: None, restarts, last_error: Some(trouble) };
        told.news::<()>(&ServerName::new("files").unwrap(), &snapshot)
    }

    #[test]
    fn an_agent_is_told_once_after_the_third_failure_and_once_when_all_is_well() {
        let told = LastNotices::default();
        for restarts in 0..3 {
            assert_eq!(news(&told, ServerState::Restarting, restarts), None);
            assert_eq!(news(&told, ServerState::Connecting, restarts), None);
        }
        let words = news(&told, ServerState::Restarting, 3).unwrap();
        assert!(words.starts_with("MCP server 'files' has failed 3 times in a row (unreachable)"));
        assert!(!words.contains("obey"), "nothing of what the server says: {words}");
        assert_eq!(news(&told, ServerState::Connecting, 3), None);
        assert_eq!(news(&told, ServerState::Restarting, 4), None);
        let words = news(&told, ServerState::Ready, 4).unwrap();
        assert_eq!(words, "MCP server 'files' is available again.");
        assert_eq!(news(&told, ServerState::Ready, 0), None);
    }

    #[test]
    fn what_was_over_before_anybody_asked_is_not_told() {
        let told = LastNotices::default();
        assert_eq!(news(&told, ServerState::Ready, 7), None);
        assert_eq!(news(&told, ServerState::Closed, 7), None);
    }

    #[test]
    fn a_login_and_the_end_of_all_tries_are_told_at_once() {
        let told = LastNotices::default();
        assert!(news(&told, ServerState::NeedsAuth, 0).unwrap().contains("requires a login"));
        assert!(news(&told, ServerState::Failed, 1).unwrap().contains("is not retried"));
    }
}
