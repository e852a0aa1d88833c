//! The arguments of a call as shown for approval, with hidden characters escaped.

use crate::excerpt::beginning_of;
use crate::label::clean_line;
use crate::untrusted::Untrusted;

/// The maximum length for showing all arguments in one line.
const ONE_LINE: usize = 60;
/// The prefix of a continuation line, and its width. Without it, a line of an argument could look
/// like one of our own.
const GOES_ON: &str = "  │ ";
/// A line break in an argument, escaped and kept.
const BREAK: &str = "\\n\n";
const MARGIN: usize = 4;
/// The minimum width of a line, even on a narrower terminal.
const MIN_ROOM: usize = 20;
/// Further arguments are lines of the last one: each of its own would take twenty times its text.
const MAX_FIELDS: usize = 1_000;

/// The arguments of a call, each as `name=value`.
#[derive(Debug, Clone)]
pub struct ShownArguments(Vec<String>);

/// Lines of arguments: all of them, or the first and the last ones.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ArgumentLines {
    /// The first lines.
    pub first: Vec<String>,
    /// The number of characters that are not shown.
    pub hidden: usize,
    /// The last lines.
    pub last: Vec<String>,
}

impl ShownArguments {
    /// Reads the arguments from the JSON that will be sent. It is not parsed into a `Value`, which
    /// keeps only one of two members with the same name.
    #[must_use]
    pub fn read(json: &str) -> Self {
        let mut fields = vec![String::new()];
        let (mut rest, mut depth) = (json.trim(), 0_usize);
        let outer = usize::from(rest.starts_with('{'));
        while !rest.is_empty() {
            let (token, after) = rest.split_at(token_length(rest));
            rest = after;
            let is_outer = outer == 1 && depth <= 1;
            match token {
                "{" | "[" => depth += 1,
                "}" | "]" => depth = depth.saturating_sub(1),
                _ => {}
            }
            let has_room = fields.len() < MAX_FIELDS;
            let Some(field) = fields.last_mut() else { break };
            match token {
                "{" if is_outer && depth == 1 => {}
                "}" if is_outer && depth == 0 => {}
                "," if is_outer && has_room => fields.push(String::new()),
                "," if is_outer => field.push('\n'),
                ":" if is_outer => field.push('='),
                "," => field.push_str(", "),
                ":" => field.push_str(": "),
                text if text.starts_with('"') => {
                    let is_name = is_outer && field.is_empty();
                    field.push_str(&spelled(text, is_name));
                }
                blank if blank.trim().is_empty() => {}
                other => field.push_str(other),
            }
        }
        fields.retain(|field| !field.is_empty());
        Self(fields)
    }

    /// Returns all arguments in one line, if they are short.
    #[must_use]
    pub fn in_one_line(&self) -> Option<String> {
        let line = self.0.join(", ");
        (line.chars().count() <= ONE_LINE && !line.contains('\n')).then_some(line)
    }

    /// Returns all arguments, each on a line of its own. Further lines of an argument are marked.
    #[must_use]
    pub fn text(&self) -> String {
        self.0.join("\n").replace(BREAK, &format!("{BREAK}{}", GOES_ON.trim_start_matches(' ')))
    }

    /// Wraps the arguments to a terminal of this width, and leaves lines in the middle out if there are
    /// more than this number of characters.
    #[must_use]
    pub fn lines(&self, width: u16, most: usize) -> ArgumentLines {
        let room = usize::from(width).saturating_sub(MARGIN).max(MIN_ROOM);
        let mut all = Vec::new();
        for field in &self.0 {
            let mut before = "  ";
            for line in field.lines().flat_map(|line| pieces(line, room)) {
                all.push((line.chars().count(), format!("{before}{line}")));
                before = GOES_ON;
            }
        }
        let total: usize = all.iter().map(|(length, _)| length).sum();
        if total <= most {
            let first = all.into_iter().map(|(_, line)| line).collect();
            return ArgumentLines { first, ..ArgumentLines::default() };
        }
        let fits = |lines: &mut dyn Iterator<Item = &(usize, String)>, mut room: usize| {
            let fit = lines.take_while(|(length, _)| match room.checked_sub(*length) {
                Some(left) => {
                    room = left;
                    true
                }
                None => false,
            });
            fit.count()
        };
        let beginning = beginning_of(most);
        let first = fits(&mut all.iter(), beginning);
        let last = fits(&mut all[first..].iter().rev(), most - beginning);
        let end = all.split_off(all.len() - last);
        let between = all.split_off(first);
        let shown = |lines: Vec<(usize, String)>| lines.into_iter().map(|(_, line)| line).collect();
        ArgumentLines {
            hidden: between.iter().map(|(length, _)| length).sum(),
            first: shown(all),
            last: shown(end),
        }
    }
}

/// Returns the length of the first token: a string with its quotes, or any other character.
fn token_length(json: &str) -> usize {
    let mut is_escaped = false;
    let mut chars = json.char_indices();
    let Some((_, first)) = chars.next() else { return 0 };
    if first != '"' {
        return first.len_utf8();
    }
    for (at, c) in chars {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    json.len()
}

/// Formats a JSON string in quotes, with hidden characters escaped. Plain names get no quotes.
fn spelled(json: &str, is_name: bool) -> String {
    // Decoded first: `\u0072\u006d` is `rm`. Decoding fails on a lone surrogate.
    let Ok(text) = serde_json::from_str::<String>(json) else { return visible(json) };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if is_name && !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    format!("\"{}\"", visible(&text))
}

/// Escapes hidden characters of a text whose line breaks and tabs are shown as they are.
#[must_use]
pub fn reveal_hidden(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\t' => c.to_string(),
        c if hides(c) => c.escape_unicode().collect(),
        c => c.to_string(),
    };
    text.chars().map(shown).collect()
}

