//! All metrics: names, types and descriptions.

/// A metric, with a series for each combination of its labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricFamily {
    /// The name; samples of counters add `_total`.
    pub name: &'static str,
    /// The type.
    pub kind: MetricKind,
    /// The description.
    pub help: &'static str,
    /// The names of the labels.
    pub labels: &'static [&'static str],
}

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows.
    Counter,
    /// Grows and shrinks.
    Gauge,
    /// Durations in buckets.
    Histogram,
}

impl MetricKind {
    /// Returns its name in the exposition.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

impl MetricFamily {
    /// Returns the names of its samples.
    pub fn samples(&self) -> Vec<String> {
        let endings: &[&str] = match self.kind {
            MetricKind::Counter => &["_total"],
            MetricKind::Gauge => &[""],
            MetricKind::Histogram => &["_bucket", "_sum", "_count"],
        };
        endings.iter().map(|ending| format!("{}{ending}", self.name)).collect()
    }
}

macro_rules! families {
    ($($constant:ident $kind:ident $name:literal [$($label:literal)*] $help:literal;)*) => {
        $(
            #[doc = $help]
            pub const $constant: MetricFamily = MetricFamily {
                name: $name,
                kind: MetricKind::$kind,
                help: $help,
                labels: &[$($label),*],
            };
        )*

        /// All metrics, in the order of the exposition.
        pub const ALL: &[MetricFamily] = &[$($constant),*];
    };
}

families! {
    BUILD Gauge "openclaw_build_info" ["version"]
        "The version of the gateway; always 1.";
    STARTED Gauge "openclaw_start_time_seconds" []
        "When the gateway was started, in seconds since 1970.";
    CALLS Counter "openclaw_tool_calls" ["source" "server" "tool" "outcome"]
        "Tool calls by outcome, including refused ones.";
    CALL_DURATION Histogram "openclaw_tool_call_duration_seconds" ["source" "server" "tool"]
        "Durations of tool calls that were executed.";
    CALLS_IN_FLIGHT Gauge "openclaw_tool_calls_in_flight" ["source" "server"]
        "Tool calls that are being executed.";
    CALLS_REFUSED Counter "openclaw_tool_calls_refused" ["source" "server" "check"]
        "Tool calls that a check refused before they were executed.";
    FINDINGS Counter "openclaw_suspicious_findings" ["source" "server"]
        "Suspicious findings in results of tools.";
    APPROVALS_REQUESTED Counter "openclaw_approvals_requested" []
        "Requests for approval of a tool call.";
    APPROVALS_ANSWERED Counter "openclaw_approvals_answered" ["answer"]
        "Answers to requests for approval.";
    APPROVALS_PENDING Gauge "openclaw_approvals_pending" []
        "Requests for approval that wait for an answer.";
    SERVER_STATE Gauge "openclaw_mcp_server_state" ["server" "state"]
        "The state of an MCP server: 1 for the current one, 0 for the others.";
    SERVER_RESTARTS Counter "openclaw_mcp_server_restarts" ["server"]
        "Attempts to connect to an MCP server again after it failed.";
    SERVER_RECEIVED Counter "openclaw_mcp_server_received_bytes" ["server"]
        "Bytes of messages from an MCP server.";
    SERVER_SENT Counter "openclaw_mcp_server_sent_bytes" ["server"]
        "Bytes of messages to an MCP server.";
    TOOLS_CHANGED Counter "openclaw_mcp_tools_changed" ["server"]
        "Tools whose definition has changed since the user saw or approved it.";
    DESCRIPTION_FINDINGS Counter "openclaw_mcp_description_findings" ["server"]
        "Suspicious findings in descriptions of new and changed tools of an MCP server.";
    TOKEN_REFRESHES Counter "openclaw_oauth_token_refreshes" ["server" "outcome"]
        "Refreshes of the access token for an MCP server.";
    TURNS Counter "openclaw_turns" ["agent" "outcome"]
        "Turns of agents by outcome.";
    TURN_DURATION Histogram "openclaw_turn_duration_seconds" ["agent"]
        "Durations of turns, without the wait for earlier turns of the session.";
    MODEL_REQUESTS Counter "openclaw_model_requests" ["model" "outcome"]
        "Requests to models.";
    MODEL_TOKENS Counter "openclaw_model_tokens" ["model" "kind"]
        "Tokens used; input includes cached tokens.";
    MODEL_COST Counter "openclaw_model_cost_usd" ["model"]
        "Cost of requests in US dollars, where the provider reports it.";
    CLIENTS Gauge "openclaw_clients" []
        "Connected clients.";
    SESSIONS Gauge "openclaw_sessions_active" []
        "Sessions with a turn that runs or waits.";
    QUEUE Gauge "openclaw_queue_depth" ["queue"]
        "Items that wait: turns behind another of their session, audit lines, messages to the slowest client.";
    EVENT_LAG Gauge "openclaw_event_lag_seconds" []
        "How long the oldest message to a client, such as an event, has waited to be sent.";
    EVENTS_LOST Counter "openclaw_events_lost" []
        "Events that clients lost because they read too slowly.";
    AUDIT_LOST Counter "openclaw_audit_lines_lost" []
        "Lines that the audit log lost because its queue was full.";
}
