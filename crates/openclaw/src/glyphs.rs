//! ASCII instead of other characters, for terminals that do not use UTF-8. The width stays the same.

use std::borrow::Cow;

/// The steps of a spinner, which stand for those in Braille.
const SPINNER: [char; 4] = ['|', '/', '-', '\\'];

/// Replaces every character that is not ASCII.
pub(crate) fn ascii(text: &str) -> Cow<'_, str> {
    match text.is_ascii() {
        true => text.into(),
        false => text.chars().map(ascii_char).collect::<String>().into(),
    }
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
        '…' => '.',
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
    fn symbols_become_ascii_and_keep_their_width() {
        assert_eq!(ascii("✓ a → b … ⠋ ü"), "+ a > b . \\ ?");
        assert_eq!(ascii("plain"), "plain");
    }
}
