//! Servers as users see them in the shell and in chat: in a list, and in the table of one server (L9).

use std::time::Duration;

use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::server::status::{ActiveTransport, ServerState, ServerStatus};
use openclaw_protocol::mcp::GrantInfo;

use super::state_text::{auth, expiry, state, telling_line};

/// The most characters shown of a text of a server.
const TEXT_CHARS: usize = 300;

/// A server in a list. Its texts are in one line each, without control characters.
#[derive(Debug)]
pub struct ListedServer {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: ServerState,
    /// Its state in words.
    pub state_text: String,
    /// Its program or URL; may be empty.
    pub target: String,
    /// Its last error with what explains it and a hint, each behind its mark.
    pub error: Vec<(&'static str, String)>,
    /// What can follow the state, the longest first.
    details: Vec<String>,
}

impl ListedServer {
    /// Describes a server.
    #[must_use]
    pub fn new(status: &ServerStatus) -> Self {
        let target = match status.transport {
            ActiveTransport::Stdio if !status.target.is_empty() => {
                format!("stdio://{}", status.target)
            }
            _ => status.target.clone(),
        };
        let (auth, tools) = (auth(status), status.tools);
        let with_expiry = expiry(status.token_expires_at_ms)
            .map(|at| format!(" | Auth: {auth} until {at} | Tools: {tools}"));
        let all = format!(" | Auth: {auth} | Tools: {tools}");
        let fewer = format!(" | Tools: {tools}");
        let error = status.last_error.as_ref().map(|error| {
            let line = telling_line(&error.last_lines);
            [("✗", Some(error.message.as_str())), ("|", line), ("→", error.hint.as_deref())]
        });
        let error = error.into_iter().flatten();
        Self {
            name: status.name.clone(),
            state: status.state,
            state_text: clean(&state(status), usize::MAX),
            target: clean(&target, usize::MAX),
            error: error
                .filter_map(|(mark, text)| Some((mark, clean(text?, TEXT_CHARS))))
                .collect(),
            details: with_expiry.into_iter().chain([all, fewer]).collect(),
        }
    }

    /// Returns what follows the state within this many characters. Where there are few, the number of
    /// tools matters more than the kind of login.
    #[must_use]
    pub fn details(&self, room: usize) -> &str {
        let fitting = self.details.iter().find(|text| text.chars().count() <= room);
        fitting.map_or("", String::as_str)
    }
}

/// The rows of the table of one server, with the login there.
#[must_use]
pub fn status_rows(
    status: &ServerStatus,
    login: Option<&GrantInfo>,
) -> Vec<(&'static str, String)> {
    let text = |value: Option<&str>| {
        value.map_or_else(|| "–".to_owned(), |value| clean(value, TEXT_CHARS))
    };
    let ms = |value: Option<f64>| text(value.map(|value| format!("{value} ms")).as_deref());
    let seconds = |ms: Option<u64>, ago: &str| {
        let seconds = ms.map(|ms| Duration::from_millis(ms).as_secs_f64());
        text(seconds.map(|seconds| format!("{seconds:.1} s{ago}")).as_deref())
    };
    let yes_or_no = |value: bool| if value { "yes" } else { "no" }.to_owned();
    let transport = match status.transport {
        ActiveTransport::Stdio => "stdio",
        ActiveTransport::Http => "http",
        ActiveTransport::Sse => "sse",
    };
    let mut rows = vec![
        ("Name", status.name.clone()),
        ("State", state(status)),
        ("Transport", transport.to_owned()),
        ("Target", clean(&status.target, TEXT_CHARS)),
        ("Program", text(status.program.as_deref())),
        ("Protocol", text(status.protocol_version.as_deref())),
        ("Session", text(status.session_id.as_deref())),
        ("Auth", auth(status).to_owned()),
    ];
    match login {
        Some(login) => rows.extend(login_rows(login)),
        None => {
            let expires = expiry(status.token_expires_at_ms);
            rows.extend(expires.map(|at| ("Token expires", at)));
        }
    }
    rows.extend([
        ("Lazy", yes_or_no(status.lazy)),
        ("Required", yes_or_no(status.required)),
        ("Uptime", seconds(status.uptime_ms, "")),
        ("Last seen", seconds(status.last_answer_age_ms, " ago")),
        ("Restarts", status.restarts.to_string()),
        ("Tools", status.tools.to_string()),
        ("Resources", status.resources.to_string()),
        ("Prompts", status.prompts.to_string()),
        ("Calls", format!("{} ({} failed)", status.calls, status.errors)),
        ("Latency p50", ms(status.p50_ms)),
        ("Latency p95", ms(status.p95_ms)),
    ]);
    if let Some(count) = status.client_connections {
        rows.push(("Per client", format!("yes, {count} connected")));
    }
    if let Some(error) = &status.last_error {
        rows.push(("Last error", clean(&error.message, TEXT_CHARS)));
        rows.extend(error.hint.iter().map(|hint| ("Hint", clean(hint, TEXT_CHARS))));
        let lines: Vec<String> =
            error.last_lines.iter().map(|line| clean(line, TEXT_CHARS)).collect();
        if !lines.is_empty() {
            rows.push(("Stderr", lines.join("\n")));
        }
    }
    rows
}

/// The rows of the login at a server.
fn login_rows(grant: &GrantInfo) -> Vec<(&'static str, String)> {
    let GrantInfo { issuer, scopes, expires_at_ms, renewable, registration, bound, key_in } = grant;
    let renewed = if *renewable { "renewed automatically" } else { "then a login is required" };
    let expires = match expiry(*expires_at_ms) {
        Some(at) => format!("{at} ({renewed})"),
        None => "unknown".to_owned(),
    };
    let client = match registration.as_str() {
        "configured" => "configured in its entry",
        "metadata-document" => "known by its metadata document",
        "dynamic" => "registered automatically",
        _ => "unknown",
    };
    let scopes = match scopes.is_empty() {
        true => "–".to_owned(),
        false => clean(&scopes.join(" "), TEXT_CHARS),
    };
    let mut rows = vec![
        ("Issuer", clean(issuer, TEXT_CHARS)),
        ("Scopes", scopes),
        ("Expires", expires),
        ("Client", client.to_owned()),
    ];
    if *bound {
        rows.push(("Bound to key", "yes (DPoP)".to_owned()));
    }
    rows.extend(key_in.iter().map(|place| ("Encrypted by", place.clone())));
    rows
}

fn clean(text: &str, most: usize) -> String {
    clean_line(Untrusted::new(text), most)
}
