//! Lines that end between words: where the terminal's line is full, a word goes to the next one as a whole.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

use anstream::adapter::strip_str;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// What goes on in a line gets no less room than this, whatever stands before it.
const MIN_ROOM: usize = 20;
/// So much of a line tells whether a block of code begins or ends with it.
const FENCE_CHARS: usize = 200;

/// How many columns a line of ours takes; its colours take none.
pub(crate) fn columns(line: &str) -> usize {
    strip_str(line).to_string().width()
}

/// A line of ours in lines that fit; what is below the first stands under its words.
pub(crate) fn fold(line: &str, width: usize) -> String {
    let plain = strip_str(line).to_string();
    fold_under(line, &hanging(&plain), width)
}

/// A line of ours in lines that fit; these words stand before all but the first.
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
                // A word that is wider than the terminal goes on in its next line.
                column = if column > width && width > 0 { column % width } else { column };
                has_word |= room > 0;
            }
        }
    }
    folded.push_str(&blanks);
    folded
}

/// What stands before the lines below one, so that they are seen to belong to it.
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

/// Part of a line.
enum Piece {
    Blank(char),
    Break,
    /// What must not be torn apart, and how many columns it takes. A letter that is two columns wide is
    /// a word: texts of such letters have no blanks.
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
            // Colours are all that we ever write: `ESC [ … m`.
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

/// A text that comes bit by bit. Each bit is shown at once: a word that turns out too long for its line is taken
/// away again, and stands in the next one. Blocks of code stay as they are.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    column: usize,
    /// Blanks that were not shown: perhaps the line ends here.
    blanks: String,
    /// The word that is being written.
    word: String,
    /// Where in this bit it begins, with its blanks; none if it began in an earlier one.
    began: Option<usize>,
    /// Where the words before it end; none if there are none in this line.
    after: Option<usize>,
    /// Where its second column begins, if this is a row of a table: the words of that stay in it.
    margin: usize,
    /// What this line begins with.
    start: String,
    /// The mark of the block of code that this is in.
    code: Option<char>,
}

impl Flow {
    /// What is to be written for the next bit of the text, which commands nothing by itself. The cursor is
    /// moved only if a bit does not end with its word.
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

    /// What comes next begins a line.
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
        // A wide letter is a word, unless it is joined to the one before it.
        let is_other = room > 0 && (is_wide(c) || self.word.starts_with(is_wide));
        if is_other && !self.word.ends_with('\u{200d}') {
            self.end_word();
        }
        if self.word.is_empty() {
            self.began = Some(shown.len());
            // Rows begin with two blanks, and so does what they say of their first column.
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
                // Where it is full, the terminal breaks the word: whoever copies it gets it as it is.
                let column = if is_full { 0 } else { self.column + self.blanks.len() };
                self.column = column + room;
            }
        }
        self.blanks.clear();
        shown.push(c);
        self.word.push(c);
    }
}

/// Whether the line after this one is in a block of code, and with which mark that ends.
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
