//! The lines of one frame, for a size of the terminal.

use std::time::Duration;

use anstyle::Style;

use super::numbers::{UsageRow, Window};
use crate::commands::gateway::duration_words;
use crate::output::{plural, printable};
use openclaw_terminal::style::{BAD, FAINT, GOOD, STRONG, WARNING};
use openclaw_terminal::wrap::columns;

/// Columns of the numbers, right of the two names.
const NUMBERS: usize = 45;
/// The two headings, a blank line and the line above them.
const FIXED: usize = 4;

/// Returns the lines of a frame. Without a height, all rows are shown.
pub(super) fn lines(window: &Window, width: usize, height: Option<usize>) -> Vec<String> {
    let (servers, tools) = (window.servers(), window.tools());
    let room = height.map_or(usize::MAX, |height| height.saturating_sub(FIXED));
    // Servers and tools share the room; what one does not need, the other gets.
    let for_servers = servers.len().min((room / 2).max(room.saturating_sub(tools.len())));
    let for_tools = room.saturating_sub(for_servers);
    let mut lines = vec![cut(&title(window, height.is_some()), width)];
    lines.push(heading("SERVER", "STATE", "RESTARTS", width));
    lines.extend(chosen(servers, for_servers).iter().map(|row| line(row, width, true)));
    lines.push(String::new());
    lines.push(heading("TOOL", "FROM", "CALLS", width));
    lines.extend(tools.iter().take(for_tools).map(|row| line(row, width, false)));
    lines
}

/// The line about the gateway itself; on a whole terminal, with the key that quits.
fn title(window: &Window, is_live: bool) -> String {
    let now = window.newest();
    let count = |number: u64, thing| plural(usize::try_from(number).unwrap_or(usize::MAX), thing);
    let reach = match window.reach() {
        Some(reach) => format!("last {} s", reach.as_secs().max(1)),
        None => "since start".to_owned(),
    };
    let mut parts = vec![
        format!("up {}", duration_words(now.uptime_ms)),
        count(now.clients, "client"),
        count(now.sessions, "active session"),
    ];
    if now.waiting_turns > 0 {
        parts.push(format!("{} queued", now.waiting_turns));
    }
    if now.approvals_pending > 0 {
        parts.push(format!("{} to approve", now.approvals_pending));
    }
    parts.push(format!("rates: {reach}"));
    if is_live {
        parts.push("q quits".to_owned());
    }
    format!("{STRONG}gateway{STRONG:#}  {}", parts.join(", "))
}

/// Returns the servers that fit: those in trouble and the busiest ones, by name.
fn chosen(mut rows: Vec<UsageRow>, room: usize) -> Vec<UsageRow> {
    if rows.len() > room {
        rows.sort_by(|a, b| {
            let troubled = is_troubled(&b.about).cmp(&is_troubled(&a.about));
            troubled.then(b.calls_per_second.total_cmp(&a.calls_per_second))
        });
        rows.truncate(room);
        rows.sort_by(|a, b| a.name.cmp(&b.name));
    }
    rows
}

fn is_troubled(state: &str) -> bool {
    matches!(state, "restarting" | "failed" | "needs-auth")
}

fn heading(name: &str, about: &str, total: &str, width: usize) -> String {
    let numbers = numbers(["CALLS/S", "P50", "P95", "ERRORS", "BUSY", total]);
    let names = names(name, about, width);
    cut(&format!("{FAINT}{}{}{numbers}{FAINT:#}", names[0], names[1]), width)
}

fn line(row: &UsageRow, width: usize, is_server: bool) -> String {
    let time = |duration: Option<Duration>| duration.map_or("-".to_owned(), shown);
    let numbers = numbers([
        &format!("{:.1}", row.calls_per_second),
        &time(row.p50),
        &time(row.p95),
        &row.errors.to_string(),
        &row.in_flight.to_string(),
        &row.total.to_string(),
    ]);
    let [name, about] = names(&row.name, &row.about, width);
    let style = match row.about.as_str() {
        _ if !is_server => Style::new(),
        "ready" => GOOD,
        "failed" | "needs-auth" => BAD,
        "restarting" => WARNING,
        _ => FAINT,
    };
    cut(&format!("{name}{style}{about}{style:#}{numbers}"), width)
}

