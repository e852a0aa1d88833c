//! Results of commands as text: aligned columns, and server texts without terminal escapes.

use openclaw_content::{Untrusted, clean_line, wrap_words};
use openclaw_mcp::server::status::{AuthKind, ServerState, ServerStatus};
use openclaw_oauth::issuer::confirmation_hint;
use openclaw_protocol::mcp::{AuthResult, GrantInfo, RefreshResult, Refreshed, Tool, ToolsResult};

use super::Done;
use crate::mcp::server_list::{ListedServer, status_rows};
use crate::mcp::state_text::summary;

/// Number of added, removed or changed names that are listed.
const FEW: usize = 5;
/// Maximum length of a URL, which must not be cut.
const URL: usize = 8 * 1024;
/// Maximum characters of a line from outside.
const LINE: usize = 300;
/// Maximum characters of a description in a list.
const DESCRIPTION: usize = 100;
/// Minimum and maximum width of the name column, of tools and of servers.
const NAME_COLUMN: (usize, usize) = (14, 40);
const SERVER_COLUMN: (usize, usize) = (14, 30);
/// The width of a list of servers, and of the rule around it.
const WIDTH: usize = 120;
const RULE: usize = 72;
/// Maximum number of tools listed.
const MOST_TOOLS: usize = 300;

impl Done {
    /// The result as text.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Servers(_, statuses) => servers(statuses),
            Self::Tools(result) => tools(result),
            Self::Status(status, login) => status_table(status, login.as_ref()),
            Self::Refreshed(result) => refreshed(result),
            Self::Connected(status) => connected(status),
            Self::Disconnected(status) => {
                let name = &status.name;
                format!(
                    "{name} is disconnected. If it is configured, `/mcp refresh {name}` reconnects it."
                )
            }
            Self::Auth(name, result) => auth(name, result),
            Self::LoggedOut(name, result) => logged_out(name, result),
        }
    }
}

fn clean(text: &str, most: usize) -> String {
    clean_line(Untrusted::new(text), most)
}

fn column<'a>(names: impl Iterator<Item = &'a str>, (least, most): (usize, usize)) -> usize {
    names.map(|name| name.chars().count()).max().unwrap_or(0).clamp(least, most) + 2
}

fn servers(statuses: &[ServerStatus]) -> String {
    if statuses.is_empty() {
        return "No MCP servers. Use `/mcp connect URL` to connect to one.".to_owned();
    }
    let column = column(statuses.iter().map(|status| status.name.as_str()), SERVER_COLUMN);
    let entries: Vec<String> =
        statuses.iter().map(|status| server(&ListedServer::new(status), column)).collect();
    let rule = "─".repeat(RULE);
    let count = statuses.len();
    format!("MCP Servers ({count} configured)\n{rule}\n{}\n{rule}", entries.join("\n\n"))
}

fn server(server: &ListedServer, column: usize) -> String {
    let room = WIDTH - column - 3;
    let name = &server.name;
    let target = clean(&server.target, room);
    // Names are never truncated: users type them.
    let is_beside = name.chars().count() + 2 <= column && !target.is_empty();
    let head = match is_beside {
        true => format!("  {name:column$}{target}"),
        false if target.is_empty() => format!("  {name}"),
        false => format!("  {name}\n  {:column$}{target}", ""),
    };
    let room_for_state = room - "Status: ".len();
    let state = clean(&server.state_text, room_for_state);
    let details = server.details(room_for_state.saturating_sub(state.chars().count()));
    let mut text = format!("{head}\n  {:column$}Status: {state}{details}", "");
    for (mark, part) in &server.error {
        for (at, line) in wrap_words(part, room - 2).iter().enumerate() {
            let mark = if at == 0 { mark } else { " " };
            text.push_str(&format!("\n  {:column$}{mark} {line}", ""));
        }
    }
    text
}

fn tools(result: &ToolsResult) -> String {
    let ToolsResult { tools, left_out, missing } = result;
    let mut lines = Vec::new();
    if tools.is_empty() {
        lines.push("No tools.".to_owned());
    }
    let column = column(tools.iter().map(|tool| tool.name.as_str()), NAME_COLUMN);
    lines.extend(tools.iter().take(MOST_TOOLS).map(|it| tool(it, column)));
    if tools.len() > MOST_TOOLS {
        let more = tools.len() - MOST_TOOLS;
        lines.push(format!(
            "  and {more} more; use `/mcp tools SERVER` to list those of one server"
        ));
    }
    for it in left_out {
        let (name, reason) = (clean(&it.name, LINE), clean(&it.reason, LINE));
        lines.push(format!("✗ skipped `{name}` of {}: {reason}", it.server));
    }
    lines.extend(missing.iter().map(|it| format!("✗ {}", clean(&it.error, LINE))));
    lines.join("\n")
}

fn tool(tool: &Tool, column: usize) -> String {
    // A longer name than the column needs a gap of its own.
    let name = format!("{:1$}  ", tool.name, column - 2);
    // A model reads this, too: it must not see a description that was not approved.
    if tool.changed {
        return format!("  {name}[changed] run `openclaw mcp tools --schema` to review it");
    }
    let described = clean(tool.description.as_deref().unwrap_or("(no description)"), DESCRIPTION);
    let remark = match (&tool.denied_by, &tool.unusable) {
        (Some(by), _) => format!("[denied by {by}] "),
        (None, Some(why)) => format!("[unusable: {}] ", clean(why, LINE)),
        (None, None) => String::new(),
    };
    format!("  {name}{remark}{described}")
}

