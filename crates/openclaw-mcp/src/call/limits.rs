//! The limits of a call: time, size of the result, calls per minute.

use openclaw_mcp_client::limiter::{AskedBy, RetryAfter};
use openclaw_mcp_client::wire::TimeLimits;
use openclaw_tools::CallOptions;
use tokio::time::Instant;

use crate::call::results::ResultLimits;
use crate::catalogue::member::FleetMember;
use crate::server::Server;

/// The timeouts of a call.
pub(crate) fn limits(options: CallOptions<'_>, member: &FleetMember) -> TimeLimits {
    let Some(deadline) = options.deadline else { return member.limits };
    let left = deadline.saturating_duration_since(Instant::now());
    TimeLimits { timeout: left, cap: left }
}

/// The size limits of a result.
pub(crate) fn result_limits(options: CallOptions<'_>, member: &FleetMember) -> ResultLimits {
    let usual = if options.everything { usize::MAX } else { member.options.max_result_chars };
    let max_chars = options.max_chars.map_or(usual, |most| most.min(usual));
    ResultLimits { max_chars, everything: options.everything }
}

/// Counts a call against the rate limits of its server. For a relay and for calls of a user, only a
/// pause that the server has asked for counts.
pub(crate) fn check_limit(
    server: &Server,
    now: Instant,
    options: CallOptions<'_>,
) -> Result<(), String> {
    let checked = if options.unlimited || options.relay.is_some() {
        server.limiter.check_pause(now)
    } else {
        server.limiter.check(now)
    };
    checked.map_err(|wait| limited(server.name().as_str(), wait))
}

/// The message for a call that was rate limited.
pub(crate) fn limited(server: &str, wait: RetryAfter) -> String {
    let seconds = wait.after.as_secs() + u64::from(wait.after.subsec_nanos() > 0);
    let server = match wait.asked_by {
        AskedBy::Us => {
            format!("Too many calls to MCP server '{server}' (`rateLimit` in its entry).")
        }
        AskedBy::Server => format!("MCP server '{server}' has asked for a pause."),
    };
    format!("{server} Retry in {seconds} s.")
}
