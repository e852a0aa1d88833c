//! Word wrapping for the terminal.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

use anstream::adapter::strip_str;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The minimum width of a continuation line; a larger indent is dropped.
const MIN_ROOM: usize = 20;

/// Returns the display width of a line, without its colours.
pub fn columns(line: &str) -> usize {
    strip_str(line).to_string().width()
}

/// Wraps a line; continuation lines are indented to its text.
pub fn wrap(line: &str, width: usize) -> String {
    let plain = strip_str(line).to_string();
    wrap_under(line, &hanging(&plain), width)
}

/// Like [`wrap`], but also breaks words that are wider than a line, so that their rest is indented,
/// too. Not for text that users copy, such as URLs to open.
pub fn wrap_and_break(line: &str, width: usize) -> String {
    let plain = strip_str(line).to_string();
    wrap_with(line, &hanging(&plain), width, true)
}

/// Wraps a line; continuation lines start with this prefix.
pub fn wrap_under(line: &str, before: &str, width: usize) -> String {
    wrap_with(line, before, width, false)
}

fn wrap_with(line: &str, before: &str, width: usize, breaks_words: bool) -> String {
    let before = if columns(before) + MIN_ROOM > width { "" } else { before };
    let margin = columns(before);
    let longest = if breaks_words { width.saturating_sub(margin).max(1) } else { usize::MAX };
    let mut wrapped = String::with_capacity(line.len());
    let (mut column, mut blanks, mut has_word) = (0, String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(piece) = next_piece(&mut chars, longest) {
        match piece {
            Piece::Blank(blank) => blanks.push(blank),
            Piece::Break => {
                wrapped.push('\n');
                blanks.clear();
                (column, has_word) = (0, false);
            }
            Piece::Word(word, room) => {
                if has_word && column + blanks.len() + room > width {
                    let _ = write!(wrapped, "\n{before}");
                    column = margin;
                } else {
                    wrapped.push_str(&blanks);
                    column += blanks.len();
                }
                blanks.clear();
                wrapped.push_str(&word);
                column += room;
                // The terminal itself breaks a word that is wider than a line.
                column = if column > width && width > 0 { column % width } else { column };
                has_word |= room > 0;
            }
        }
    }
    wrapped.push_str(&blanks);
    wrapped
}

/// Returns the prefix of the continuation lines of a line.
fn hanging(plain: &str) -> Cow<'static, str> {
    let text = plain.trim_start_matches(' ');
    let margin = plain.len() - text.len();
    if text.starts_with("│ ") {
        return format!("{}│ ", " ".repeat(margin)).into();
    }
    let first = text.split(' ').next().unwrap_or_default();
    let is_mark = first.chars().count() == 1 && !first.contains(char::is_alphanumeric);
    " ".repeat(if is_mark { margin + 2 } else { margin }).into()
}

/// A part of a line.
enum Piece {
    Blank(char),
    Break,
    /// Text that is not broken, and its width. A character of two columns is a word by itself:
    /// such scripts have no spaces.
    Word(String, usize),
}

/// Returns the next part of a line; a word has at most `longest` columns.
fn next_piece(chars: &mut Peekable<Chars<'_>>, longest: usize) -> Option<Piece> {
    match *chars.peek()? {
        ' ' => return chars.next().map(Piece::Blank),
        '\n' => return chars.next().map(|_| Piece::Break),
        _ => {}
    }
    let (mut word, mut room) = (String::new(), 0);
    while let Some(&c) = chars.peek().filter(|c| !matches!(c, ' ' | '\n')) {
        let taken = if c == '\u{1b}' { 0 } else { c.width().unwrap_or(0) };
        if room > 0 && (taken == 2 || room + taken > longest) {
            break;
        }
        chars.next();
        word.push(c);
        room += taken;
        if c == '\u{1b}' {
            // The only escape sequences in our own lines are colours: `ESC [ … m`.
            for c in chars.by_ref() {
                word.push(c);
                if c == 'm' {
                    break;
                }
            }
        }
        if taken == 2 {
            break;
        }
    }
    Some(Piece::Word(word, room))
}

#[cfg(test)]
#[path = "wrap_tests.rs"]
mod tests;
