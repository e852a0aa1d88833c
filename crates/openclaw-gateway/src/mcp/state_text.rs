//! Texts for the state of a server, the same in all front ends.

use openclaw_mcp::server::status::{ActiveTransport, AuthKind, ServerState, ServerStatus};

/// Words that mark a line as an error message.
const TELLING: [&str; 16] = [
    "error",
    "exception",
    "fatal",
    "panic",
    "cannot",
    "can't",
    "could not",
    "failed",
    "not found",
    "no such",
    "no module",
    "denied",
    "refused",
    "missing",
    "invalid",
    "required",
];

/// The text for a server's state.
#[must_use]
pub(super) fn state(status: &ServerStatus) -> String {
    match (status.state, status.pid) {
        (ServerState::Ready, Some(pid)) => format!("Running (PID {pid})"),
        (ServerState::Ready, None) => "Connected".to_owned(),
        (ServerState::Disabled, _) => "Disabled".to_owned(),
        (ServerState::Idle, _) => "Idle (starts on first use)".to_owned(),
        (ServerState::Connecting, _) => with_try("Connecting", status.restarts),
        (ServerState::NeedsAuth, _) => "Login required".to_owned(),
        (ServerState::Restarting, _) => with_try(
            if is_process(status) { "Restarting" } else { "Reconnecting" },
            status.restarts,
        ),
        (ServerState::Failed, _) => "Failed".to_owned(),
        (ServerState::Closed, _) => "Disconnected".to_owned(),
    }
}

fn is_process(status: &ServerStatus) -> bool {
    status.transport == ActiveTransport::Stdio
}

/// `restarting (attempt 2)`, or `reconnecting` for a server at a URL.
#[must_use]
pub fn retrying(status: &ServerStatus) -> String {
    let word = if is_process(status) { "restarting" } else { "reconnecting" };
    with_try(word, status.restarts)
}

/// `Restarting (attempt 2)`: adds the number of restarts, if any.
fn with_try(word: &str, restarts: u32) -> String {
    match restarts {
        0 => word.to_owned(),
        count => format!("{word} (attempt {count})"),
    }
}

/// The state of a server in one line, with the cause if it is not ready.
#[must_use]
pub fn summary(status: &ServerStatus) -> String {
    let error = status.last_error.as_ref();
    match status.state {
        ServerState::Ready => match status.tools {
            1 => "1 tool".to_owned(),
            count => format!("{count} tools"),
        },
        ServerState::Connecting => "starting".to_owned(),
        ServerState::Idle => "starts on first use".to_owned(),
        ServerState::Disabled => "disabled".to_owned(),
        ServerState::Closed => "stopped".to_owned(),
        ServerState::NeedsAuth => match error.and_then(|error| error.hint.as_deref()) {
            Some(hint) => format!("login required: {hint}"),
            None => "login required".to_owned(),
        },
        ServerState::Restarting => {
            let retrying = retrying(status);
            match error {
                Some(error) => format!("{retrying}: {}", error.message),
                None => retrying,
            }
        }
        ServerState::Failed => match error {
            Some(error) => error.message.clone(),
            None => "not available".to_owned(),
        },
    }
}

/// The text for a server's authentication.
#[must_use]
pub(super) fn auth(status: &ServerStatus) -> &'static str {
    match status.auth {
        AuthKind::None if status.state == ServerState::NeedsAuth => "Not logged in",
        AuthKind::None => "None",
        AuthKind::ApiKey => "API Key",
        AuthKind::Header => "Header",
        AuthKind::OAuth => "OAuth",
    }
}

/// The text for the time when a token expires.
#[must_use]
pub fn expiry(at_ms: Option<i64>) -> Option<String> {
    let at = jiff::Timestamp::from_millisecond(at_ms?).ok()?;
    Some(at.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

/// Returns the line of a process's last output that best explains why it exited; often a trace or a
/// version follows it.
#[must_use]
pub(super) fn telling_line(lines: &[String]) -> Option<&str> {
    let score = |line: &&String| {
        // An indented line continues the one before it.
        if line.starts_with([' ', '\t']) {
            return 0;
        }
        let line = line.to_lowercase();
        1 + TELLING.iter().filter(|word| line.contains(**word)).count()
    };
    let best = lines.iter().map(|line| score(&line)).max()?;
    // Without an error message, the last line is used.
    let line = if best > 1 { lines.iter().rfind(|line| score(line) == best) } else { lines.last() };
    line.map(String::as_str)
}

#[cfg(test)]
mod tests {
    use openclaw_mcp::server::supervisor::ServerError;

    use super::*;

    fn telling(text: &str) -> Option<String> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        telling_line(&lines).map(str::to_owned)
    }

    #[test]
    fn the_error_message_is_found_and_not_what_follows_it() {
        let node = "throw err;\nError: Cannot find module 'x'\n    at error (a.js)\n}\nNode.js v22";
        assert_eq!(telling(node).as_deref(), Some("Error: Cannot find module 'x'"));
        let python = "Traceback:\n  File \"a.py\"\nModuleNotFoundError: No module named 'x'";
        assert_eq!(telling(python).as_deref(), Some("ModuleNotFoundError: No module named 'x'"));
        let npm = "npm error code E404\nnpm error 404 Not Found - x\nnpm error A complete log is";
        assert_eq!(telling(npm).as_deref(), Some("npm error 404 Not Found - x"));
    }

    #[test]
    fn without_an_error_message_the_last_line_is_returned() {
        assert_eq!(telling("starting\nbye").as_deref(), Some("bye"));
        assert_eq!(telling(""), None);
    }

    #[test]
    fn a_try_is_counted_once_there_is_one() {
        assert_eq!(with_try("Restarting", 0), "Restarting");
        assert_eq!(with_try("Restarting", 2), "Restarting (attempt 2)");
    }

    fn status(state: ServerState) -> ServerStatus {
        ServerStatus { name: "x".to_owned(), state, ..ServerStatus::default() }
    }

    #[test]
    fn a_server_that_needs_a_login_is_not_shown_as_without_one() {
        assert_eq!(auth(&status(ServerState::NeedsAuth)), "Not logged in");
        assert_eq!(auth(&status(ServerState::Ready)), "None");
    }

    #[test]
    fn a_server_that_is_retried_is_shown_as_restarting_with_the_cause() {
        let lost = ServerStatus {
            last_error: Some(ServerError::new("exited with status 1")),
            ..status(ServerState::Restarting)
        };
        assert_eq!(summary(&lost), "restarting: exited with status 1");
        let again = ServerStatus { restarts: 2, ..lost.clone() };
        assert_eq!(summary(&again), "restarting (attempt 2): exited with status 1");
        assert_eq!(state(&again), "Restarting (attempt 2)");
        let remote = ServerStatus { transport: ActiveTransport::Http, ..again };
        assert_eq!(summary(&remote), "reconnecting (attempt 2): exited with status 1");
        assert_eq!(state(&remote), "Reconnecting (attempt 2)");
        let failed = ServerStatus { state: ServerState::Failed, ..lost };
        assert_eq!(summary(&failed), "exited with status 1");
        assert_eq!(state(&failed), "Failed");
    }
}
