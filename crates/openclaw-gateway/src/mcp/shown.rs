//! How a server is, in the words of a list: the same wherever people look.

use openclaw_mcp::server::status::{AuthKind, ServerState, ServerStatus};

/// What a line holds that says what went wrong.
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

/// A state in the words of a list.
#[must_use]
pub fn state(status: &ServerStatus) -> String {
    match (status.state, status.pid) {
        (ServerState::Ready, Some(pid)) => format!("Running (PID {pid})"),
        (ServerState::Ready, None) => "Connected".to_owned(),
        (ServerState::Disabled, _) => "Disabled".to_owned(),
        (ServerState::Idle, _) => "Idle (starts on first use)".to_owned(),
        (ServerState::Connecting, _) => with_try("Connecting", status.restarts),
        (ServerState::NeedsAuth, _) => "Login required".to_owned(),
        (ServerState::Restarting, _) => with_try("Restarting", status.restarts),
        (ServerState::Failed, _) => "Failed".to_owned(),
        (ServerState::Closed, _) => "Disconnected".to_owned(),
    }
}

/// `Restarting (attempt 2)`: how often it was tried again, if it was.
#[must_use]
pub fn with_try(word: &str, restarts: u32) -> String {
    match restarts {
        0 => word.to_owned(),
        count => format!("{word} (attempt {count})"),
    }
}

/// How we log in, in the words of a list.
#[must_use]
pub fn auth(auth: AuthKind) -> &'static str {
    match auth {
        AuthKind::None => "None",
        AuthKind::ApiKey => "API Key",
        AuthKind::Header => "Header",
    }
}

/// Of a program's last lines the one that says most about why it ended: often a trace or a version
/// follows upon it.
#[must_use]
pub fn telling_line(lines: &[String]) -> Option<&str> {
    let score = |line: &&String| {
        // What is indented belongs to the line before it.
        if line.starts_with([' ', '\t']) {
            return 0;
        }
        let line = line.to_lowercase();
        1 + TELLING.iter().filter(|word| line.contains(**word)).count()
    };
    let best = lines.iter().map(|line| score(&line)).max()?;
    // Without any such word the last one is as good as any.
    let line = if best > 1 { lines.iter().rfind(|line| score(line) == best) } else { lines.last() };
    line.map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn telling(text: &str) -> Option<String> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        telling_line(&lines).map(str::to_owned)
    }

    #[test]
    fn the_line_that_names_the_fault_is_told_and_not_what_follows_upon_it() {
        let node = "throw err;\nError: Cannot find module 'x'\n    at error (a.js)\n}\nNode.js v22";
        assert_eq!(telling(node).as_deref(), Some("Error: Cannot find module 'x'"));
        let python = "Traceback:\n  File \"a.py\"\nModuleNotFoundError: No module named 'x'";
        assert_eq!(telling(python).as_deref(), Some("ModuleNotFoundError: No module named 'x'"));
        let npm = "npm error code E404\nnpm error 404 Not Found - x\nnpm error A complete log is";
        assert_eq!(telling(npm).as_deref(), Some("npm error 404 Not Found - x"));
    }

    #[test]
    fn where_no_line_names_a_fault_the_last_one_is_told() {
        assert_eq!(telling("starting\nbye").as_deref(), Some("bye"));
        assert_eq!(telling(""), None);
    }

    #[test]
    fn a_try_is_counted_once_there_is_one() {
        assert_eq!(with_try("Restarting", 0), "Restarting");
        assert_eq!(with_try("Restarting", 2), "Restarting (attempt 2)");
    }

    #[test]
    fn a_server_that_is_tried_again_has_not_failed() {
        let status = |state: &str| -> ServerStatus {
            serde_json::from_value(serde_json::json!({
                "name": "x", "state": state, "transport": "stdio", "target": "", "auth": "none",
                "lazy": false, "required": false, "restarts": 3, "tools": 0, "resources": 0,
                "prompts": 0, "calls": 0, "errors": 0,
            }))
            .unwrap()
        };
        assert_eq!(state(&status("restarting")), "Restarting (attempt 3)");
        assert_eq!(state(&status("failed")), "Failed");
    }
}
