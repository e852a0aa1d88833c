//! Word wrapping for the terminal, of whole lines and of streamed text.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

use anstream::adapter::strip_str;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The minimum width of a continuation line; a larger indent is dropped.
const MIN_ROOM: usize = 20;
/// How much of a line is kept to detect the fence of a code block, in bytes.
const FENCE_CHARS: usize = 200;

/// Returns the display width of a line, without its colours.
pub(crate) fn columns(line: &str) -> usize {
    strip_str(line).to_string().width()
}

/// Wraps a line; continuation lines are indented to its text.
pub(crate) fn fold(line: &str, width: usize) -> String {
    let plain = strip_str(line).to_string();
    fold_under(line, &hanging(&plain), width)
}

/// Wraps a line; continuation lines start with this prefix.
pub(crate) fn fold_under(line: &str, before: &str, width: usize) -> String {
    let before = if columns(before) + MIN_ROOM > width { "" } else { before };
    let margin = columns(before);
    let mut folded = String::with_capacity(line.len());
    let (mut column, mut blanks, mut has_word) = (0, String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(piece) = next_piece(&mut chars) {
        match piece {
            Piece::Blank(blank) => blanks.push(blank),
            Piece::Break => {
                folded.push('\n');
                blanks.clear();
                (column, has_word) = (0, false);
            }
            Piece::Word(word, room) => {
                if has_word && column + blanks.len() + room > width {
                    let _ = write!(folded, "\n{before}");
                    column = margin;
                } else {
                    folded.push_str(&blanks);
                    column += blanks.len();
                }
                blanks.clear();
                folded.push_str(&word);
                column += room;
                // The terminal itself breaks a word that is wider than a line.
                column = if column > width && width > 0 { column % width } else { column };
                has_word |= room > 0;
            }
        }
    }
    folded.push_str(&blanks);
    folded
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
    /// Text that must not be broken, and its width. A character of two columns is a word by itself:
    /// such scripts have no spaces.
    Word(String, usize),
}

fn next_piece(chars: &mut Peekable<Chars<'_>>) -> Option<Piece> {
    match *chars.peek()? {
        ' ' => return chars.next().map(Piece::Blank),
        '\n' => return chars.next().map(|_| Piece::Break),
        _ => {}
    }
    let (mut word, mut room) = (String::new(), 0);
    while let Some(&c) = chars.peek().filter(|c| !matches!(c, ' ' | '\n')) {
        let taken = if c == '\u{1b}' { 0 } else { c.width().unwrap_or(0) };
        if room > 0 && taken == 2 {
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

/// Wraps streamed text. Each chunk is shown immediately: a word that turns out too long for its
/// line is erased and repeated on the next one. Code blocks are not wrapped.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    column: usize,
    /// Spaces that are not written yet: the line may end here.
    blanks: String,
    /// The current word.
    word: String,
    /// Where the word and its spaces begin in this chunk's output; `None` if in an earlier chunk.
    began: Option<usize>,
    /// The column where the previous word ends; `None` if the word is the first of its line.
    after: Option<usize>,
    /// The column where the second cell begins if this is a table row: its text is indented to it.
    margin: usize,
    /// The start of this line.
    start: String,
    /// The fence character of the current code block.
    code: Option<char>,
}

impl Flow {
    /// Returns what to write for the next chunk, which must be sanitized. The cursor is moved only
    /// if a word spans two chunks.
    pub(crate) fn push(&mut self, text: &str, width: usize) -> String {
        let mut shown = String::with_capacity(text.len());
        self.began = None;
        for c in text.chars() {
            match c {
                '\n' => {
                    self.end_line(width, &mut shown);
                    continue;
                }
                c if self.code.is_some() => shown.push(c),
                ' ' => self.blank(),
                c => self.letter(c, width, &mut shown),
            }
            if self.start.len() < FENCE_CHARS {
                self.start.push(c);
            }
        }
        shown
    }

    /// Starts a new line, after other output.
    pub(crate) fn begin_line(&mut self) {
        *self = Self { code: self.code, ..Self::default() };
    }

    fn end_line(&mut self, width: usize, shown: &mut String) {
        if self.column + self.blanks.len() <= width {
            shown.push_str(&self.blanks);
        }
        shown.push('\n');
        self.code = after_line(&self.start, self.code);
        self.begin_line();
    }

    fn end_word(&mut self) {
        if !self.word.is_empty() {
            self.word.clear();
            self.after = Some(self.column);
        }
    }

    fn blank(&mut self) {
        self.end_word();
        self.blanks.push(' ');
    }

    fn letter(&mut self, c: char, width: usize, shown: &mut String) {
        let room = c.width().unwrap_or(0);
        let is_wide = |c: char| c.width() == Some(2);
        // A wide character is a word, unless a zero-width joiner links it to the previous one.
        let is_other = room > 0 && (is_wide(c) || self.word.starts_with(is_wide));
        if is_other && !self.word.ends_with('\u{200d}') {
            self.end_word();
        }
        if self.word.is_empty() {
            self.began = Some(shown.len());
            // A table row is indented by two spaces, and has at least two before its second cell.
            if self.after.is_some() && self.blanks.len() > 1 && self.start.starts_with("  ") {
                self.margin = self.column + self.blanks.len();
            }
        }
        let is_full = self.column + self.blanks.len() + room > width;
        match self.after {
            Some(after) if is_full => {
                match self.began {
                    _ if self.word.is_empty() => {}
                    Some(began) => shown.truncate(began),
                    None => drop(write!(shown, "\u{1b}[{}G\u{1b}[K", after + 1)),
                }
                let margin = if self.margin + MIN_ROOM > width { 0 } else { self.margin };
                shown.push('\n');
                shown.push_str(&" ".repeat(margin));
                shown.push_str(&self.word);
                self.column = margin + self.word.width() + room;
                self.after = None;
            }
            _ => {
                shown.push_str(&self.blanks);
                // The terminal breaks a word that is wider than a line: it can be copied whole.
                let column = if is_full { 0 } else { self.column + self.blanks.len() };
                self.column = column + room;
            }
        }
        self.blanks.clear();
        shown.push(c);
        self.word.push(c);
    }
}

/// Returns the fence character of the code block that the next line is in.
fn after_line(start: &str, code: Option<char>) -> Option<char> {
    let start = start.trim();
    let mark =
        ['`', '~'].into_iter().find(|mark| start.chars().take_while(|c| c == mark).count() >= 3);
    let Some(mark) = mark else { return code };
    let rest = start.trim_start_matches(mark);
    match code {
        Some(open) if open == mark && rest.is_empty() => None,
        None if !rest.contains('`') => Some(mark),
        _ => code,
    }
}

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