/// The two names, padded to their columns.
fn names(name: &str, about: &str, width: usize) -> [String; 2] {
    let room = width.saturating_sub(NUMBERS).clamp(20, 80);
    let second = (room * 2 / 5).clamp(8, 24);
    [padded(name, room - second), padded(about, second)]
}

fn padded(text: &str, width: usize) -> String {
    let text = cut(&printable(text), width - 1);
    let gap = width.saturating_sub(columns(&text));
    format!("{text}{}", " ".repeat(gap))
}

fn numbers(cells: [&str; 6]) -> String {
    let [rate, p50, p95, errors, busy, total] = cells;
    format!("{rate:>8}{p50:>8}{p95:>8}{errors:>7}{busy:>5}{total:>9}")
}

/// Truncates a line to a number of columns; escape sequences do not count.
fn cut(line: &str, width: usize) -> String {
    if columns(line) <= width {
        return line.to_owned();
    }
    let plain = anstream::adapter::strip_str(line).to_string();
    let mut cut = String::new();
    for c in plain.chars() {
        if columns(&cut) + columns(c.encode_utf8(&mut [0; 4])) >= width {
            break;
        }
        cut.push(c);
    }
    cut.push('…');
    cut
}

/// Formats a duration with three digits: `250us`, `4.20ms`, `1.30s`.
fn shown(duration: Duration) -> String {
    let digits = |value: f64| match value {
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    };
    let micros = duration.as_secs_f64() * 1e6;
    match micros {
        micros if micros < 1e3 => format!("{micros:.0}us"),
        micros if micros < 1e6 => format!("{}ms", digits(micros / 1e3)),
        micros => format!("{}s", digits(micros / 1e6)),
    }
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::metrics::{CallNumbers, SampleResult, ServerSample, ToolSample};

    use super::*;

    fn window(servers: usize, tools: usize) -> Window {
        let calls = CallNumbers {
            calls: 123_456,
            errors: 12_345,
            in_flight: 12,
            durations: vec![(1_234, 100), (98_765_432, 10)],
            ..CallNumbers::default()
        };
        let server = |at: usize| ServerSample {
            name: format!("server-{at:03}"),
            state: if at == 50 { "failed" } else { "ready" }.to_owned(),
            calls: calls.clone(),
            ..ServerSample::default()
        };
        let tool = |at: usize| ToolSample {
            source: "mcp".to_owned(),
            server: "名".repeat(40),
            tool: format!("tool\x1b[31m-{at}"),
            calls: calls.clone(),
        };
        Window::new(SampleResult {
            uptime_ms: 60_000,
            servers: (0..servers).map(server).collect(),
            tools: (0..tools).map(tool).collect(),
            ..SampleResult::default()
        })
    }

    #[test]
    fn a_frame_fits_the_terminal() {
        for (servers, tools) in [(0, 0), (1, 3), (100, 0), (100, 200), (3, 200)] {
            for (width, height) in [(80, 24), (40, 10), (200, 60), (10, 3)] {
                let lines = lines(&window(servers, tools), width, Some(height));
                assert!(lines.len() <= height.max(FIXED), "{}", lines.len());
                for line in &lines {
                    assert!(columns(line) <= width, "{line:?}");
                    assert!(!line.contains("\x1b[31m-"), "{line:?}");
                }
            }
        }
    }

    #[test]
    fn a_server_in_trouble_is_shown_before_others() {
        let lines = lines(&window(100, 100), 80, Some(24));
        assert!(lines.iter().any(|line| line.contains("server-050")), "{lines:#?}");
    }

    #[test]
    fn durations_have_three_digits() {
        for (micros, expected) in
            [(250, "250us"), (4_200, "4.20ms"), (42_000, "42.0ms"), (1_300_000, "1.30s")]
        {
            assert_eq!(shown(Duration::from_micros(micros)), expected);
        }
    }
}
