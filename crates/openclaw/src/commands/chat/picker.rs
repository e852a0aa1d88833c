//! A list to choose from with the arrow keys; typing narrows it down.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::terminal;

use crate::output::{coloured, cut};
use openclaw_terminal::style::{FAINT, STRONG};

/// How long to wait for a key before checking whether the list was withdrawn.
const CHECK: Duration = Duration::from_millis(100);
/// The maximum length of a filter.
const FILTER_CHARS: usize = 60;
/// The lines around the list: the title, the filter and the cursor.
const FRAME: usize = 3;

/// An entry of the list.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) value: String,
    pub(super) label: String,
}

/// The effect of a key.
#[derive(Debug, PartialEq, Eq)]
enum Effect {
    Redraw,
    Chosen(String),
    Cancelled,
}

/// Shows the list, and returns the value of the chosen entry; `None` if the user cancels, or if the
/// list is withdrawn.
pub(super) fn pick(
    title: &str,
    items: &[Item],
    withdrawn: &AtomicBool,
) -> io::Result<Option<String>> {
    let mut picker = Picker { title, items, filter: String::new(), at: 0 };
    terminal::enable_raw_mode()?;
    let chosen = picker.run(withdrawn);
    terminal::disable_raw_mode()?;
    chosen
}

struct Picker<'a> {
    title: &'a str,
    items: &'a [Item],
    filter: String,
    /// The selected entry among the matching ones.
    at: usize,
}

impl Picker<'_> {
    fn run(&mut self, withdrawn: &AtomicBool) -> io::Result<Option<String>> {
        let mut drawn = 0;
        loop {
            let (width, height) = terminal::size().unwrap_or((80, 24));
            let lines = self.lines(usize::from(width), usize::from(height));
            draw(drawn, &lines)?;
            drawn = lines.len();
            let effect = loop {
                if withdrawn.swap(false, Ordering::Relaxed) {
                    break Effect::Cancelled;
                }
                if event::poll(CHECK)? {
                    match event::read()? {
                        Event::Key(key) if key.kind != KeyEventKind::Release => {
                            break self.press(key);
                        }
                        Event::Resize(..) => break Effect::Redraw,
                        _ => {}
                    }
                }
            };
            match effect {
                Effect::Redraw => {}
                Effect::Chosen(value) => return draw(drawn, &[]).map(|()| Some(value)),
                Effect::Cancelled => return draw(drawn, &[]).map(|()| None),
            }
        }
    }

    fn matching(&self) -> Vec<&Item> {
        let wanted = self.filter.to_lowercase();
        let is_match = |item: &&Item| {
            item.label.to_lowercase().contains(&wanted)
                || item.value.to_lowercase().contains(&wanted)
        };
        self.items.iter().filter(is_match).collect()
    }

    fn press(&mut self, key: KeyEvent) -> Effect {
        let count = self.matching().len();
        match (key.code, key.modifiers) {
            (KeyCode::Esc, _) | (KeyCode::Char('c' | 'd'), KeyModifiers::CONTROL) => {
                return Effect::Cancelled;
            }
            (KeyCode::Enter, _) => {
                if let Some(item) = self.matching().get(self.at) {
                    return Effect::Chosen(item.value.clone());
                }
            }
            (KeyCode::Up, _) | (KeyCode::Char('p'), KeyModifiers::CONTROL) => {
                self.at = self.at.saturating_sub(1);
            }
            (KeyCode::Down, _) | (KeyCode::Char('n'), KeyModifiers::CONTROL) => {
                self.at = (self.at + 1).min(count.saturating_sub(1));
            }
            (KeyCode::Backspace, _) => {
                self.filter.pop();
                self.at = 0;
            }
            (KeyCode::Char(c), KeyModifiers::NONE | KeyModifiers::SHIFT)
                if self.filter.chars().count() < FILTER_CHARS =>
            {
                self.filter.push(c);
                self.at = 0;
            }
            _ => {}
        }
        Effect::Redraw
    }

    fn lines(&self, width: usize, height: usize) -> Vec<String> {
        let matching = self.matching();
        let room = height.saturating_sub(FRAME).max(1);
        let first = (self.at + 1).saturating_sub(room);
        let hint = "(arrows and Enter choose, typing filters, Esc cancels)";
        let mut lines = vec![format!("{} {FAINT}{}{FAINT:#}", self.title, hint)];
        lines[0] = match self.title.len() + hint.len() < width {
            true => std::mem::take(&mut lines[0]),
            false => self.title.to_owned(),
        };
        let rows = matching.iter().enumerate().skip(first).take(room);
        lines.extend(rows.map(|(at, item)| {
            let label = cut(&item.label, width.saturating_sub(3));
            match at == self.at {
                true => format!("{STRONG}> {label}{STRONG:#}"),
                false => format!("  {label}"),
            }
        }));
        if matching.is_empty() {
            lines.push(format!("  {FAINT}no match{FAINT:#}"));
        }
        if !self.filter.is_empty() {
            lines.push(format!("{FAINT}filter:{FAINT:#} {}", self.filter));
        }
        lines
    }
}

/// Replaces the lines that were drawn before.
fn draw(before: usize, lines: &[String]) -> io::Result<()> {
    let mut text = String::new();
    if before > 0 {
        let _ = write!(text, "\u{1b}[{before}A");
    }
    text.push_str("\r\u{1b}[J");
    for line in lines {
        let _ = write!(text, "{}\r\n", coloured(line));
    }
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items() -> Vec<Item> {
        let item = |at: usize| Item { value: format!("key-{at}"), label: format!("Title {at}") };
        (1..=30).map(item).collect()
    }

    #[test]
    fn the_selected_entry_is_visible_in_a_low_terminal_and_lines_fit() {
        let items = items();
        let mut picker = Picker { title: "Resume", items: &items, filter: String::new(), at: 0 };
        for _ in 0..20 {
            picker.press(KeyEvent::new(KeyCode::Down, KeyModifiers::NONE));
        }
        let lines = picker.lines(12, 8);
        assert!(lines.len() < 8, "{lines:?}");
        assert!(lines.iter().any(|line| line.contains("> Title 21")), "{lines:?}");
        assert_eq!(lines[0], "Resume");
        let enter = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
        assert_eq!(picker.press(enter), Effect::Chosen("key-21".to_owned()));
    }

    #[test]
    fn typing_narrows_the_list_down() {
        let items = items();
        let mut picker = Picker { title: "Resume", items: &items, filter: String::new(), at: 5 };
        for c in "TITLE 30".chars() {
            picker.press(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
        }
        assert_eq!(picker.matching().len(), 1);
        picker.press(KeyEvent::new(KeyCode::Char('x'), KeyModifiers::NONE));
        let enter = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
        assert_eq!(picker.press(enter), Effect::Redraw, "nothing matches");
        let escape = KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE);
        assert_eq!(picker.press(escape), Effect::Cancelled);
    }
}