/// Escapes hidden characters. A line break is shown as `\n` and kept.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push_str(BREAK),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            '"' | '\\' => shown.extend(['\\', c]),
            c if hides(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// Whether a character is invisible, or looks like another one. An ASCII space is neither.
fn hides(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    let mut bytes = [0; 4];
    let seen = clean_line(Untrusted::new(c.encode_utf8(&mut bytes)), 1);
    // The blank Braille pattern is not whitespace, but invisible.
    c == '\u{2800}' || seen.trim().is_empty()
}

/// Splits a line into pieces that fit. Characters that are not ASCII count as two columns.
fn pieces(line: &str, room: usize) -> Vec<String> {
    let (mut pieces, mut used) = (vec![String::new()], 0);
    for c in line.chars() {
        let width = if c.is_ascii() { 1 } else { 2 };
        if used + width > room {
            pieces.push(String::new());
            used = 0;
        }
        used += width;
        if let Some(piece) = pieces.last_mut() {
            piece.push(c);
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(json: &str) -> Vec<String> {
        ShownArguments::read(json).lines(80, usize::MAX).first
    }

    #[test]
    fn short_arguments_stand_in_one_line() {
        let line = |json| ShownArguments::read(json).in_one_line();
        assert_eq!(line(r#"{"a": 2, "b": "two"}"#).as_deref(), Some(r#"a=2, b="two""#));
        assert_eq!(line("{}").as_deref(), Some(""));
        let nested = r#"{ "a b": [1, {"c": null}], "d": {} }"#;
        assert_eq!(line(nested).as_deref(), Some(r#""a b"=[1, {"c": null}], d={}"#));
        assert_eq!(line(r#"[1, "x"]"#).as_deref(), Some(r#"[1, "x"]"#));
        assert_eq!(line(r#"{"a": "two\nlines"}"#), None);
    }

    #[test]
    fn hidden_characters_in_arguments_are_escaped() {
        let json =
            r#"{"command": "echo hi     #\u001b[8m\u202e\u200b \\\" ; \u0072\u006d -rf\u00a0/"}"#;
        let shown = all(json).concat();
        assert!(shown.contains("echo hi     #"), "spaces are kept: {shown}");
        assert!(shown.contains(r#"\u{1b}[8m\u{202e}\u{200b} \\\" ; rm -rf\u{a0}/"#), "{shown}");
        let twice = all(r#"{"command": "rm -rf /", "command": "ls"}"#).concat();
        assert!(twice.contains("rm -rf /") && twice.contains("ls"), "{twice}");
        assert!(all(r#"{"a": "\ud800"}"#).concat().contains("ud800"));
    }

    #[test]
    fn hidden_characters_of_a_text_are_escaped() {
        let text = "rm\u{200b} -rf\u{202e} /\r\n\tdone é";
        assert_eq!(reveal_hidden(text), "rm\\u{200b} -rf\\u{202e} /\\u{d}\n\tdone é");
    }

    #[test]
    fn lines_of_an_argument_cannot_be_taken_for_others() {
        let json = r#"{"command": "one\n  path=two", "path": "three"}"#;
        assert_eq!(all(json), ["  command=\"one\\n", "  │   path=two\"", "  path=\"three\""]);
        let long = format!(r#"{{"command": "{}"}}"#, "x".repeat(200));
        let lines = all(&long);
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:?}");
        assert!(lines[1..].iter().all(|line| line.starts_with(GOES_ON)), "{lines:?}");
    }

    #[test]
    fn the_beginning_and_the_end_are_shown_and_what_is_between_is_counted() {
        let json = format!(r#"{{"text": "{}", "path": "end"}}"#, "x".repeat(5_000));
        let arguments = ShownArguments::read(&json);
        let ArgumentLines { first, hidden, last } = arguments.lines(80, 1_000);
        let shown: usize = first
            .iter()
            .chain(&last)
            .map(|line| line.trim_start_matches([' ', '│']).chars().count())
            .sum();
        assert_eq!(shown + hidden, 5_000 + "text=\"\"path=\"end\"".len());
        assert!((800..=1_000).contains(&shown), "{shown}");
        assert!(first[0].starts_with("  text=\"xx"), "{first:?}");
        assert_eq!(last.last().unwrap(), "  path=\"end\"");
        assert_eq!(arguments.lines(80, usize::MAX).hidden, 0);
        let narrow = arguments.lines(80, 10);
        assert_eq!((narrow.first.len(), narrow.last.len()), (0, 0), "no line fits");
    }

    #[test]
    fn a_text_has_all_arguments_with_marked_lines() {
        let arguments = ShownArguments::read(r#"{"command": "one\n  path=two", "path": "three"}"#);
        assert_eq!(arguments.text(), "command=\"one\\n\n│   path=two\"\npath=\"three\"");
    }
}
