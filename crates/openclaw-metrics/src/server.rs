//! The series of one MCP server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::counter::{Counter, Counters, LabelledGauges};
use crate::labels::{Label as _, ServerState, Success};

/// The series of the servers with one name: agents may connect to it in different ways.
#[derive(Debug, Default)]
pub struct ServerSeries {
    pub(crate) name: Box<str>,
    pub(crate) states: LabelledGauges<ServerState>,
    pub(crate) restarts: Counter,
    pub(crate) refreshes: Counters<Success>,
    /// Bytes of messages from the server.
    pub received: Counter,
    /// Bytes of messages to the server.
    pub sent: Counter,
    /// Tools whose definition has changed since the user saw or approved it.
    pub tools_changed: Counter,
    /// Suspicious findings in descriptions of its tools.
    pub description_findings: Counter,
}

impl ServerSeries {
    pub(crate) fn new(name: Box<str>) -> Self {
        Self { name, ..Self::default() }
    }

    /// Counts a refresh of the server's access token.
    pub fn refreshed(&self, success: Success) {
        self.refreshes.of(success).increment();
    }
}

/// One running server with its state. Dropping it removes the state.
#[derive(Debug)]
pub struct ServerInstance {
    series: Arc<ServerSeries>,
    state: AtomicUsize,
}

impl ServerInstance {
    /// Registers a server in its first state.
    pub fn new(series: Arc<ServerSeries>, state: ServerState) -> Self {
        series.states.of(state).add(1);
        Self { series, state: AtomicUsize::new(state.index()) }
    }

    /// Returns the series.
    pub fn series(&self) -> &Arc<ServerSeries> {
        &self.series
    }

    /// Records a state change.
    pub fn becomes(&self, state: ServerState) {
        let before = ServerState::ALL[self.state.swap(state.index(), Ordering::Relaxed)];
        self.series.states.of(before).add(-1);
        self.series.states.of(state).add(1);
        if (before, state) == (ServerState::Restarting, ServerState::Connecting) {
            self.series.restarts.increment();
        }
    }
}

impl Drop for ServerInstance {
    fn drop(&mut self) {
        let state = ServerState::ALL[self.state.load(Ordering::Relaxed)];
        self.series.states.of(state).add(-1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_in_one_state_and_restarts_are_counted() {
        let series = Arc::new(ServerSeries::new("x".into()));
        let server = ServerInstance::new(Arc::clone(&series), ServerState::Connecting);
        for state in [ServerState::Restarting, ServerState::Connecting, ServerState::Ready] {
            server.becomes(state);
        }
        let now = |series: &ServerSeries| -> Vec<&str> {
            let in_state = series.states.iter().filter(|(_, count)| count.get() == 1);
            in_state.map(|(state, _)| state.name()).collect()
        };
        assert_eq!((now(&series), series.restarts.get()), (vec!["ready"], 1));
        drop(server);
        assert_eq!(now(&series), Vec::<&str>::new());
    }
}
