//! Text that is typed while no prompt is shown: it goes into the next prompt for a message.

use std::collections::VecDeque;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// The maximum bytes that are kept; further keys are dropped.
const MAX_BYTES: usize = 64 * 1024;

/// Text that was typed ahead.
#[derive(Debug, Default)]
pub(super) struct TypedAhead {
    /// Lines that were completed with Enter: messages to send next.
    lines: VecDeque<String>,
    /// The line that is being typed.
    rest: String,
}

impl TypedAhead {
    /// Adds what a key types. Returns whether the key was Ctrl-Z.
    pub(super) fn add(&mut self, event: Event) -> bool {
        let key = match event {
            Event::Paste(text) => {
                text.chars().for_each(|c| self.push(c));
                return false;
            }
            Event::Key(key) if key.kind != KeyEventKind::Release => key,
            _ => return false,
        };
        match (key.code, key.modifiers) {
            (KeyCode::Char('z'), KeyModifiers::CONTROL) => return true,
            (KeyCode::Char('u' | 'c'), KeyModifiers::CONTROL) => self.rest.clear(),
            (KeyCode::Char('w'), KeyModifiers::CONTROL) => self.erase_word(),
            (KeyCode::Backspace, _) => drop(self.rest.pop()),
            (KeyCode::Enter, KeyModifiers::NONE) => self.end_line(),
            (KeyCode::Enter, _) => self.push('\n'),
            _ => typed_by(key).into_iter().for_each(|c| self.push(c)),
        }
        false
    }

    /// Adds what was read from the terminal past the events. Keys that type nothing are dropped.
    pub(super) fn add_read(&mut self, read: &str) {
        let mut escapes = 0;
        for c in read.chars() {
            // A key such as an arrow: `ESC`, `[` or `O`, values, a letter.
            escapes = match (escapes, c) {
                (_, '\u{1b}') => 1,
                (1, '[' | 'O') => 2,
                (2, c) if c.is_ascii_digit() || c == ';' => 2,
                (1 | 2, _) => 0,
                (_, '\r' | '\n') => {
                    self.end_line();
                    0
                }
                (_, '\u{7f}') => {
                    self.rest.pop();
                    0
                }
                (_, c) if !c.is_control() => {
                    self.push(c);
                    0
                }
                _ => 0,
            };
        }
    }

    fn push(&mut self, c: char) {
        let c = if c == '\r' { '\n' } else { c };
        let kept: usize = self.lines.iter().map(String::len).sum();
        if kept + self.rest.len() + c.len_utf8() <= MAX_BYTES {
            self.rest.push(c);
        }
    }

    fn erase_word(&mut self) {
        let word = self.rest.trim_end().rfind(char::is_whitespace).map_or(0, |at| at + 1);
        // A space of several bytes.
        let word = (word..=self.rest.len()).find(|at| self.rest.is_char_boundary(*at));
        self.rest.truncate(word.unwrap_or_default());
    }

    fn end_line(&mut self) {
        if !self.rest.trim().is_empty() {
            self.lines.push_back(std::mem::take(&mut self.rest));
        }
    }

    /// Keeps completed lines from being sent: they become part of the text of the next prompt.
    pub(super) fn hold_back(&mut self) {
        if !self.lines.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            self.lines.push_back(rest);
            self.rest = Vec::from(std::mem::take(&mut self.lines)).join("\n");
        }
    }

    /// Puts a message before everything else, to be edited or sent again.
    pub(super) fn put_back(&mut self, message: &str) {
        self.hold_back();
        let separator = if self.rest.is_empty() { "" } else { "\n" };
        self.rest = format!("{message}{separator}{}", self.rest);
    }

    /// Removes the next message to send.
    pub(super) fn next_line(&mut self) -> Option<String> {
        self.lines.pop_front()
    }

    /// Removes the text of a line that is not complete.
    pub(super) fn take_rest(&mut self) -> String {
        std::mem::take(&mut self.rest)
    }
}

/// Returns the character that a key types.
fn typed_by(key: KeyEvent) -> Option<char> {
    let is_plain = (key.modifiers - KeyModifiers::SHIFT).is_empty();
    match key.code {
        KeyCode::Char(c) if is_plain => Some(c),
        KeyCode::Tab => Some(' '),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(ahead: &mut TypedAhead, text: &str) {
        for c in text.chars() {
            let (code, modifiers) = match c {
                '\r' => (KeyCode::Enter, KeyModifiers::NONE),
                '\u{7f}' => (KeyCode::Backspace, KeyModifiers::NONE),
                '\u{17}' => (KeyCode::Char('w'), KeyModifiers::CONTROL),
                '\u{1a}' => (KeyCode::Char('z'), KeyModifiers::CONTROL),
                c => (KeyCode::Char(c), KeyModifiers::NONE),
            };
            let is_stop = ahead.add(Event::Key(KeyEvent::new(code, modifiers)));
            assert_eq!(is_stop, c == '\u{1a}');
        }
    }

    #[test]
    fn completed_lines_are_sent_and_the_rest_is_edited_further() {
        let mut ahead = TypedAhead::default();
        typed(&mut ahead, "first\r\r\u{1a}seconds\u{7f} one\u{3000}two\u{17}");
        assert_eq!(ahead.next_line().as_deref(), Some("first"));
        assert_eq!(ahead.next_line(), None, "an empty line is not a message");
        assert_eq!(ahead.take_rest(), "second one\u{3000}");
    }

    #[test]
    fn what_was_read_past_the_events_is_typed_text_too() {
        let mut ahead = TypedAhead::default();
        ahead.add_read("first\rseconds\u{7f}\u{1b}[A\u{1b}OB\u{1b}[1;5C\u{7} one");
        assert_eq!(ahead.next_line().as_deref(), Some("first"));
        assert_eq!(ahead.take_rest(), "second one");
    }

    #[test]
    fn lines_that_are_held_back_are_edited_together() {
        let mut ahead = TypedAhead::default();
        typed(&mut ahead, "first\rsecond\rthird");
        ahead.hold_back();
        assert_eq!(ahead.next_line(), None);
        assert_eq!(ahead.take_rest(), "first\nsecond\nthird");
    }

    #[test]
    fn a_message_that_is_put_back_comes_first() {
        let mut ahead = TypedAhead::default();
        ahead.put_back("again");
        assert_eq!(ahead.take_rest(), "again");
        typed(&mut ahead, "first\rsecond");
        ahead.put_back("again");
        assert_eq!((ahead.next_line(), ahead.take_rest().as_str()), (None, "again\nfirst\nsecond"));
    }

    #[test]
    fn a_pasted_text_is_not_sent_by_its_line_breaks_and_has_a_limit() {
        let mut ahead = TypedAhead::default();
        ahead.add(Event::Paste("a\r\nb".to_owned()));
        assert_eq!((ahead.next_line(), ahead.take_rest().as_str()), (None, "a\n\nb"));
        ahead.add(Event::Paste("é".repeat(MAX_BYTES)));
        assert_eq!(ahead.take_rest().len(), MAX_BYTES);
    }
}
