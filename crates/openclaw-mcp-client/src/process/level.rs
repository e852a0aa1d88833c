//! The level of a line that a server writes to stderr, where the line names one.

use tracing::Level;

/// The number of characters that are searched, and of words in them.
const CHARS: usize = 160;
const WORDS: usize = 14;

/// Returns the level that a line names: `ERROR: …`, `2026-01-01 12:00 [warn] …`, `level=error …`,
/// `"level":"warning"`. Info if it names none: most servers log to stderr, and what they write there
/// is rarely a warning.
pub(super) fn level_of(line: &str) -> Level {
    let end = line.char_indices().nth(CHARS).map_or(line.len(), |(at, _)| at);
    let line = &line[..end];
    let mut before = "";
    let words = line.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty());
    for word in words.take(WORDS) {
        if let Some(level) = level_named(word) {
            // In lower case it may be a word of the text.
            let is_upper = word.chars().all(|c| c.is_ascii_uppercase());
            let is_value = matches!(before, "level" | "lvl" | "severity" | "levelname");
            if is_upper || is_value || is_marked(line, word) {
                return level;
            }
        }
        before = word;
    }
    Level::INFO
}

fn level_named(word: &str) -> Option<Level> {
    Some(match word.to_ascii_lowercase().as_str() {
        "error" | "err" | "fatal" | "critical" | "panic" => Level::ERROR,
        "warn" | "warning" => Level::WARN,
        "info" | "notice" => Level::INFO,
        "debug" | "trace" | "verbose" => Level::DEBUG,
        _ => return None,
    })
}

/// Whether a word begins the line and ends with a colon, or is in brackets.
fn is_marked(line: &str, word: &str) -> bool {
    let begins = line.strip_prefix(word).is_some_and(|rest| rest.starts_with(':'));
    begins || line.contains(&format!("[{word}]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_is_the_one_that_the_line_names() {
        for (line, expected) in [
            ("Secure MCP Filesystem Server running on stdio", Level::INFO),
            ("no error so far", Level::INFO),
            ("3 errors were fixed", Level::INFO),
            ("INFO:     Application startup complete; ERROR pages at /e", Level::INFO),
            ("2026-01-01 12:00:00,123 - mcp.server - ERROR - it broke", Level::ERROR),
            ("[2026-01-01T12:00:00Z WARN  server] slow", Level::WARN),
            ("WARNING:root:deprecated", Level::WARN),
            ("error: cannot open file", Level::ERROR),
            ("[error] cannot open file", Level::ERROR),
            ("time=12 level=warn msg=\"slow\"", Level::WARN),
            (r#"{"ts":1,"level":"error","msg":"broken"}"#, Level::ERROR),
            ("DEBUG connecting", Level::DEBUG),
            ("", Level::INFO),
        ] {
            assert_eq!(level_of(line), expected, "{line}");
        }
    }
}
