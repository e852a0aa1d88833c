//! How a server is kept, where agents that treat it differently share it (L7, L10).
//!
//! What an agent may do with a server is a matter of that agent alone ([`crate::fleet::member`]). What concerns
//! the server as a whole is brought together here: what protects it follows the strictest agent, what
//! keeps it available follows the most demanding one.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

use openclaw_config::{McpSettings, Treatment};

/// How a server is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Upkeep {
    /// How long connecting may take: the longest that an agent allows.
    pub(crate) timeout: Duration,
    /// How often in a row a crashed process is started again: the most that an agent wants.
    pub(crate) restarts: u32,
    /// Connected to when first used, if that is enough for all agents.
    pub(crate) lazy: bool,
    /// Whether an agent says that the program must not start without it.
    pub(crate) required: bool,
    /// How often to list, whatever the server says: the shortest interval.
    pub(crate) list_every: Option<Duration>,
    /// Calls a minute, of all agents together: the strictest limit.
    pub(crate) rate_limit: Option<NonZeroU32>,
    /// Whether an agent says that it takes one call at a time.
    pub(crate) one_at_a_time: bool,
    /// The resources of which it is asked to tell changes: those of all agents.
    pub(crate) resources: BTreeSet<String>,
}

impl Upkeep {
    /// What one agent wants of a server.
    pub(crate) fn of(treatment: &Treatment, settings: &McpSettings) -> Self {
        // A new setting is sorted here, or it does not compile.
        let Treatment {
            timeout,
            restart_on_crash,
            max_restarts,
            lazy,
            required,
            rate_limit,
            supports_parallel_tool_calls,
            resources,
            // Of the agent's view only.
            tool_timeout: _,
            tool_prefix: _,
            tools: _,
            approval: _,
            max_result_chars: _,
            sampling: _,
        } = treatment;
        let McpSettings {
            tool_discovery_interval,
            // Of the agent's view only.
            tool_naming: _,
            call_timeout_cap: _,
            // Of the program.
            max_concurrent_servers: _,
            debug: _,
        } = settings;
        Self {
            timeout: *timeout,
            restarts: if *restart_on_crash { *max_restarts } else { 0 },
            lazy: *lazy,
            required: *required,
            list_every: *tool_discovery_interval,
            rate_limit: *rate_limit,
            one_at_a_time: !supports_parallel_tool_calls,
            resources: resources.iter().map(|uri| uri.as_str().to_owned()).collect(),
        }
    }

    /// What two agents want that share a server.
    pub(crate) fn and(self, other: Self) -> Self {
        let Self {
            timeout,
            restarts,
            lazy,
            required,
            list_every,
            rate_limit,
            one_at_a_time,
            mut resources,
        } = other;
        resources.extend(self.resources);
        Self {
            timeout: self.timeout.max(timeout),
            restarts: self.restarts.max(restarts),
            lazy: self.lazy && lazy,
            required: self.required || required,
            list_every: smaller(self.list_every, list_every),
            rate_limit: smaller(self.rate_limit, rate_limit),
            one_at_a_time: self.one_at_a_time || one_at_a_time,
            resources,
        }
    }
}

/// The smaller of two bounds, where none means that there is no bound.
fn smaller<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upkeep(patient: bool) -> Upkeep {
        let number = if patient { 9 } else { 3 };
        Upkeep {
            timeout: Duration::from_secs(number),
            restarts: number as u32,
            lazy: patient,
            required: !patient,
            list_every: patient.then_some(Duration::from_secs(60)),
            rate_limit: NonZeroU32::new(if patient { 0 } else { 5 }),
            one_at_a_time: patient,
            resources: BTreeSet::from([format!("memo:{number}")]),
        }
    }

    #[test]
    fn what_protects_a_server_follows_the_strictest_and_the_rest_the_most_demanding() {
        let both = upkeep(true).and(upkeep(false));
        assert_eq!(both, upkeep(false).and(upkeep(true)), "in whatever order");
        let expected = Upkeep {
            timeout: Duration::from_secs(9),
            restarts: 9,
            lazy: false,
            required: true,
            list_every: Some(Duration::from_secs(60)),
            rate_limit: NonZeroU32::new(5),
            one_at_a_time: true,
            resources: ["memo:3", "memo:9"].map(str::to_owned).into(),
        };
        assert_eq!(both, expected);
    }
}
