//! What came of an order, for people: columns that are aligned, and texts of servers without anything
//! that would command a terminal.

use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::server::status::{ServerState, ServerStatus, TransportKind};
use openclaw_mcp::server::supervisor::Trouble;
use openclaw_protocol::mcp::{AuthResult, RefreshResult, Refreshed, Tool, ToolsResult};

use super::Done;
use crate::mcp::{auth as auth_kind, state, telling_line};

/// So many of the names that are new, gone or different are listed.
const FEW: usize = 5;
/// How much of a line from outside is shown.
const LINE: usize = 300;
/// How much of a description is shown in a list.
const DESCRIPTION: usize = 100;
/// The names' column is at least as wide as this, and no wider than that.
const NAME_COLUMN: (usize, usize) = (14, 40);
/// The length of a rule.
const RULE: usize = 58;
/// More tools are not shown at once.
const MOST_TOOLS: usize = 300;

impl Done {
    /// For people.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Servers(_, statuses) => servers(statuses),
            Self::Tools(result) => tools(result),
            Self::Status(status) => status_table(status),
            Self::Refreshed(result) => refreshed(result),
            Self::Connected(status) => connected(status),
            Self::Disconnected(status) => {
                let name = &status.name;
                format!(
                    "{name} is disconnected. If it is configured, `/mcp refresh {name}` reconnects it."
                )
            }
            Self::Auth(name, result) => auth(name, result),
        }
    }
}

fn clean(text: &str, most: usize) -> String {
    clean_line(Untrusted::new(text), most)
}

fn column<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    let (least, most) = NAME_COLUMN;
    names.map(|name| name.chars().count()).max().unwrap_or(0).clamp(least, most) + 2
}

fn servers(statuses: &[ServerStatus]) -> String {
    if statuses.is_empty() {
        return "No MCP servers. Use `/mcp connect URL` to connect to one.".to_owned();
    }
    let rule = "─".repeat(RULE);
    let column = column(statuses.iter().map(|status| status.name.as_str()));
    let entries: Vec<String> = statuses.iter().map(|status| server(status, column)).collect();
    let count = statuses.len();
    format!("MCP Servers ({count} configured)\n{rule}\n{}\n{rule}", entries.join("\n\n"))
}

fn server(status: &ServerStatus, column: usize) -> String {
    let target = match status.transport {
        TransportKind::Stdio if !status.target.is_empty() => format!("stdio://{}", status.target),
        _ => status.target.clone(),
    };
    let mut text = format!("  {:column$}{}", status.name, clean(&target, LINE));
    let (state, auth) = (state(status), auth_kind(status.auth));
    let indent = " ".repeat(column + 2);
    text = text.trim_end().to_owned();
    text.push_str(&format!("\n{indent}Status: {state} | Auth: {auth} | Tools: {}", status.tools));
    status.last_error.iter().for_each(|trouble| text.push_str(&told(trouble, &indent)));
    text
}

fn told(trouble: &Trouble, indent: &str) -> String {
    let mut text = format!("\n{indent}✗ {}", clean(&trouble.message, LINE));
    if let Some(line) = telling_line(&trouble.last_lines) {
        text.push_str(&format!("\n{indent}| {}", clean(line, LINE)));
    }
    if let Some(hint) = &trouble.hint {
        text.push_str(&format!("\n{indent}→ {}", clean(hint, LINE)));
    }
    text
}

fn tools(result: &ToolsResult) -> String {
    let ToolsResult { tools, left_out, missing } = result;
    let mut lines = Vec::new();
    if tools.is_empty() {
        lines.push("No tools.".to_owned());
    }
    let column = column(tools.iter().map(|tool| tool.name.as_str()));
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
    let described = clean(tool.description.as_deref().unwrap_or("(no description)"), DESCRIPTION);
    let remark = match (&tool.denied_by, &tool.unusable, tool.changed) {
        (Some(by), ..) => format!("[denied by {by}] "),
        (None, Some(why), _) => format!("[unusable: {}] ", clean(why, LINE)),
        (None, None, true) => "[changed since it was approved] ".to_owned(),
        (None, None, false) => String::new(),
    };
    format!("  {:column$}{remark}{described}", tool.name)
}

fn status_table(status: &ServerStatus) -> String {
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
    let ms = |value: Option<f64>| or_dash(value.map(|value| format!("{value} ms")));
    let seconds = |ms: Option<u64>| {
        or_dash(ms.map(|ms| {
            let seconds = std::time::Duration::from_millis(ms).as_secs_f64();
            format!("{seconds:.1} s")
        }))
    };
    let mut rows = vec![
        ("Name", status.name.clone()),
        ("State", state(status)),
        ("Target", clean(&status.target, LINE)),
        ("Program", or_dash(status.program.as_deref().map(|it| clean(it, LINE)))),
        ("Protocol", or_dash(status.protocol_version.as_deref().map(|it| clean(it, LINE)))),
        ("Session", or_dash(status.session_id.as_deref().map(|it| clean(it, LINE)))),
        ("Auth", auth_kind(status.auth).to_owned()),
        ("Uptime", seconds(status.uptime_ms)),
        ("Last answer", seconds(status.last_answer_age_ms)),
        ("Restarts", status.restarts.to_string()),
        ("Tools", status.tools.to_string()),
        ("Resources", status.resources.to_string()),
        ("Prompts", status.prompts.to_string()),
        ("Calls", format!("{} ({} failed)", status.calls, status.errors)),
        ("Latency p50", ms(status.p50_ms)),
        ("Latency p95", ms(status.p95_ms)),
    ];
    if let Some(trouble) = &status.last_error {
        rows.push(("Last error", clean(&trouble.message, LINE)));
        rows.extend(trouble.hint.iter().map(|hint| ("Hint", clean(hint, LINE))));
        rows.extend(trouble.last_lines.iter().map(|line| ("Stderr", clean(line, LINE))));
    }
    let lines = rows.into_iter().map(|(key, value)| format!("  {key:13}{value}"));
    lines.collect::<Vec<_>>().join("\n")
}

fn refreshed(result: &RefreshResult) -> String {
    if result.servers.is_empty() {
        return "No MCP servers. Use `/mcp connect URL` to connect to one.".to_owned();
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
            let trouble = status.last_error.iter().map(|it| told(it, "  "));
            format!("{name} requires a login.{}", trouble.collect::<String>())
        }
        _ => format!("{name}: {}", state(status)),
    }
}

fn auth(name: &str, result: &AuthResult) -> String {
    match (result.ok, result.state.as_str()) {
        (true, "authorized") => format!("{name} is authorized with the key in its entry."),
        (true, _) => format!("{name} needs no login."),
        (false, state) => format!("{name}: {state}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_tools_that_came_back_the_first_few_are_named() {
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
            hint: None,
            last_lines: Vec::new(),
        };
        let told = refreshed_one(&of(names(95)));
        assert!(told.contains("\n  + t4\n  + 90 more\n  ~ t0"), "{told}");
        assert!(!told.contains("t5") && !told.contains("nothing"), "{told}");
        assert!(!refreshed_one(&of(names(5))).contains("more"));
    }
}
