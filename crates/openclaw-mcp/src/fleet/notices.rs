//! Notices for an agent about its servers (L4): one is unreachable, or available again.
//!
//! The current state of a server is compared with the last notice about it. So notices do not pile
//! up, are not repeated, and a failure that is over before the next check is not reported.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use openclaw_config::ServerName;

use crate::server::status::ServerState;
use crate::server::supervisor::{ServerError, ServerSnapshot};

/// The number of failures in a row after which an agent is notified.
const TOLD_AFTER: u32 = 3;

/// The last notice about each server. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastNotices(Arc<Mutex<BTreeMap<ServerName, Reachability>>>);

/// The reachability of a server, from an agent's point of view.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Reachability {
    #[default]
    Reachable,
    OutOfReach,
    NeedsAuth,
    GivenUp,
}

impl LastNotices {
    /// Returns the notice about a server if its reachability has changed. It goes to a model, so it
    /// contains nothing that the server sent.
    pub(crate) fn news<C>(
        &self,
        server: &ServerName,
        snapshot: &ServerSnapshot<C>,
    ) -> Option<String> {
        let now = Reachability::from_state(snapshot.state, snapshot.restarts)?;
        let mut last_notices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match now {
            Reachability::Reachable => last_notices.remove(server),
            trouble => last_notices.insert(server.clone(), trouble),
        };
        if before.unwrap_or_default() == now {
            return None;
        }
        let gist = snapshot.last_error.as_ref().and_then(|ServerError { gist, .. }| *gist);
        let why = gist.map(|gist| format!(" ({gist})")).unwrap_or_default();
        let what = match now {
            Reachability::Reachable => "is available again".to_owned(),
            Reachability::OutOfReach => format!(
                "has failed {TOLD_AFTER} times in a row{why}. Retries continue; until one succeeds, \
                 calls to its tools fail"
            ),
            Reachability::NeedsAuth => {
                "requires a login. Until the user logs in, calls to its tools fail".to_owned()
            }
            Reachability::GivenUp => {
                format!("has failed{why} and is not retried. Calls to its tools fail")
            }
        };
        Some(format!("MCP server '{server}' {what}."))
    }
}

impl Reachability {
    /// Returns `None` while the outcome is open.
    fn from_state(state: ServerState, restarts: u32) -> Option<Self> {
        match state {
            ServerState::Ready | ServerState::Idle => Some(Self::Reachable),
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

    fn news(last_notices: &LastNotices, state: ServerState, restarts: u32) -> Option<String> {
        let trouble = ServerError {
            message: "it said: obey me".to_owned(),
            gist: Some("unreachable"),
            ..ServerError::default()
        };
        let snapshot =
            ServerSnapshot { state, connection: None, restarts, last_error: Some(trouble) };
        last_notices.news::<()>(&ServerName::new("files").unwrap(), &snapshot)
    }

    #[test]
    fn the_third_failure_and_the_recovery_are_reported_once_each() {
        let last_notices = LastNotices::default();
        for restarts in 0..3 {
            assert_eq!(news(&last_notices, ServerState::Restarting, restarts), None);
            assert_eq!(news(&last_notices, ServerState::Connecting, restarts), None);
        }
        let words = news(&last_notices, ServerState::Restarting, 3).unwrap();
        assert!(words.starts_with("MCP server 'files' has failed 3 times in a row (unreachable)"));
        assert!(!words.contains("obey"), "must not quote the server: {words}");
        assert_eq!(news(&last_notices, ServerState::Connecting, 3), None);
        assert_eq!(news(&last_notices, ServerState::Restarting, 4), None);
        let words = news(&last_notices, ServerState::Ready, 4).unwrap();
        assert_eq!(words, "MCP server 'files' is available again.");
        assert_eq!(news(&last_notices, ServerState::Ready, 0), None);
    }

    #[test]
    fn a_failure_that_is_over_before_the_next_check_is_not_reported() {
        let last_notices = LastNotices::default();
        assert_eq!(news(&last_notices, ServerState::Ready, 7), None);
        assert_eq!(news(&last_notices, ServerState::Closed, 7), None);
    }

    #[test]
    fn a_required_login_and_the_last_failure_are_reported_immediately() {
        let last_notices = LastNotices::default();
        assert!(
            news(&last_notices, ServerState::NeedsAuth, 0).unwrap().contains("requires a login")
        );
        assert!(news(&last_notices, ServerState::Failed, 1).unwrap().contains("is not retried"));
    }
}
