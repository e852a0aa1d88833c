//! Merges the settings of agents that share a server (L7, L10).
//!
//! What an agent may do with a server depends only on that agent ([`crate::catalogue::member`]).
//! Settings of the server as a whole are merged here: for limits the strictest agent wins, for
//! availability the most demanding one.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

use openclaw_config::{LogLevel, McpSettings, ServerOptions};

/// The settings of a server, merged from all agents that use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SharedOptions {
    /// The connect timeout: the longest of all agents.
    pub(crate) timeout: Duration,
    /// The maximum number of restarts in a row after a crash: the highest of all agents.
    pub(crate) restarts: u32,
    /// Whether it is connected on first use: only if all agents say so.
    pub(crate) lazy: bool,
    /// Whether an agent requires it.
    pub(crate) required: bool,
    /// How often to list again, regardless of notifications: the shortest interval.
    pub(crate) list_every: Option<Duration>,
    /// Calls per minute for all agents together: the lowest limit.
    pub(crate) rate_limit: Option<NonZeroU32>,
    /// Whether an agent limits it to one call at a time.
    pub(crate) one_at_a_time: bool,
    /// The resources to subscribe to: those of all agents.
    pub(crate) resources: BTreeSet<String>,
    /// The level of its log messages: the most verbose one.
    pub(crate) log_level: Option<LogLevel>,
    /// Whether an agent gives each client of the hub a connection of its own.
    pub(crate) per_client: bool,
}

impl SharedOptions {
    /// The settings of one agent.
    pub(crate) fn new(options: &ServerOptions, settings: &McpSettings) -> Self {
        // Destructured exhaustively, so that a new setting does not compile until it is handled
        // here.
        let ServerOptions {
            timeout,
            restart_on_crash,
            max_restarts,
            lazy,
            required,
            rate_limit,
            supports_parallel_tool_calls,
            resources,
            log_level,
            per_client,
            // Per agent.
            tool_timeout: _,
            tool_prefix: _,
            tools: _,
            approval: _,
            max_result_chars: _,
            sampling: _,
        } = options;
        let McpSettings {
            tool_discovery_interval,
            // Per agent.
            tool_naming: _,
            call_timeout_cap: _,
            // Per program.
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
            log_level: *log_level,
            per_client: *per_client,
        }
    }

    /// Merges the settings of two agents.
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
            log_level,
            per_client,
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
            log_level: [self.log_level, log_level]
                .into_iter()
                .flatten()
                .min_by_key(|level| *level as u8),
            per_client: self.per_client || per_client,
        }
    }
}

/// Returns the lower of two limits, where `None` means no limit.
fn smaller<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upkeep(patient: bool) -> SharedOptions {
        let number = if patient { 9 } else { 3 };
        SharedOptions {
            timeout: Duration::from_secs(number),
            restarts: number as u32,
            lazy: patient,
            required: !patient,
            list_every: patient.then_some(Duration::from_secs(60)),
            rate_limit: NonZeroU32::new(if patient { 0 } else { 5 }),
            one_at_a_time: patient,
            resources: BTreeSet::from([format!("memo:{number}")]),
            log_level: Some(if patient { LogLevel::Error } else { LogLevel::Info }),
            per_client: !patient,
        }
    }

    #[test]
    fn limits_follow_the_strictest_agent_and_availability_the_most_demanding() {
        let both = upkeep(true).and(upkeep(false));
        assert_eq!(both, upkeep(false).and(upkeep(true)), "the order does not matter");
        let expected = SharedOptions {
            timeout: Duration::from_secs(9),
            restarts: 9,
            lazy: false,
            required: true,
            list_every: Some(Duration::from_secs(60)),
            rate_limit: NonZeroU32::new(5),
            one_at_a_time: true,
            resources: ["memo:3", "memo:9"].map(str::to_owned).into(),
            log_level: Some(LogLevel::Info),
            per_client: true,
        };
        assert_eq!(both, expected);
    }
}