fn status_table(status: &ServerStatus, login: Option<&GrantInfo>) -> String {
    let rows = status_rows(status, login).into_iter();
    // A value of several lines is indented as a whole.
    let row = |(key, value): (&str, String)| {
        format!("  {key:15}{}", value.replace('\n', &format!("\n{:17}", "")))
    };
    rows.map(row).collect::<Vec<_>>().join("\n")
}

fn refreshed(result: &RefreshResult) -> String {
    if result.servers.is_empty() {
        return "No MCP servers to refresh.".to_owned();
    }
    result.servers.iter().map(refreshed_one).collect::<Vec<_>>().join("\n")
}

fn refreshed_one(it: &Refreshed) -> String {
    if let Some(error) = &it.error {
        return format!("✗ {}", clean(error, LINE));
    }
    let count = |count: Option<u64>, thing: &str| match count.unwrap_or(0) {
        1 => format!("1 {thing}"),
        count => format!("{count} {thing}s"),
    };
    let (tools, resources) = (count(it.tools, "tool"), count(it.resources, "resource"));
    let prompts = count(it.prompts, "prompt");
    let mut text = format!("✓ {}: {tools}, {resources}, {prompts}", it.name);
    let mut is_same = true;
    for (mark, names) in [("+", &it.added), ("-", &it.removed), ("~", &it.changed)] {
        let names = names.as_deref().unwrap_or_default();
        is_same &= names.is_empty();
        for name in names.iter().take(FEW) {
            text.push_str(&format!("\n  {mark} {}", clean(name, LINE)));
        }
        if let Some(more) = names.len().checked_sub(FEW).filter(|more| *more > 0) {
            text.push_str(&format!("\n  {mark} {more} more"));
        }
    }
    if is_same {
        text.push_str("\n  no changes");
    }
    text
}

fn connected(status: &ServerStatus) -> String {
    let name = &status.name;
    match status.state {
        ServerState::Ready => format!(
            "✓ {name} is connected: {} tools. It stays connected until this program exits; to keep \
             it, run `openclaw mcp connect`.",
            status.tools
        ),
        ServerState::NeedsAuth => {
            let error = status.last_error.as_ref();
            let hint = match status.auth {
                // It may have no entry, which a command of the shell needs.
                AuthKind::None | AuthKind::OAuth => Some(format!("use `/mcp login {name}`")),
                _ => error.and_then(|it| it.hint.as_deref()).map(|hint| clean(hint, LINE)),
            };
            let hint = hint.map(|hint| format!("\nhint: {hint}"));
            format!("{name} requires a login.{}", hint.unwrap_or_default())
        }
        _ => format!("{name}: {}", summary(status)),
    }
}

fn auth(name: &str, result: &AuthResult) -> String {
    if let Some(url) = &result.url {
        return format!(
            "Open this URL within 15 minutes to log in to {name}:\n\n{}\n\nThe server is connected when you \
             are done. If the browser cannot reach this machine, copy the URL that it was redirected \
             to:\n/mcp login {name} --code URL",
            clean(url, URL)
        );
    }
    let message = result.message.as_ref().map(|it| format!(": {}", clean(it, LINE)));
    match (result.state.as_str(), &result.grant) {
        ("authorized", Some(grant)) => {
            format!("Logged in to {name} ({}).", clean(&grant.issuer, LINE))
        }
        ("authorized", None) => format!("{name} is authorized."),
        ("pending", _) => format!("A login to {name} is in progress."),
        ("failed", _) => format!("The login to {name} failed{}", message.unwrap_or_default()),
        ("unconfirmed", _) => {
            let issuer = result.issuer.as_deref().unwrap_or_default();
            let hint = confirmation_hint(name, issuer);
            let reason = clean(result.message.as_deref().unwrap_or_default(), 3 * LINE);
            format!("Not logged in to {name}: {reason}.\nhint: {hint}")
        }
        ("required", _) => format!("{name} requires a login.\nhint: use `/mcp login {name}`"),
        _ => format!("{name} needs no login."),
    }
}

fn logged_out(name: &str, result: &AuthResult) -> String {
    match &result.message {
        Some(message) => format!("Logged out of {name}, but {}", clean(message, LINE)),
        None => format!("Logged out of {name}."),
    }
}

#[cfg(test)]
mod tests {
    use openclaw_mcp::server::supervisor::ServerError;

    use super::*;

    #[test]
    fn a_login_of_a_server_without_an_entry_is_a_command_of_the_chat() {
        let hint = Some("run `openclaw mcp login x`, or set `apiKey` in its entry".to_owned());
        let of = |auth| ServerStatus {
            name: "x".to_owned(),
            state: ServerState::NeedsAuth,
            auth,
            last_error: Some(ServerError { hint: hint.clone(), ..ServerError::new("no") }),
            ..ServerStatus::default()
        };
        let told = connected(&of(AuthKind::None));
        assert_eq!(told, "x requires a login.\nhint: use `/mcp login x`");
        let told = connected(&of(AuthKind::ApiKey));
        assert!(told.contains("\nhint: run `openclaw mcp login x`, or set `apiKey`"), "{told}");
    }

    #[test]
    fn only_the_first_few_changed_tools_are_named() {
        let names = |count: usize| Some((0..count).map(|nth| format!("t{nth}")).collect());
        let of = |added| Refreshed {
            name: "x".to_owned(),
            ok: true,
            tools: Some(95),
            resources: None,
            prompts: None,
            added,
            removed: names(0),
            changed: names(1),
            error: None,
            needs_login: false,
            hint: None,
            last_lines: Vec::new(),
        };
        let told = refreshed_one(&of(names(95)));
        assert!(told.contains("\n  + t4\n  + 90 more\n  ~ t0"), "{told}");
        assert!(!told.contains("t5") && !told.contains("no changes"), "{told}");
        assert!(!refreshed_one(&of(names(5))).contains("more"));
    }
}
