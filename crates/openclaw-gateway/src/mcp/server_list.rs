//! Servers as users see them in the shell and in chat: a list, and the table of one server (L9).

use std::fmt::Write as _;
use std::time::Duration;

use anstyle::Style;
use openclaw_content::{Untrusted, clean_line, wrap_words};
use openclaw_mcp::server::status::{ActiveTransport, ServerState, ServerStatus};
use openclaw_mcp::server::supervisor::ServerError;
use openclaw_protocol::mcp::GrantInfo;

use super::state_text::{auth, expiry, state, telling_line};

/// The least and the greatest width of the column of names.
const NAME_COLUMN: (usize, usize) = (14, 30);
/// In a narrower list, names have lines of their own.
const NARROW: usize = 76;
/// How far the rest is indented then.
const INDENT: usize = 2;
/// The width of most entries beside their name.
const ENTRY: usize = 60;
/// The longest rule.
const RULE: usize = 72;
/// The most characters shown of a text of a server.
const TEXT_CHARS: usize = 300;

/// How a list is drawn.
#[derive(Debug, Clone, Copy)]
pub struct ListStyle {
    /// Its width in columns.
    pub width: usize,
    /// For names.
    pub strong: Style,
    /// For what matters least.
    pub faint: Style,
    /// For servers that are ready.
    pub good: Style,
    /// For servers that are being restarted.
    pub warning: Style,
    /// For errors.
    pub bad: Style,
}

impl ListStyle {
    /// No colours.
    #[must_use]
    pub const fn plain(width: usize) -> Self {
        let none = Style::new();
        Self { width, strong: none, faint: none, good: none, warning: none, bad: none }
    }
}

/// All servers with their state, and the last error of those that have one.
#[must_use]
pub fn server_list(statuses: &[ServerStatus], style: &ListStyle) -> String {
    let ListStyle { width, strong, faint, .. } = style;
    let rule = "─".repeat(RULE.min(*width));
    let (least, most) = NAME_COLUMN;
    let longest = statuses.iter().map(|status| status.name.chars().count()).max().unwrap_or(0);
    let column = match *width {
        ..NARROW => INDENT,
        width => longest.clamp(least, most.min(width.saturating_sub(ENTRY)).max(least)) + 2,
    };
    let entries: Vec<String> = statuses.iter().map(|it| entry(it, column, style)).collect();
    format!(
        "{strong}MCP Servers ({} configured){strong:#}\n{faint}{rule}{faint:#}\n{}\n{faint}{rule}{faint:#}",
        statuses.len(),
        entries.join("\n\n")
    )
}

fn entry(status: &ServerStatus, column: usize, style: &ListStyle) -> String {
    let strong = style.strong;
    let room = style.width.saturating_sub(column + 3).max(20);
    let target = match status.transport {
        ActiveTransport::Stdio if !status.target.is_empty() => format!("stdio://{}", status.target),
        _ => status.target.clone(),
    };
    let (name, target) = (&status.name, clean(&target, room));
    // Names are never truncated: users type them.
    let is_beside = name.chars().count() + 2 <= column && !target.is_empty();
    let mut text = match is_beside {
        true => format!("  {strong}{name:column$}{strong:#}{target}"),
        false if target.is_empty() => format!("  {strong}{name}{strong:#}"),
        false => format!("  {strong}{name}{strong:#}\n  {:column$}{target}", ""),
    };
    let color = match status.state {
        ServerState::Ready => style.good,
        ServerState::Disabled | ServerState::Idle | ServerState::Connecting => style.faint,
        ServerState::Restarting => style.warning,
        _ => style.bad,
    };
    let room_after_label = room.saturating_sub("Status: ".len());
    let state = clean(&state(status), room_after_label);
    let rest = after_state(status, room_after_label.saturating_sub(state.chars().count()));
    let _ = write!(text, "\n  {:column$}Status: {color}{state}{color:#}{rest}", "");
    if let Some(error) = &status.last_error {
        text.push_str(&error_lines(error, column, room, style.bad));
    }
    text
}

/// What follows the state. Where it is narrow, the number of tools matters more than the kind of login.
fn after_state(status: &ServerStatus, room: usize) -> String {
    let (auth, tools) = (auth(status), status.tools);
    let with_expiry = expiry(status.token_expires_at_ms)
        .map(|at| format!(" | Auth: {auth} until {at} | Tools: {tools}"));
    let all = format!(" | Auth: {auth} | Tools: {tools}");
    let fewer = format!(" | Tools: {tools}");
    with_expiry
        .into_iter()
        .chain([all, fewer])
        .find(|text| text.chars().count() <= room)
        .unwrap_or_default()
}

fn error_lines(error: &ServerError, column: usize, room: usize, bad: Style) -> String {
    let line = telling_line(&error.last_lines);
    let parts = [("✗", Some(error.message.as_str())), ("|", line), ("→", error.hint.as_deref())];
    let mut text = String::new();
    for (mark, part) in parts {
        let part = part.map(|part| clean(part, TEXT_CHARS)).unwrap_or_default();
        for (at, line) in wrap_words(&part, room.saturating_sub(2)).iter().enumerate() {
            let mark = if at == 0 { mark } else { " " };
            let _ = write!(text, "\n  {:column$}{bad}{mark}{bad:#} {line}", "");
        }
    }
    text
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
