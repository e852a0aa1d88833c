//! ASCII instead of other characters, for terminals that do not use UTF-8.

use std::borrow::Cow;

/// The steps of a spinner, which stand for those in Braille.
const SPINNER: [char; 4] = ['|', '/', '-', '\\'];

/// What `…` becomes.
const ELLIPSIS: &str = "...";

/// Replaces every character that is not ASCII. A `…` gets two columns wider.
pub fn ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '…' => shown.push_str(ELLIPSIS),
            c => shown.push(ascii_char(c)),
        }
    }
    shown.into()
}

/// Like [`ascii`], for lines that are laid out in columns: they keep their width. The `…` of a
/// truncated text also replaces the two characters beside it.
pub fn ascii_columns(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    // The number of characters at the end of `shown` that a `…` may replace.
    let mut spare = 0;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => {
                // The only escape sequences in our own lines are colours: `ESC [ … m`.
                shown.push(c);
                for c in chars.by_ref() {
                    shown.push(ascii_char(c));
                    if c == 'm' {
                        break;
                    }
                }
                spare = 0;
            }
            '…' => {
                let after = chars.clone().take(2);
                let after = after.filter(|c| !c.is_whitespace() && *c != '\u{1b}').count();
                if spare >= 2 {
                    shown.truncate(shown.len() - 2);
                    shown.push_str(ELLIPSIS);
                } else if after == 2 {
                    chars.by_ref().take(2).for_each(drop);
                    shown.push_str(ELLIPSIS);
                } else {
                    shown.push('.');
                }
                spare = 0;
            }
            c => {
                shown.push(ascii_char(c));
                spare = if c.is_whitespace() { 0 } else { spare + 1 };
            }
        }
    }
    shown.into()
}

fn ascii_char(c: char) -> char {
    match c {
        c if c.is_ascii() => c,
        '✓' => '+',
        '✗' => 'x',
        '⚙' | '•' => '*',
        '⚠' => '!',
        '↻' => '~',
        '›' | '→' => '>',
        '·' | '–' | '—' | '─' | '╌' | '═' => '-',
        '│' | '┆' | '║' => '|',
        '┌' | '┐' | '└' | '┘' | '├' | '┤' | '┬' | '┴' | '┼' | '╞' | '╡' | '╪' => {
            '+'
        }
        '‘' | '’' => '\'',
        '“' | '”' => '"',
        '\u{2800}'..='\u{28ff}' => SPINNER[u32::from(c) as usize % SPINNER.len()],
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_become_ascii() {
        assert_eq!(ascii("✓ a → b … ⠋ ü"), "+ a > b ... \\ ?");
        assert_eq!(ascii("use `secret://file/…`"), "use `secret://file/...`");
        assert_eq!(ascii("plain"), "plain");
    }

    #[test]
    fn truncated_text_in_columns_keeps_its_width() {
        for (line, shown) in [
            ("mcp-server-ev…  stdio", "mcp-server-...  stdio"),
            ("\u{1b}[2m…/bin/mcp-server\u{1b}[0m  x", "\u{1b}[2m...in/mcp-server\u{1b}[0m  x"),
            ("one…\n  …/two  ─", "o...\n  ...wo  -"),
            ("│ … 3 more lines", "| . 3 more lines"),
            ("a…", "a."),
        ] {
            assert_eq!(ascii_columns(line), shown);
            assert_eq!(ascii_columns(line).chars().count(), line.chars().count());
        }
    }
}
